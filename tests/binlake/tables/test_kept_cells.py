"""Cells that a compaction keeps: whole rows of the store, and how far the horizon is."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from binlake.hbase.rules.horizon import needed
from binlake.hbase.settings.families import FamilyRule
from binlake.hbase.settings.rules import CellsRule
from binlake.tables.services.kept_cells import KeptCells
from hudilake.clock import format_instant
from hudilake.format.definition.schema import COMMIT_TIME_FIELD
from tests.binlake.hbase.rules.drawn import NOW_MS, rules, tables
from tests.binlake.hbase.rules.reference import Cell, table_of

_HORIZON_MS = 40


def _stored(cells: list[Cell], came_ms: int = NOW_MS) -> pa.Table:
    table = table_of(cells)
    return table.append_column(COMMIT_TIME_FIELD, pa.array([format_instant(came_ms)] * len(cells), pa.string()))


@given(tables(), rules(), st.lists(st.integers(0, 40), max_size=6))
def test_stretches_do_not_matter(cells: list[Cell], rule: CellsRule, cuts: list[int]) -> None:
    rows = _stored(sorted(cells))
    ends = sorted({min(cut, len(cells)) for cut in cuts} | {len(cells)})
    stretches = [rows.slice(begin, end - begin) for begin, end in zip([0, *ends], ends, strict=False)]
    kept = pa.concat_tables([rows.slice(0, 0), *KeptCells(rule).kept(stretches, _HORIZON_MS)])
    assert kept.equals(rows.filter(needed(rows, rule, _HORIZON_MS)))


def test_cell_of_unknown_age_counts_from_its_coming() -> None:
    cells = [Cell("a", "d", "q", at, "Put", at) for at in (1, 2)]
    rule = CellsRule((FamilyRule("d"),), lateness_ms=10)
    assert [t.num_rows for t in KeptCells(rule).kept([_stored(cells, came_ms=_HORIZON_MS + 1)], _HORIZON_MS)] == [2]
    (kept,) = KeptCells(rule).kept([_stored(cells, came_ms=_HORIZON_MS)], _HORIZON_MS)
    assert kept.column("timestamp").to_pylist() == [2]
    assert kept.column("written").null_count == 1


def test_horizon_is_as_far_as_changes_have_come() -> None:
    """A stream that was down drops nothing by the clock alone."""
    rule, now = KeptCells(CellsRule((FamilyRule("d"),), lateness_ms=10)), 1_000
    instant = format_instant(now)
    reached = [Cell("a", "d", "q", 1, "Put", 1, written_ms=written) for written in (None, 200, 300)]
    assert rule.horizon_ms(_stored(reached), instant) == 290
    assert rule.horizon_ms(_stored([reached[1]._replace(written_ms=5_000)]), instant) == now - 10
    assert rule.horizon_ms(_stored(reached[:1], came_ms=600), instant) == 590
    assert rule.horizon_ms(_stored([]), instant) == 0
    assert KeptCells(CellsRule(lateness_ms=10)).horizon_ms(_stored(reached), instant) == 0
