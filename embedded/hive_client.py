"""A client of a Hive Metastore or of a server that speaks its protocol, for tests and the benchmark."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException


@contextlib.contextmanager
def hive_client(host: str, port: int, *, timeout_s: float = 60) -> Iterator[Any]:
    """The generated client (of Hive 4, which 3.1.3 answers, too), connected for the length of the block.

    Args:
        host, port: of the server.
        timeout_s: the most time that a part of an answer may take, in seconds.
    """
    connection = TSocket(host, port)
    connection.setTimeout(timeout_s * 1000)
    transport = TBufferedTransport(connection)
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport))
    finally:
        transport.close()


def answers(host: str, port: int) -> bool:
    """Whether a server answers that is being started."""
    with socket.socket() as probe:
        # The client logs each attempt that fails.
        if probe.connect_ex((host, port)):
            return False
    try:
        with hive_client(host, port, timeout_s=20) as client:
            return bool(client.get_all_databases())
    except TTransportException:
        return False
