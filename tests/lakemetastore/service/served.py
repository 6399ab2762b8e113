"""A service with ports of its own on a store in a directory, and clients of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table
from thrift.protocol import TBinaryProtocol
from thrift.transport import TSocket, TSSLSocket, TTransport

from lakemetastore.service.service import Service
from lakemetastore.settings.service import MetastoreSettings
from tests.lakemetastore.service.tcp_part import HOST, no_log


def settings_in(place: Path, **more: object) -> MetastoreSettings:
    """A store and a warehouse in ``place``, free ports."""
    document = {
        "store": {"uri": str(place / "store")},
        "warehouse": (place / "warehouse").as_uri(),
        "thrift": {"port": 0, "locations": [place.as_uri()]},
        "http": {"port": 0},
        "drain_seconds": 2,
    }
    return MetastoreSettings.parse(json.dumps(document | more))


@contextlib.contextmanager
def served(place: Path, **more: object) -> Iterator[Service]:
    """A service for the length of the block; ``more``: settings."""
    with Service(settings_in(place, **more), no_log) as service:
        yield service


@contextlib.contextmanager
def client(port: int, ca_file: Path | None = None) -> Iterator[Any]:
    """A client of the Thrift port; with TLS if it trusts an authority."""
    socket = TSSLSocket.TSSLSocket(HOST, port, ca_certs=str(ca_file)) if ca_file else TSocket.TSocket(HOST, port)
    socket.setTimeout(20_000)
    transport = TTransport.TBufferedTransport(socket)
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocol.TBinaryProtocol(transport))
    finally:
        transport.close()


def database(name: str, place: Path) -> Database:
    return Database(name=name, locationUri=(place / f"{name}.db").as_uri(), parameters={})


def table(database: str, name: str, location: str | None = None, kind: str = "MANAGED_TABLE") -> Table:
    """A table of text with one column and a partition key ``day``."""
    serde = SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={})
    storage = StorageDescriptor(
        cols=[FieldSchema("a", "int", None)],
        location=location,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=serde,
        parameters={},
    )
    keys = [FieldSchema("day", "string", None)]
    parameters = {"EXTERNAL": "TRUE"} if kind == "EXTERNAL_TABLE" else {}
    return Table(dbName=database, tableName=name, sd=storage, partitionKeys=keys, tableType=kind, parameters=parameters)
