"""A real Hive Metastore 3.1.3 and the lake's own metastore behind one router."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hive_metastore.ttypes import (
    AddPartitionsRequest,
    AlterPartitionsRequest,
    AlterTableRequest,
    CreateTableRequest,
    Database,
    DropDatabaseRequest,
    GetDatabaseRequest,
    GetFieldsRequest,
    GetPartitionNamesPsRequest,
    GetPartitionRequest,
    GetPartitionsByNamesRequest,
    GetPartitionsPsWithAuthRequest,
    GetSchemaRequest,
    GetTableRequest,
    GetTablesExtRequest,
    GetTablesRequest,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionsRequest,
    RenamePartitionRequest,
    Table,
    TruncateTableRequest,
)
from thrift.Thrift import TApplicationException

from embedded.hive_client import hive_client
from embedded.hms import EmbeddedHiveMetastore
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.server import ThriftServer, listen
from lakemetastore.log.stores.opening import open_store
from lakemetastore.router.router import Router
from lakemetastore.settings.router import RouterSettings
from tests.lakemetastore.hive.hive_server import HiveServer
from tests.lakemetastore.router.test_lake_backend import table
from tests.lakemetastore.router.test_router import exchange
from tests.lakemetastore.router.thrift_backend import storage
from tests.services.hms import hms, hms4  # noqa: F401 - fixtures

pytestmark = pytest.mark.hms


@dataclass
class Both:
    """The router, and the real metastore that it stands before."""

    router: Router
    server: ThriftServer
    real: EmbeddedHiveMetastore


@pytest.fixture
def both(hms: EmbeddedHiveMetastore, tmp_path: Path) -> Iterator[Both]:  # noqa: F811 - the fixture
    store = open_store(str(tmp_path / "store"))
    lake = HiveServer(Catalog(store), store, listener=listen("127.0.0.1", 0))
    settings = {
        "backends": {"lake": {}, "hms": {"uri": hms.uri}},
        "primary": "hms",
        "rules": [
            {"match": "ods_*", "to": "lake"},
            {"match": "default", "to": "lake", "as": "lake_default"},
            {"match": "router_old", "to": "hms", "as": "seen_old"},
            {"match": "*", "to": "hms"},
        ],
    }
    router = Router(RouterSettings.model_validate(settings), lake.calls)
    server = ThriftServer(router.answer, listener=listen("127.0.0.1", 0))
    server.start()
    yield Both(router, server, hms)
    server.stop(drain_seconds=1.0)
    store.close()


@contextlib.contextmanager
def database(both: Both, name: str) -> Iterator[Any]:
    """A client through the router, with a database that is dropped in the end."""
    with hive_client(*both.server.address) as client:
        location = f"file:{both.real.warehouse}/{name}.db"
        client.create_database(Database(name=name, locationUri=location, parameters={}))
        try:
            yield client
        finally:
            client.drop_database(name, True, True)


def external(both: Both, name: str, of: str = "seen_old") -> Table:
    return table(of, name, f"file:{both.real.warehouse}/files_of_{name}")


def partition(both: Both, value: str) -> Partition:
    place = f"file:{both.real.warehouse}/files_of_t/{value}"
    return Partition([value], "seen_old", "t", 0, 0, storage(place), {})


@pytest.mark.full
def test_listings_have_both_and_writes_reach_the_right_one(both: Both) -> None:
    with database(both, "seen_old") as client, database(both, "ods_new"):
        client.create_table(external(both, "t"))
        client.create_table(table("ods_new", "t", "file:/lake/t"))
        listed = client.get_all_databases()
        assert {"default", "ods_new", "seen_old"} <= set(listed)
        assert "router_old" not in listed
        assert client.get_databases("seen*|ods*") == ["ods_new", "seen_old"]
        metas = client.get_table_meta("*_old|ods_new", "*", None)
        assert sorted((meta.dbName, meta.tableName) for meta in metas) == [("ods_new", "t"), ("seen_old", "t")]
        with hive_client(both.real.host, both.real.port) as direct:
            assert direct.get_table("router_old", "t").dbName == "router_old"
            with pytest.raises(NoSuchObjectException):
                direct.get_database("ods_new")
        with pytest.raises(NoSuchObjectException, match=r"hive\.router_old\.none table not found"):
            client.get_table("seen_old", "none")
        with pytest.raises((MetaException, InvalidOperationException), match="several metastores"):
            client.alter_table("seen_old", "t", table("ods_new", "t", "file:/lake/t"))


@pytest.mark.full
def test_calls_of_hive_4_are_answered_by_a_metastore_of_hive_3(both: Both) -> None:
    with database(both, "seen_old") as client:
        assert client.get_database_req(GetDatabaseRequest(name="seen_old")).name == "seen_old"
        client.create_table_req(CreateTableRequest(table=external(both, "t")))
        names = ("seen_old", "t")
        client.add_partitions_req(
            AddPartitionsRequest(*names, [partition(both, f"d{i}") for i in range(5)], True, False)
        )
        assert client.get_table_req(GetTableRequest(*names)).table.dbName == "seen_old"
        assert [
            t.tableName for t in client.get_table_objects_by_name_req(GetTablesRequest("seen_old", ["t"])).tables
        ] == ["t"]
        request = {"dbName": "seen_old", "tblName": "t"}
        assert client.get_partition_req(GetPartitionRequest(**request, partVals=["d1"])).partition.dbName == "seen_old"
        found = client.get_partitions_req(PartitionsRequest(**request, maxParts=3)).partitions
        assert [part.values for part in found] == [["d0"], ["d1"], ["d2"]]
        named = client.get_partition_names_ps_req(GetPartitionNamesPsRequest(**request, partValues=["d4"]))
        assert named.names == ["day=d4"]
        prefixed = client.get_partitions_ps_with_auth_req(GetPartitionsPsWithAuthRequest(**request, partVals=["d3"]))
        assert [(part.dbName, part.values) for part in prefixed.partitions] == [("seen_old", ["d3"])]
        by_name = client.get_partitions_by_names_req(GetPartitionsByNamesRequest(*names, ["day=d2"]))
        assert [part.values for part in by_name.partitions] == [["d2"]]
        assert [f.name for f in client.get_fields_req(GetFieldsRequest(**request)).fields] == ["id", "name"]
        assert [f.name for f in client.get_schema_req(GetSchemaRequest(**request)).fields] == ["id", "name", "day"]
        changed = partition(both, "d0")
        changed.parameters = {"changed": "1"}
        where = {"dbName": "seen_old", "tableName": "t"}
        client.alter_partitions_req(AlterPartitionsRequest(**where, partitions=[changed]))
        assert client.get_partition("seen_old", "t", ["d0"]).parameters["changed"] == "1"
        new = partition(both, "e1")
        client.rename_partition_req(RenamePartitionRequest(**where, partVals=["d1"], newPart=new))
        client.truncate_table_req(TruncateTableRequest(**where))
        client.alter_table_req(AlterTableRequest(**where, table=external(both, "u")))
        assert client.get_partition_names("seen_old", "u", -1)[-1] == "day=e1"
        with pytest.raises(TApplicationException, match="get_tables_ext"):
            client.get_tables_ext(GetTablesExtRequest(database="seen_old"))
        with pytest.raises(NoSuchObjectException):
            client.get_partition_req(GetPartitionRequest(dbName="seen_old", tblName="u", partVals=["none"]))
    with hive_client(*both.server.address) as client:
        client.create_database(
            Database(name="seen_old", locationUri=f"file:{both.real.warehouse}/again", parameters={})
        )
        client.drop_database_req(DropDatabaseRequest(name="seen_old", deleteData=True, cascade=True))
        assert "seen_old" not in client.get_all_databases()


@pytest.mark.full
def test_answers_of_the_real_metastore_pass_byte_for_byte(both: Both) -> None:
    with hive_client(both.real.host, both.real.port) as direct:
        location = f"file:{both.real.warehouse}/same.db"
        direct.create_database(Database(name="router_same", locationUri=location, parameters={}))
        direct.create_table(external(both, "t", "router_same"))
        parts = [partition(both, f"d{i}") for i in range(100)]
        for part in parts:
            part.dbName = "router_same"
        direct.add_partitions(parts)
    texts = b"\x0b\x00\x01\x00\x00\x00\x0brouter_same\x0b\x00\x02\x00\x00\x00\x01t"
    calls = {
        b"get_table": b"",
        b"get_partitions": b"\x06\x00\x03\xff\xff",
        b"get_partition_names": b"\x06\x00\x03\xff\xff",
        b"get_fields": b"",
        b"get_no_such_thing": b"",
    }
    for name, further in calls.items():
        request = (
            b"\x80\x01\x00\x01" + len(name).to_bytes(4, "big") + name + b"\x00\x00\x00\x05" + texts + further + b"\x00"
        )
        assert exchange(both.server.address, request) == exchange((both.real.host, both.real.port), request), name
    with hive_client(both.real.host, both.real.port) as direct:
        direct.drop_database("router_same", True, True)


def test_the_default_databases_do_not_clash_once_one_has_another_name(both: Both) -> None:
    assert [clash.seen for clash in both.router.clashes() if clash.seen == "default"] == []
    with hive_client(*both.server.address) as client:
        assert client.get_database("default").name == "default"
        assert "lake_default" in client.get_all_databases()
        assert client.get_all_tables("lake_default") == []


@pytest.mark.full
def test_releases_3_and_4_are_one_catalog(
    hms: EmbeddedHiveMetastore,  # noqa: F811 - the fixture
    hms4: EmbeddedHiveMetastore,  # noqa: F811 - the fixture
) -> None:
    rules = [
        {"match": "default", "to": "four", "as": "four"},
        {"match": "four_*", "to": "four"},
        {"match": "*", "to": "three"},
    ]
    backends = {"three": {"uri": hms.uri}, "four": {"uri": hms4.uri}}
    router = Router(RouterSettings.model_validate({"backends": backends, "primary": "three", "rules": rules}))
    server = ThriftServer(router.answer, listener=listen("127.0.0.1", 0))
    server.start()
    with hive_client(*server.address) as client:
        client.create_database(Database(name="four_x", locationUri=f"file:{hms4.warehouse}/x.db", parameters={}))
        assert {"default", "four", "four_x"} <= set(client.get_all_databases())
        assert client.get_database("four").name == "four"
        assert client.get_database_req(GetDatabaseRequest("FOUR", "hive")).name == "four"
        assert client.get_database_req(GetDatabaseRequest("default", "hive")).name == "default"
        client.create_table(table("four_x", "t", f"file:{hms4.warehouse}/files_of_t"))
        assert client.get_table_req(GetTableRequest("four_x", "t", catName="hive")).table.dbName == "four_x"
        assert [meta.dbName for meta in client.get_table_meta("four*", "*", None)] == ["four_x"]
        client.drop_database("four_x", True, True)
    server.stop(drain_seconds=1.0)
