"""The service's own metastore behind a router, in the same process: no connection lies between them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hive_metastore.ttypes import Database, FieldSchema, NoSuchObjectException, Partition, Table

from embedded.hive_client import hive_client
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.server import ThriftServer, listen
from lakemetastore.log.stores.opening import open_store
from lakemetastore.router.router import Router
from lakemetastore.settings.router import RouterSettings
from tests.hypothesis_profile import scaled
from tests.lakemetastore.hive.hive_server import HiveServer
from tests.lakemetastore.router.test_router import exchange
from tests.lakemetastore.router.thrift_backend import ServedMetastore, served, storage


@dataclass
class Lake:
    """A catalog, its own server, and a router before it and another metastore."""

    catalog: Catalog
    direct: HiveServer
    routed: ThriftServer
    old: ServedMetastore


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    store = open_store(str(tmp_path / "store"))
    catalog = Catalog(store, warehouse=f"file:{tmp_path}/warehouse")
    direct = HiveServer(catalog, store, listener=listen("127.0.0.1", 0))
    with served(default=[], sales=["years"]) as old:
        settings = {
            "backends": {"lake": {}, "old": {"uri": old.uri}},
            "primary": "lake",
            "rules": [
                {"match": "ods_*", "to": "lake"},
                {"match": "raw", "to": "lake", "as": "seen"},
                {"match": "*", "to": "old"},
            ],
        }
        router = Router(RouterSettings.model_validate(settings), direct.calls)
        routed = ThriftServer(router.answer, listener=listen("127.0.0.1", 0))
        for server in (direct, routed):
            server.start()
        yield Lake(catalog, direct, routed, old)
        for server in (routed, direct):
            server.stop(drain_seconds=1.0)
    store.close()


def table(database: str, name: str, location: str) -> Table:
    keys = [FieldSchema("day", "string", None)]
    kind, external = "EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}
    return Table(name, database, "me", 0, 0, 0, storage(location), keys, external, tableType=kind)


def test_both_metastores_are_one_catalog(lake: Lake) -> None:
    with hive_client(*lake.routed.address) as client:
        client.set_ugi("anna", ["staff"])
        client.create_database(Database(name="ods_shop", parameters={}))
        client.create_table(table("ods_shop", "orders", "file:/lake/orders"))
        parts = [
            Partition([f"d{i}"], "ods_shop", "orders", 0, 0, storage(f"file:/lake/orders/{i}"), {}) for i in range(50)
        ]
        assert client.add_partitions(parts) == 50
        assert len(client.get_partitions("ods_shop", "orders", -1)) == 50
        assert client.get_all_databases() == ["default", "ods_shop", "sales"]
        assert client.get_table("sales", "years").dbName == "sales"
        metas = client.get_table_meta("*", "*", None)
        assert sorted((meta.dbName, meta.tableName) for meta in metas) == [("ods_shop", "orders"), ("sales", "years")]
    assert lake.catalog.tables.names("ods_shop") == ["orders"]


def test_bytes_are_those_of_the_lakes_own_port(lake: Lake) -> None:
    with hive_client(*lake.direct.address) as client:
        client.create_database(Database(name="ods_shop", parameters={}))
        client.create_table(table("ods_shop", "orders", "file:/lake/orders"))
        parts = [
            Partition([f"d{i}"], "ods_shop", "orders", 0, 0, storage(f"file:/lake/orders/{i}"), {}) for i in range(300)
        ]
        client.add_partitions(parts)
    texts = b"".join(
        b"\x0b\x00" + n + b"\x00\x00\x00" + bytes([len(t)]) + t
        for n, t in ((b"\x01", b"ods_shop"), (b"\x02", b"orders"))
    )
    for name, tail in (
        (b"get_table", b"\x00"),
        (b"get_partitions", b"\x06\x00\x03\xff\xff\x00"),
        (b"get_fields", b"\x00"),
    ):
        request = b"\x80\x01\x00\x01\x00\x00\x00" + bytes([len(name)]) + name + b"\x00\x00\x00\x05" + texts + tail
        assert exchange(lake.routed.address, request) == exchange(lake.direct.address, request)


def test_a_renamed_database_of_the_lake(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    with hive_client(*lake.routed.address) as client:
        client.create_database(Database(name="seen", parameters={}))
        assert "raw" in lake.catalog.databases.names()
        client.create_table(table("seen", "t", f"file:{tmp_path}/t"))
        assert client.get_table("seen", "t").dbName == "seen"
        client.alter_table("seen", "t", table("seen", "u", f"file:{tmp_path}/t"))
        assert lake.catalog.tables.names("raw") == ["u"]
        client.drop_table("seen", "u", True)
        assert (tmp_path / "t").exists(), "the files of an external table stay"
        with pytest.raises(NoSuchObjectException):
            client.get_table("raw", "u")  # the name is the old metastore's, which has no such database


def test_no_client_sees_half_of_a_swap(lake: Lake) -> None:
    names = ("a", "b", "c")
    with hive_client(*lake.direct.address) as client:
        client.create_database(Database(name="ods_shop", parameters={}))
        for name in names:
            client.create_table(table("ods_shop", name, f"file:/lake/{name}"))
    problems: list[object] = []
    orders: set[tuple[str, ...]] = set()
    done = threading.Event()

    def watch() -> None:
        with hive_client(*lake.routed.address) as client:
            while not done.is_set():
                found = {t.tableName: t.sd.location for t in client.get_table_objects_by_name("ods_shop", list(names))}
                if sorted(found) != list(names) or len(set(found.values())) != len(names):
                    problems.append(found)
                orders.add(tuple(found.get(name, "-") for name in names))

    watchers = [threading.Thread(target=watch) for _ in range(4)]
    for watcher in watchers:
        watcher.start()
    for i in range(scaled(200, least=30)):
        turned = names[i % 2 + 1 :] + names[: i % 2 + 1]
        lake.catalog.tables.swap_names(
            {("ods_shop", old): ("ods_shop", new) for old, new in zip(names, turned, strict=True)}
        )
    done.set()
    for watcher in watchers:
        watcher.join()
    assert problems == []
    assert len(orders) > 1, "the watchers saw names change"
