"""Lineage on lakes of every kind of table that has more than one origin: stitched, merged by an engine, wide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binlake.proof.history.lineage import commit_lineage, fed_tables, table_lineage
from binlake.settings import Settings
from binlake.tables.catalog import catalog_table
from hudilake.errors import LakeError
from hudilake.storage import open_storage
from tests.binlake.cli.console.watched_lake import Watched, words_of
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.hbase.recordings import topic
from tests.binlake.hbase.test_wide_tables import world_of
from tests.binlake.stream.topic_log import COLUMNS, event


class Stitched(FedLake):
    """``shop.wide``: its columns come from ``shop.a`` and ``shop.b``."""

    def configure(self, tables: dict[str, Any]) -> None:
        super().configure(tables)
        document = json.loads(self.conf.read_text())
        sources = [
            {"name": "main", "match": "shop.a", "columns": {"owner": "owner"}},
            {"name": "more", "match": "shop.b", "columns": {"place": "region"}},
        ]
        document["tables"]["stitched"] = [{"table": "shop.wide", "key": ["id"], "sources": sources}]
        self.conf.write_text(json.dumps(document))
        self.settings = Settings.load(self.conf)


def test_a_stitched_table_comes_from_all_its_sources(tmp_path: Path) -> None:
    lake = Stitched(tmp_path)
    lake.feed(2)
    lake.feed(1, ("b",))
    [whole] = lake.json("lineage", "shop.wide")
    assert {(one["table"], one["part"], one["missing"]) for one in whole["sources"]} == {
        ("shop.a", "group", ""),
        ("shop.b", "group", ""),
    }
    assert whole["positions"] == json.loads(json.dumps(lake.log.end().to_json()))
    newest, *before = whole["commits"]
    assert list(newest["offsets"]) == ["s.shop.b"]
    assert all(set(one["offsets"]) == {"s.shop.a", "s.shop.b"} for one in before)
    assert newest["files"]
    for source in ("shop.a", "shop.b"):
        [fed] = lake.json("lineage", source, "--source")
        assert fed["feeds"] == {"shop.wide": "as group of several"}
    refused = lake.run("lineage", "shop.wide", "--key", "0").exception
    assert isinstance(refused, LakeError)
    assert "merged from several" in str(refused)
    page = words_of(Watched.of(lake.conf).page("/lineage", table="shop.wide"))
    assert "shop.a" in page
    assert "shop.b" in page
    assert "s.shop.b" in page


@pytest.mark.parametrize("engine", ["partial_update", "aggregate", "first_row"])
def test_a_table_with_an_engine_names_it_and_its_commits(tmp_path: Path, engine: str) -> None:
    merge: dict[str, Any] = {"engine": engine}
    if engine == "aggregate":
        merge["columns"] = {"balance": "sum", "owner": "last_non_null", "region": "last_non_null"}
    lake = FedLake(tmp_path, {"merge": merge})
    for number in range(2):
        lake.log.add(
            "s.shop.a",
            event("a", "c", number, {"id": number, "owner": "o", "balance": "AfQ=", "region": "eu"}),
            {"id": number},
        )
        assert [one.error for one in lake.runner.run(number, lake.log.end(), 0, lake.engine).tables if one.error] == []
    assert set(COLUMNS) >= {"owner", "balance", "region"}
    [whole] = lake.json("lineage", "shop.a")
    assert whole["engine"] == engine
    assert [one["table"] for one in whole["sources"]] == ["shop.a"]
    newest, oldest = whole["commits"]
    assert (newest["offsets"], oldest["offsets"]) == ({"s.shop.a": {"0": [1, 2]}}, {"s.shop.a": {"0": [0, 1]}})
    refused = lake.run("lineage", "shop.a", "--key", "1").exception
    assert isinstance(refused, LakeError)
    assert engine in str(refused)


@pytest.mark.full
def test_a_wide_table_comes_from_its_table_of_cells(tmp_path: Path) -> None:
    world = world_of(tmp_path, ("shop:orders",))
    for records in topic("shop:orders", "wal").values():
        world.deliver(records)
        world.feed()
    settings, root = world.settings, open_storage(str(world.path / "lake"))
    cells = table_lineage(settings, root, catalog_table(settings, root, "shop.orders_cells"))
    wide = table_lineage(settings, root, catalog_table(settings, root, "shop.orders"))
    assert list(cells.derives) == ["shop.orders"]
    assert wide.cells == "shop.orders_cells"
    assert (list(wide.sources), list(wide.positions.places())) == ([], [])
    assert [(one.name, one.missing) for one in cells.sources] == [("shop.orders", "")]  # the store's table
    assert fed_tables(settings, root, "shop.orders") == {
        "shop.orders_cells": "its rows",
        "shop.orders": "derived from shop.orders_cells",
    }
    assert cells.newest(1)[0].ranges
    place = catalog_table(settings, root, "shop.orders")
    derived = [commit_lineage(place, wide, one.instant) for one in wide.newest(20)]
    assert derived
    assert any(one.files for one in derived)
