"""Compactions of a table of cells drop what no read has, while changes come late and out of order."""

from __future__ import annotations

import base64
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.hbase.derive.check import WideCheck, check_wide
from binlake.hbase.derive.pairs import derived_pairs
from binlake.hbase.rules.rules import Moment, visible
from binlake.settings import CompactionSettings
from binlake.settings.table_rules import TableRules
from binlake.tables.audit import audit
from binlake.tables.services.policy import compaction_config
from hudilake.clock import now_ms
from hudilake.services.compaction import run
from hudilake.services.compaction.completion import recorded_horizon
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.hbase.cells_world import STORED, CellsWorld, store, wal_entry
from tests.binlake.hbase.rules.reference import Cell, table_of, visible_cells
from tests.hudilake.services.compaction.steps import serially
from tests.judges.agreement import assert_same
from tests.judges.hudi_spark import HudiSpark

_MS_PER_HOUR = 3_600_000
LATENESS_MS = _MS_PER_HOUR
SOURCE = "shop:orders"
FAMILIES = {"d": {}, "s": {"versions": 3, "ttl_seconds": 4 * 3600}, "b": {"new_version_behavior": True}}


def _workload(seed: int, count: int, begin_ms: int) -> list[Cell]:
    """Changes as a store logs them: timestamps are those of the writing, but for deletes of a version."""
    drawn, made = random.Random(seed), list[Cell]()
    for sequence in range(1, count + 1):
        at = begin_ms + sequence * (9 * _MS_PER_HOUR // count)
        row, family, qualifier = f"r{drawn.randrange(6)}", drawn.choice(list(FAMILIES)), drawn.choice("pq")
        kind = drawn.choices(("Put", "Delete", "DeleteColumn", "DeleteFamily"), (8, 2, 1, 1))[0]
        place = (row, family, "" if kind == "DeleteFamily" else qualifier)
        recent = [c for c in made if c.kind == "Put" and c[:3] == place and c.timestamp > at - LATENESS_MS // 2]
        if kind == "Delete" and not recent:
            kind = "Put"
        timestamp = recent[-1].timestamp if kind == "Delete" else at
        made.append(Cell(*place, timestamp, kind, sequence, at))
    return made


def _message(cell: Cell) -> bytes:
    def coded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    place = {"row": coded(cell.row), "family": coded(cell.family), "qualifier": coded(cell.qualifier)}
    told: dict[str, Any] = {**place, "timeStamp": cell.timestamp, "type": cell.kind, "value": coded("v")}
    return wal_entry([told], cell.order, SOURCE, cell.written_ms or 0)


class _Lake(CellsWorld):
    """A table of cells that is compacted now and then."""

    def __init__(self, path: Path, lateness_ms: int, **defaults: Any) -> None:  # noqa: ANN401 - any YAML value
        columns = {"id": ":key", **{f"in_{family}": f"{family}:#b bytes" for family in FAMILIES}}
        hours = lateness_ms / _MS_PER_HOUR
        entry = store(SOURCE, families=FAMILIES, lateness_hours=hours, wide={"columns": columns})
        super().__init__(path, [SOURCE])
        self.start(tables={"cells": [entry], "defaults": {"buckets": 2, **defaults}})

    @property
    def rules(self) -> TableRules:
        return self.settings.table_rules(SourceTable("shop", "orders_cells"))

    def table(self) -> HudiTable:
        return HudiTable.open(open_storage(str(self.path / "lake" / "shop" / "orders_cells")))

    def come(self, cells: list[Cell]) -> None:
        for cell in cells:
            self.log.records.setdefault(("hbase.shop.orders.wal", 0), []).append((b"k", _message(cell)))
        self.feed()

    def compact(self) -> HudiTable:
        table = self.table()
        config = compaction_config(self.rules, self.rules.compaction or CompactionSettings())
        assert len(run(table, config, serially, now=True)) == 1
        table.refresh()
        return table

    def wide_rows(self) -> WideCheck:
        """The wide rows, each compared with its cells."""
        (pair,) = derived_pairs(self.settings)
        wide = HudiTable.open(open_storage(str(self.path / "lake" / "shop" / "orders")))
        with ThreadPoolExecutor(1) as pool:
            return check_wide(pair, self.table(), wide, pool)

    def shown(self, stored: pa.Table, at_ms: int, as_of_ms: int | None = None) -> set[tuple[Any, ...]]:
        rule = self.rules.cells
        assert rule is not None
        seen = stored.filter(visible(stored, rule, Moment(at_ms, as_of_ms)))
        return set(zip(*(seen.column(name).to_pylist() for name in Cell._fields[:5]), strict=True))


@pytest.mark.full
@pytest.mark.parametrize("order_by", [None, {"columns": ["timestamp"], "curve": "linear"}], ids=["by key", "by time"])
def test_reads_are_those_of_all_changes(tmp_path: Path, order_by: dict[str, Any] | None) -> None:
    """Changes come up to the lateness late; each compaction drops cells, and reads stay those of all changes so far."""
    here = _Lake(tmp_path, LATENESS_MS, compaction={"mode": "process", "order_by": order_by, "row_group_rows": 20})
    begin = now_ms() - 10 * _MS_PER_HOUR
    cells, drawn = _workload(3, 600, begin), random.Random(4)
    arriving = sorted(cells, key=lambda cell: (cell.written_ms or 0) + drawn.randrange(LATENESS_MS))
    for at in range(0, len(arriving), 150):
        here.come(arriving[at : at + 150])
        before = here.cells("orders")
        horizon = recorded_horizon(here.compact())
        after = here.cells("orders")
        compared = here.wide_rows()
        assert compared.rows > 0
        assert not compared.wrong
        assert horizon is not None
        assert after.num_rows < before.num_rows
        assert set(after.to_pylist()[0]) == set(before.to_pylist()[0])
        told = table_of(arriving[: at + 150])
        for as_of in (None, horizon, horizon + LATENESS_MS // 2):
            assert here.shown(after, now_ms(), as_of) == here.shown(told, now_ms(), as_of)
    assert after.num_rows < len(cells) // 3
    findings = [*fsck(here.table().storage, grace_ms=0).findings, *audit(here.table().storage).findings]
    assert [finding.what for finding in findings if finding.severity == "error"] == []
    rule = here.rules.cells
    assert rule is not None
    assert here.shown(after, now_ms()) == {cell.key for cell in visible_cells(cells, rule, Moment(now_ms()))}


@pytest.mark.parametrize(("lateness_ms", "is_seen"), [(LATENESS_MS, False), (1_000, True)])
def test_value_that_comes_late_meets_its_delete(tmp_path: Path, lateness_ms: int, is_seen: bool) -> None:
    """Control: with too little lateness the marker is gone before the value comes."""
    here = _Lake(tmp_path, lateness_ms, compaction={"mode": "process"})
    begin = now_ms() - 2 * _MS_PER_HOUR
    value, marker, other = (begin + minutes * 60_000 for minutes in (10, 20, 60))
    here.come([Cell("r", "d", "q", marker, "DeleteColumn", 2, marker), Cell("r", "d", "p", other, "Put", 3, other)])
    here.compact()
    here.come([Cell("r", "d", "q", value, "Put", 1, value)])
    late = ("r", "d", "q", value, "Put")
    assert (late in here.shown(here.cells("orders"), now_ms())) == is_seen


def test_commit_counts_what_it_drops(tmp_path: Path) -> None:
    here = _Lake(tmp_path, 1_000, compaction={"mode": "process"})
    begin = now_ms() - _MS_PER_HOUR
    here.come([Cell("r", "d", "q", at, "Put", at, begin + 1_000 * at) for at in range(1, 8)])
    table = here.compact()
    (stat,) = table.timeline.commit_metadata(table.timeline.completed()[-1]).stats
    assert (stat.num_writes, stat.num_inserts, stat.num_deletes) == (2, 7, 5)
    assert here.cells("orders").column("timestamp").to_pylist() == [6, 7]


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
def test_judges_read_what_is_kept(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    """Base files of the kept cells, with logs of later cells over some of them."""
    here = _Lake(tmp_path, LATENESS_MS, compaction={"mode": "process"})
    cells = _workload(7, 200, now_ms() - 10 * _MS_PER_HOUR)
    here.come(cells[:180])
    before = here.cells("orders").num_rows
    table = here.compact()
    here.come(cells[180:])
    kept = here.cells("orders")
    assert kept.num_rows < before
    assert_same("Spark", hudi_spark.snapshot(table.storage.uri), kept.to_pylist(), STORED)
    assert here.shown(kept, now_ms()) == here.shown(table_of(cells), now_ms())
