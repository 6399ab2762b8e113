"""A client of a Hive Metastore or of a server that speaks its protocol, for tests and the benchmark."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport


@contextlib.contextmanager
def hive_client(host: str, port: int, *, timeout_s: float = 60) -> Iterator[Any]:
    """The generated client (of Hive 4, which 3.1.3 answers, too), connected for the length of the block.

    Args:
        host, port: of the server.
        timeout_s: the most time that a part of an answer may take, in seconds.
    """
    socket = TSocket(host, port)
    socket.setTimeout(timeout_s * 1000)
    transport = TBufferedTransport(socket)
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport))
    finally:
        transport.close()
