"""A small metastore on Thrift's own server and the generated classes, to try the router with, beside real ones."""

from __future__ import annotations

import contextlib
import fnmatch
import socket
import threading
from collections.abc import Iterator
from typing import Any

from hive_metastore import ThriftHiveMetastore as Hive
from hive_metastore.ttypes import (
    Database,
    FieldSchema,
    MetaException,
    NoSuchObjectException,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
    TableMeta,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory
from thrift.server.TServer import TThreadedServer
from thrift.transport.TSocket import TServerSocket, TSocket
from thrift.transport.TTransport import TBufferedTransportFactory


def storage(location: str) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema("id", "bigint", None), FieldSchema("name", "string", "what it is called")],
        location=location,
        serdeInfo=SerDeInfo(name="s", parameters={"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


class SmallMetastore:
    """Databases with tables and partitions in memory. ``calls``: the calls so far, by name."""

    def __init__(self, **databases: list[str]) -> None:
        self.tables = {
            name: {table: self._table(name, table) for table in tables} for name, tables in databases.items()
        }
        self.partitions = 3
        self.calls: list[str] = []
        self.users: list[str] = []

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - any attribute
        if not name.startswith("_") and hasattr(Hive.Iface, name):
            self.calls.append(name)
        return super().__getattribute__(name)

    @staticmethod
    def _table(database: str, name: str) -> Table:
        keys = [FieldSchema("day", "string", None)]
        return Table(tableName=name, dbName=database, sd=storage(f"/{name}"), partitionKeys=keys, parameters={})

    def _of(self, database: str) -> dict[str, Table]:
        if database.lower() not in self.tables:
            raise NoSuchObjectException(database)
        return self.tables[database.lower()]

    def set_ugi(self, user: str, groups: list[str]) -> list[str]:
        self.users.append(user)
        return [user]

    def get_all_databases(self) -> list[str]:
        return sorted(self.tables)

    def get_databases(self, pattern: str) -> list[str]:
        return fnmatch.filter(sorted(self.tables), pattern)

    def get_database(self, name: str) -> Database:
        self._of(name)
        return Database(name=name, description="of tests", locationUri=f"/{name}", parameters={})

    def get_all_tables(self, database: str) -> list[str]:
        return sorted(self.tables.get(database, ()))

    def get_table(self, database: str, name: str) -> Table:
        if name not in self._of(database):
            raise NoSuchObjectException(f"hive.{database}.{name} table not found")
        return self._of(database)[name]

    def get_table_meta(self, databases: str, tables: str, kinds: list[str] | None) -> list[TableMeta]:
        return [
            TableMeta(database, table, "MANAGED_TABLE")
            for database in fnmatch.filter(sorted(self.tables), databases)
            for table in fnmatch.filter(sorted(self.tables[database]), tables)
        ]

    def get_partitions(self, database: str, name: str, most: int) -> list[Partition]:
        table = self.get_table(database, name)
        return [
            Partition([f"d{i}"], database, name, 0, 0, storage(f"{table.sd.location}/d{i}"), {"numRows": str(i)})
            for i in range(self.partitions)
        ]

    def create_table(self, table: Table) -> None:
        self._of(table.dbName)[table.tableName] = table

    def drop_table(self, database: str, name: str, delete: bool) -> None:
        if name not in self._of(database):
            raise NoSuchObjectException(name)
        del self.tables[database][name]

    def alter_table(self, database: str, name: str, new: Table) -> None:
        del self.tables[database][name]
        self._of(new.dbName)[new.tableName] = new

    def get_config_value(self, name: str, default: str) -> str:
        return default

    def get_all_functions(self) -> None:
        raise MetaException("no functions here")


class ServedMetastore:
    """A metastore at a port."""

    def __init__(self, metastore: SmallMetastore) -> None:
        self.metastore = metastore
        self._sockets: list[socket.socket] = []
        self.port = 0
        self.start()

    def start(self) -> None:
        """Listen, at the port from before if there was one."""
        self._transport = TServerSocket("127.0.0.1", self.port)
        self._transport.listen()
        self.port = self._transport.handle.getsockname()[1]
        accept = self._transport.accept

        def accepting() -> TSocket | None:
            client = accept()
            if client is not None:
                self._sockets.append(client.handle)
            return client

        self._transport.accept = accepting
        self._transport.listen = lambda: None  # it listens already
        processor = self.processor = Hive.Processor(self.metastore)
        for name in [name for name in processor._processMap if not hasattr(SmallMetastore, name)]:
            del processor._processMap[name]  # an unknown method to clients, as to a metastore of an older release
        protocol = TBinaryProtocolAcceleratedFactory()
        self._server = TThreadedServer(processor, self._transport, TBufferedTransportFactory(), protocol, daemon=True)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            while self._transport.handle is not None:
                client = self._transport.accept()
                if client is not None:
                    threading.Thread(target=self._server.handle, args=(client,), daemon=True).start()

    def drop_connections(self) -> None:
        """Close the connections of all clients, as a metastore does with those that are idle for long."""
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def stop(self) -> None:
        handle = self._transport.handle
        if handle is not None:
            with contextlib.suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)
            self._transport.close()
        self._thread.join(5)
        self.drop_connections()

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"


@contextlib.contextmanager
def served(**databases: list[str]) -> Iterator[ServedMetastore]:
    server = ServedMetastore(SmallMetastore(**databases))
    try:
        yield server
    finally:
        server.stop()
