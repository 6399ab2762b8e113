"""The Hive tables of a Hudi table are those that Hudi's HiveSync 1.2.0 makes in Hive Metastore 3.1.3."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from embedded.hive_client import hive_client
from embedded.hms import EmbeddedHiveMetastore
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.lake.hive_tables import LAST_COMMIT, LAST_COMPLETION, HiveTable, HiveTables
from lakemetastore.lake.lake_tables import LakeTables
from lakemetastore.lake.naming import NamedTable
from lakemetastore.lake.opened import OpenedTable
from lakemetastore.lake.registration import Registered, Registration
from lakemetastore.log.stores.opening import open_store
from lakemetastore.model import Column, Storage
from tests.hudilake.lake import storage_at as open_at
from tests.lakemetastore.hive.hive_server import HiveServer
from tests.lakemetastore.lake.hive_sync import as_golden, hive_sync
from tests.lakemetastore.lake.hudi_tables import TABLES, add
from tests.paths import GOLDEN

_SYNCED: Mapping[str, Any] = json.loads((GOLDEN / "hive_sync.json").read_text())


def _columns(columns: tuple[Column, ...]) -> list[list[str | None]]:
    return [[column.name, column.type, column.comment] for column in columns]


def _storage(storage: Storage, location: str | None, root: Path) -> dict[str, Any]:
    """As the golden file has it. The path of the serde is a plain one there, as the tool was given it."""
    assert location is not None
    parameters = {k: v.replace(f"file:{root}", "{root}") for k, v in storage.serde.parameters.items()}
    return {
        "columns": _columns(storage.columns),
        "location": location.replace(f"file:{root}", "{root}"),
        "input": storage.input_format,
        "output": storage.output_format,
        "buckets": storage.buckets,
        "compressed": storage.compressed,
        "serde": storage.serde.library,
        "serde_parameters": parameters,
    }


def _as_golden(hive: HiveTable, root: Path) -> dict[str, Any]:
    table = hive.table
    noted = sorted({LAST_COMMIT, LAST_COMPLETION} & set(table.parameters))
    return {
        "kind": table.kind,
        "keys": _columns(table.partition_keys),
        "parameters": {key: value for key, value in table.parameters.items() if key not in noted},
        "noted": noted,
        **_storage(table.storage, table.location, root),
        "partitions": [{"values": list(p.values), **_storage(p.storage, p.location, root)} for p in hive.partitions],
    }


@pytest.mark.parametrize("name", TABLES)
def test_the_hive_tables_are_those_of_hive_sync(name: str, tmp_path: Path) -> None:
    TABLES[name](tmp_path / name)
    opened = OpenedTable.open(open_at(tmp_path / name))
    paths = opened.listing().partitions()
    made = {
        hive.table.name: _as_golden(hive, tmp_path)
        for hive in HiveTables(opened, "default", name, timestamps=name == "mor_date").tables(paths)
    }
    ours = {name, f"{name}_ro", f"{name}_rt"}
    synced = {table: said for table, said in _SYNCED.items() if table in ours}
    for said in synced.values():
        for partition in said["partitions"]:  # HiveSync keeps the escapes of paths, with --decode-partition too
            partition["values"] = [unquote(value) for value in partition["values"]]
    assert made == synced


@pytest.mark.full
@pytest.mark.hms
def test_hive_sync_says_what_the_golden_file_says(hms: EmbeddedHiveMetastore, tmp_path: Path) -> None:
    partitioned = ("--partition-value-extractor", "org.apache.hudi.hive.MultiPartKeysValueExtractor")
    for name, options in (("mor_hive", ("--partitioned-by", "day", *partitioned)), ("cow_wide", ())):
        TABLES[name](tmp_path / name)
        hive_sync(hms.uri, "synced", tmp_path / name, *options)
    with hive_client(hms.host, hms.port) as client:
        names = client.get_all_tables("synced")
        assert {name: as_golden(client, "synced", name, tmp_path) for name in names} == {
            name: said for name, said in _SYNCED.items() if name.startswith(("mor_hive", "cow_wide"))
        }


@pytest.mark.full
@pytest.mark.hms
def test_hive_sync_leaves_registered_tables_as_they_are(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    registration = Registration(Catalog(store), LakeTables(store))
    table = TABLES["mor_two"](tmp_path / "mor_two")
    registration.register(NamedTable(table.storage, "shop", "mor_two"))
    listener = socket.create_server(("127.0.0.1", 0))
    server = HiveServer(registration.catalog, store, listener=listener)
    server.start()
    try:
        host, port = listener.getsockname()
        options = ("--partitioned-by", "day,qty", "--partition-value-extractor")
        extractor = "org.apache.hudi.hive.MultiPartKeysValueExtractor"
        with hive_client(host, port) as client:
            names = client.get_all_tables("shop")
            before = {name: as_golden(client, "shop", name, tmp_path) for name in names}
            hive_sync(f"thrift://{host}:{port}", "shop", tmp_path / "mor_two", *options, extractor)
            assert {name: as_golden(client, "shop", name, tmp_path) for name in names} == before
            add(table, "day=d2/qty=1")
            hive_sync(f"thrift://{host}:{port}", "shop", tmp_path / "mor_two", *options, extractor)
            assert len(client.get_partition_names("shop", "mor_two_ro", -1)) == 3
    finally:
        server.stop()
    assert registration.register(NamedTable(table.storage, "shop", "mor_two")) == Registered()
