"""Clients of the Thrift server: the generated one, and a bare socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from lakemetastore.hive.generated import Struct


class client:
    """The generated client of the Hive 4 generation.

    It is no generator: contextlib sets the traceback of an exception, which the generated exceptions refuse.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._transport = TBufferedTransport(TSocket(*address))

    def __enter__(self) -> Struct:
        self._transport.open()
        return ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(self._transport))

    def __exit__(self, *failure: object) -> None:
        self._transport.close()


@contextmanager
def raw(address: tuple[str, int]) -> Iterator[socket.socket]:
    """A connection that sends what the test likes."""
    with socket.create_connection(address, timeout=10) as sock:
        yield sock
