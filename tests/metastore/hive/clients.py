"""Clients of the Thrift server: the generated one, and a bare socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport


@contextmanager
def client(address: tuple[str, int]) -> Iterator[Any]:
    """The generated client of the Hive 4 generation."""
    transport = TBufferedTransport(TSocket(*address))
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport))
    finally:
        transport.close()


@contextmanager
def raw(address: tuple[str, int]) -> Iterator[socket.socket]:
    """A connection that sends what the test likes."""
    with socket.create_connection(address, timeout=10) as sock:
        yield sock
