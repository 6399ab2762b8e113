"""Clients that people use: pymetastore and PyIceberg; many at once; over TLS."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path

import pytest
from hive_metastore import ThriftHiveMetastore, ttypes
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pymetastore.metastore import HMS
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.limits import Limits
from lakemetastore.hive.server import listen
from lakemetastore.log.stores.base import LogStore
from tests.lakemetastore.hive.clients import client, raw
from tests.lakemetastore.hive.hive_server import HiveServer
from tests.lakemetastore.hive.samples import DATABASE, filled, partition
from tests.services.certificates import Authority


def test_pymetastore(server: HiveServer) -> None:
    with client(server.address) as c:
        filled(c)
        described = ttypes.ColumnStatisticsDesc(isTblLevel=True, dbName=DATABASE, tableName="orders")
        data = ttypes.ColumnStatisticsData(longStats=ttypes.LongColumnStatsData(1, 5, 0, 3))
        statistics = ttypes.ColumnStatistics(described, [ttypes.ColumnStatisticsObj("id", "bigint", data)])
        c.update_table_column_statistics(statistics)
    with HMS.create(*server.address) as hms:
        assert hms.list_databases() == ["default", DATABASE]
        assert hms.get_database(DATABASE).parameters == {"k": "v"}
        assert hms.list_tables(DATABASE) == ["orders"]
        assert hms.list_columns(DATABASE, "orders") == ["id", "name"]
        table = hms.get_table(DATABASE, "orders")
        assert [column.name for column in table.columns] == ["id", "name"]
        assert [column.name for column in table.partition_columns] == ["dt", "hour"]
        assert hms.list_partitions(DATABASE, "orders", 2) == ["dt=d0/hour=0", "dt=d0/hour=1"]
        assert len(hms.get_partitions(DATABASE, "orders")) == 6
        assert hms.get_partition(DATABASE, "orders", "dt=d1/hour=2").values == ["d1", "2"]
        assert [
            (stats.columnName, stats.stats.cardinality) for stats in hms.get_table_stats(table, table.columns[:1])
        ] == [("id", 3)]


def test_pyiceberg_commits_under_a_lock(server: HiveServer, tmp_path: Path) -> None:
    host, port = server.address
    options = {
        "uri": f"thrift://{host}:{port}",
        "lock-check-min-wait-time": "0.01",
        "lock-check-max-wait-time": "0.05",
        "lock-check-retries": "1000",
    }
    catalog = HiveCatalog("lake", **options)
    catalog.create_namespace("ice", {"location": f"file://{tmp_path}/ice"})
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    catalog.create_table("ice.t", schema=schema, location=f"file://{tmp_path}/ice/t")

    def commit(name: str) -> None:
        table = HiveCatalog("lake", **options).load_table("ice.t")
        with table.transaction() as transaction:
            transaction.set_properties({name: "1"})

    with client(server.address) as c:
        component = ttypes.LockComponent(ttypes.LockType.EXCLUSIVE, ttypes.LockLevel.TABLE, "ice", "t")
        held = c.lock(ttypes.LockRequest([component], None, "u", "h"))
        waiting = threading.Thread(target=commit, args=("late",))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive(), "a commit went by a held lock"
        c.unlock(ttypes.UnlockRequest(held.lockid))
        waiting.join(30)
    commit("later")
    assert catalog.load_table("ice.t").properties.items() >= {"late": "1", "later": "1"}.items()
    assert catalog.list_tables("ice") == [("ice", "t")]
    catalog.rename_table("ice.t", "ice.u")
    catalog.drop_table("ice.u")
    catalog.drop_namespace("ice")


def test_many_clients_read_while_others_write(server: HiveServer) -> None:
    failures: list[BaseException] = []

    def read() -> None:
        with client(server.address) as c:
            for _ in range(20):
                got = c.get_partitions(DATABASE, "orders", -1)
                assert len({tuple(p.values) for p in got}) == len(got) >= 6
                assert c.get_table(DATABASE, "orders").tableName == "orders"

    def write(number: int) -> None:
        with client(server.address) as c:
            for i in range(5):
                assert c.add_partition(partition(f"w{number}", str(i))).values == [f"w{number}", str(i)]

    def guarded(work: object, *args: int) -> None:
        try:
            work(*args)  # type: ignore[operator]
        except BaseException as error:
            failures.append(error)

    with client(server.address) as c:
        filled(c)
        threads = [threading.Thread(target=guarded, args=(read,)) for _ in range(12)]
        threads += [threading.Thread(target=guarded, args=(write, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failures == []
        assert len(c.get_partition_names(DATABASE, "orders", -1)) == 6 + 20


def test_tls(store: LogStore, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    identity = authority.identity("localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    limits = Limits(message_seconds=1.0)
    server = HiveServer(Catalog(store), store, listener=listen("127.0.0.1", 0), tls=context, limits=limits)
    server.start()
    try:
        transport = TBufferedTransport(
            TSSLSocket(*server.address, cert_reqs=ssl.CERT_REQUIRED, ca_certs=str(authority.file))
        )
        transport.open()
        c = ThriftHiveMetastore.Client(TBinaryProtocol(transport))
        filled(c, 200)
        assert len(c.get_partitions(DATABASE, "orders", -1)) == 200
        transport.close()
        with raw(server.address) as silent, client(server.address) as plain:
            with pytest.raises(TTransportException):
                plain.get_all_databases()
            assert silent.recv(1) == b""
    finally:
        server.stop(drain_seconds=1.0)
