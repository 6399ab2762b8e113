"""A row of a store is erased with all its cells, from both tables and from dumps of WAL entries."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from binlake.load.replay.quarantine_records import QuarantineSelection, held_records
from binlake.tables.seal import Seal
from hudilake.errors import ConfigError
from hudilake.services.erasure.traces import Quarry, scan
from hudilake.storage import open_storage
from tests.binlake.hbase.cells_world import cells_of, wal_entry
from tests.binlake.hbase.stores import CELLS, STORE, WIDE, Store
from tests.binlake.hbase.test_wide_tables import entry, wide_rows
from tests.binlake.load.replay.test_dump import dump_once

ROW, IN_BASE64 = b"c07", b'"YzA3"'


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A lake that a dump of all entries was replayed into. One entry has cells of two rows."""
    store = Store(tmp_path / "store")
    store.world.start(dump=dump_at(tmp_path))
    records = store.records()
    cells = [cell(b"YzA3", 5), cell(b"YzA5", 5), cell(b"YzA3", 6)]
    records.held.append((*records.held[-1][:2], records.held[-1][2] + 1, 1, None, entry_of(cells)))
    dump_once(store.world.settings, records, open_storage(str(tmp_path / "dumps"), {"fsync": "false"}))
    store.run("replay", "--in-process", "--no-display")
    store.world.runner.derive_missing()
    return store


def dump_at(path: Path) -> dict[str, Any]:
    return {"uri": str(path / "dumps"), "path": "{topic}/dt={date}/*.jsonl.gz", "options": {"fsync": "false"}}


def cell(row: bytes, stamp: int) -> dict[str, Any]:
    return {
        "row": row.decode(),
        "family": "bg==",
        "qualifier": "aGl0cw==",
        "timeStamp": stamp,
        "type": "Put",
        "value": "AAAAAAAAAAE=",
    }


def entry_of(cells: list[dict[str, Any]]) -> bytes:
    return wal_entry(cells, sequence=1 << 30, table=STORE)


def dumped(path: Path) -> list[str]:
    return [
        line
        for one in sorted(path.glob("dumps/hbase*/*/*.gz"))
        for line in gzip.decompress(one.read_bytes()).decode().splitlines()
    ]


def rows_in(store: Store) -> set[bytes]:
    return {one.place.row for one in cells_of(store.world.cells("counters"))}


def test_all_cells_of_a_row_leave_both_tables_and_the_dump(store: Store, tmp_path: Path) -> None:
    before, rows, wide = dumped(tmp_path), rows_in(store), wide_rows(store.world, STORE)
    assert ROW in rows
    said = store.run("erase", str(CELLS), "row=c07", "--yes")
    assert said.exit_code == 0, said.output
    assert rows_in(store) == rows - {ROW}
    assert wide_rows(store.world, STORE) == {key: one for key, one in wide.items() if key != ROW}
    for table in (CELLS, WIDE):
        assert scan(store.storage(table), Quarry(frozenset(), frozenset([b"row:c07,", b"id:c07"]))).is_clean
    after = dumped(tmp_path)
    assert len(after) == len(before)
    mine = [n for n, line in enumerate(before) if "YzA3" in line]
    assert [n for n, (one, other) in enumerate(zip(before, after, strict=True)) if one != other] == mine
    assert not any("YzA3" in line for line in after)
    (shared,) = (json.loads(json.loads(after[n])["value"]) for n in mine if json.loads(after[n])["value"] is not None)
    assert shared["edit"]["cells"] == [cell(b"YzA5", 5)]
    store.world.runner.derive_missing()  # nothing brings the row back
    assert ROW not in wide_rows(store.world, STORE)
    other = Store(tmp_path / "other")
    other.world.start(dump=dump_at(tmp_path))
    other.run("replay", "--in-process", "--no-display")
    assert rows_in(other) == rows - {ROW}


def test_a_cell_alone_leaves_too(store: Store, tmp_path: Path) -> None:
    """The wide row is erased, and derived again from the cells that are left."""
    key = "row=c07,family=n,qualifier=hits,timestamp=5,kind=Put"
    before = cells_of(store.world.cells("counters"))
    wide = wide_rows(store.world, STORE)
    said = store.run("erase", str(CELLS), key, "--yes")
    assert said.exit_code == 0, said.output
    left = cells_of(store.world.cells("counters"))
    assert {(one.place.row, one.place.timestamp_ms) for one in {*before} - {*left}} == {(ROW, 5)}
    assert sum('"timeStamp":5' in json.loads(line)["value"].replace(" ", "") for line in dumped(tmp_path)) == 1
    store.world.runner.derive_missing()
    assert wide_rows(store.world, STORE) == wide


def test_cells_without_a_place_leave_the_quarantine(tmp_path: Path) -> None:
    """Those of the row alone: they wait under the name of the wide table."""
    store = Store(tmp_path / "store")
    wide = {"columns": {"id": ":key", "hits": "n:hits bytes"}, "undeclared": "quarantine"}
    store.world.start(tables={"cells": [{**entry(STORE), "wide": wide}]})
    store.deliver_all()
    held = quarantined(store)
    assert ROW in held
    said = store.run("erase", str(CELLS), "row=c07", "--yes")
    assert said.exit_code == 0, said.output
    assert quarantined(store) == held - {ROW}


def quarantined(store: Store) -> set[bytes | None]:
    selection = QuarantineSelection(tables=frozenset({str(WIDE)}))
    root = open_storage(str(store.lake / store.world.settings.quarantine_path))
    return {one.key for one in held_records(root, selection, Seal(""), payload=True)}


def test_a_wide_row_is_erased_with_its_cells(store: Store) -> None:
    with pytest.raises(ConfigError, match="derived again"):
        store.run("erase", str(WIDE), "c07", "--yes")
