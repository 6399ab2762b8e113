"""Tables of stores in the stream: with and without an entry, routed, left out; Bigtable's changes in any order."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

from binlake.hbase.rules.rules import Moment, visible
from tests.binlake.hbase.cells_world import STORED, CellsWorld, cells_of, wal_entry
from tests.binlake.hbase.formats.bigtable_changes import COMMIT_US, change
from tests.judges import hudi_rs

PUT = {"row": "cg==", "family": "ZA==", "qualifier": "cQ==", "timeStamp": 7, "type": "Put", "value": "dg=="}


def deliver(world: CellsWorld, *messages: bytes) -> None:
    for message in messages:
        world.log.add("hbase.all", message, None)
    world.feed()


def test_tables_go_where_the_settings_say(tmp_path: Path) -> None:
    tables = {
        "cells": [{"source": "shop.orders"}, {"source": "default.plain", "table": "lake.plain_store"}],
        "routes": [{"match": r"old\.(.*)", "to": "archive.{1}"}],
        "exclude": ["shop.secret"],
    }
    world = CellsWorld(tmp_path, [], tables=tables)
    names = ("shop:orders", "plain", "shop:free", "old:things", "shop:secret")
    deliver(world, *(wal_entry([PUT], sequence=i, table=name) for i, name in enumerate(names)))
    lake = tmp_path / "lake"
    found = {p.parent.parent.relative_to(lake).as_posix() for p in lake.glob("*/*/.hoodie/hoodie.properties")}
    assert found == {"shop/orders_cells", "lake/plain_store", "shop/free", "archive/things"}
    for path in found:
        assert "hash.field=row\n" in (lake / path / ".hoodie/hoodie.properties").read_text()
        assert len(hudi_rs.snapshot(lake / path)) == 1


def test_a_bad_entry_waits_in_the_quarantine(tmp_path: Path) -> None:
    world = CellsWorld(tmp_path, ["shop:orders"], quarantine={"max_fraction": 1.0})
    deliver(world, wal_entry([PUT], sequence=1), wal_entry([PUT | {"type": "Strange"}], sequence=2), b"{")
    assert len(world.cells("orders")) == 1
    rows = hudi_rs.snapshot(tmp_path / "lake" / world.settings.quarantine_path).to_pylist()
    assert sorted(row["reason"] for row in rows) == ["malformed_json", "unknown_op"]


@pytest.mark.parametrize("seed", range(3))
def test_changes_of_bigtable_in_any_order(tmp_path: Path, seed: int) -> None:
    """A mutation that replaces a column keeps the new value; a delete masks what was written before it, and no more."""

    def at(step: int) -> str:
        return str(COMMIT_US + step)

    changes = [
        change(commitTimestamp=at(0), timestamp="1000", value="b25l"),  # one
        change(commitTimestamp=at(0), timestamp="2000", value="dHdv"),  # two
        change("DELETE_CELLS", commitTimestamp=at(1), timestampFrom="2000", timestampTo="3000"),
        change("DELETE_CELLS", commitTimestamp=at(2), rowKey="eA=="),
        change(commitTimestamp=at(2), rowKey="eA==", value="bmV3"),  # new
        change(commitTimestamp=at(3), rowKey="eQ==", columnFamily="gone"),
        change("DELETE_FAMILY", commitTimestamp=at(4), rowKey="eQ==", columnFamily="gone", isGC=True),
        change(commitTimestamp=at(5), rowKey="eQ==", columnFamily="gone", timestamp="1", value="bGF0ZQ=="),  # late
    ]
    order = changes + changes[::2]
    random.Random(seed).shuffle(order)
    families = {"cf": {"versions": 5}, "gone": {}}
    stores = {"cells": [{"source": "shop.orders", "store": "bigtable", "families": families}]}
    world = CellsWorld(tmp_path, [], form="bigtable", tables=stores)
    for part in (order[:5], order[5:]):
        deliver(world, *(json.dumps(one).encode() for one in part))
    stored = hudi_rs.snapshot(tmp_path / "lake/shop/orders_cells").select(list(STORED))
    assert len(stored) == len(changes)
    rule = world.settings.tables.cells[0].cells_rule()
    shown = stored.filter(visible(stored, rule, Moment(now_ms=COMMIT_US // 1000)))
    values = {(cell.place.row, cell.value) for cell in cells_of(pa.table(shown))}
    assert values == {(b"r\xff", b"one"), (b"x", b"new"), (b"y", b"late")}
