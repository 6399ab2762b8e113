"""What compaction may drop: reads do not change, now, as of later timestamps, and after later changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from binlake.hbase.rules.horizon import needed
from binlake.hbase.rules.rules import Moment
from binlake.hbase.settings.families import FamilyRule
from binlake.hbase.settings.rules import CellsRule
from tests.binlake.hbase.rules.drawn import NOW_MS, cells, keyed, rules, tables
from tests.binlake.hbase.rules.reference import Cell, table_of, visible_cells

LATENESS_MS = 20
HORIZON_MS = NOW_MS - LATENESS_MS
#: One version of the columns of ``d``.
_PLAIN = CellsRule((FamilyRule("d"),), LATENESS_MS)
#: After all that ``drawn`` draws.
_LATER_ORDER = 13


def _kept(cells: list[Cell], rule: CellsRule, now_ms: int = NOW_MS) -> list[Cell]:
    flags = needed(table_of(cells), rule, now_ms - rule.lateness_ms).to_pylist()
    return [cell for cell, is_kept in zip(cells, flags, strict=True) if is_kept]


@given(tables(), rules(LATENESS_MS), st.integers(HORIZON_MS, NOW_MS))
def test_reads_do_not_change(drawn: list[Cell], rule: CellsRule, as_of: int) -> None:
    kept = _kept(drawn, rule)
    for moment in (Moment(NOW_MS), Moment(NOW_MS, as_of), Moment(NOW_MS + 30)):
        assert visible_cells(kept, rule, moment) == visible_cells(drawn, rule, moment)


@st.composite
def _late(draw: st.DrawFn) -> Cell:
    """A change that comes after the compaction: written since the horizon, and with a timestamp since the horizon but
    for deletes of all versions up to one."""
    cell = draw(cells())
    since = st.integers(HORIZON_MS + 1, NOW_MS + 10)
    hides = cell.kind in ("DeleteColumn", "DeleteFamily")
    timestamp = cell.timestamp if hides and draw(st.booleans()) else draw(since)
    order = draw(st.integers(_LATER_ORDER, 20))
    return cell._replace(timestamp=timestamp, written_ms=draw(since), order=order)


@given(tables(), st.lists(_late(), max_size=8), rules(LATENESS_MS), st.integers(HORIZON_MS, NOW_MS))
def test_reads_do_not_change_with_later_changes(
    drawn: list[Cell], late: list[Cell], rule: CellsRule, as_of: int
) -> None:
    before = keyed([*drawn, *late])
    after = keyed([*_kept(drawn, rule), *late])
    for moment in (Moment(NOW_MS), Moment(NOW_MS, as_of), Moment(NOW_MS + 30)):
        assert visible_cells(after, rule, moment) == visible_cells(before, rule, moment)


@given(tables(), st.lists(cells(), max_size=8), rules(LATENESS_MS))
def test_late_values_of_any_timestamp_meet_the_markers_since_the_horizon(
    drawn: list[Cell], late: list[Cell], rule: CellsRule
) -> None:
    recent = [cell if cell.kind == "Put" else cell._replace(written_ms=HORIZON_MS + 1) for cell in drawn]
    values = [cell._replace(order=_LATER_ORDER, written_ms=HORIZON_MS + 2) for cell in late if cell.kind == "Put"]
    before, after = keyed([*recent, *values]), keyed([*_kept(recent, rule), *values])
    assert visible_cells(after, rule, Moment(NOW_MS)) == visible_cells(before, rule, Moment(NOW_MS))


@given(tables(), rules(LATENESS_MS))
def test_of_old_cells_only_the_visible_ones_stay(drawn: list[Cell], rule: CellsRule) -> None:
    """As after a major compaction of HBase."""
    families = tuple(FamilyRule(one.name, one.versions, one.ttl_ms, one.min_versions) for one in rule.families)
    rule = CellsRule(families, LATENESS_MS)
    old = [cell._replace(timestamp=min(cell.timestamp, HORIZON_MS), written_ms=HORIZON_MS) for cell in drawn]
    old = keyed([cell for cell in old if not cell.kind.startswith("DeleteRange")])
    assert set(_kept(old, rule)) == visible_cells(old, rule, Moment(HORIZON_MS))


def _put(timestamp: int, written_ms: int | None, order: int = 1) -> Cell:
    return Cell("a", "d", "q", timestamp, "Put", order, written_ms)


def _marker(kind: str, timestamp: int, written_ms: int, order: int = 9) -> Cell:
    return Cell("a", "d", "" if kind.startswith("DeleteFamily") else "q", timestamp, kind, order, written_ms)


def test_masked_value_goes_with_its_marker_when_both_were_written_before_the_horizon() -> None:
    cells = [_put(4, written_ms=30), _marker("DeleteColumn", 5, written_ms=40), _put(6, written_ms=40)]
    assert _kept(cells, _PLAIN, now_ms=59) == cells
    assert _kept(cells, _PLAIN, now_ms=60) == [_put(6, written_ms=40)]


def test_early_timestamp_does_not_make_a_cell_old() -> None:
    cells = [_put(1, written_ms=55), _put(2, written_ms=55), _marker("DeleteColumn", 1, written_ms=55)]
    assert _kept(cells, _PLAIN) == cells
    assert _kept([_put(1, written_ms=None), _put(2, written_ms=None)], _PLAIN) != []


def test_marker_stays_while_a_late_value_may_come() -> None:
    """Control: without lateness the value that comes late is seen, although it was written before its delete."""
    marker, late = _marker("DeleteColumn", 50, written_ms=30), _put(40, written_ms=25)
    for lateness_ms, seen in ((40, set[Cell]()), (0, {late})):
        rule = CellsRule((FamilyRule("d"),), lateness_ms)
        assert visible_cells([*_kept([marker], rule), late], rule, Moment(NOW_MS)) == seen
        assert visible_cells([marker, late], rule, Moment(NOW_MS)) == set()


def test_surplus_goes_but_not_what_a_later_delete_exposes_already() -> None:
    cells = [_put(10, written_ms=10), _put(20, written_ms=20)]
    assert _kept(cells, _PLAIN) == cells[1:]
    deleted = [*cells, _marker("Delete", 20, written_ms=50)]
    assert _kept(deleted, _PLAIN) == deleted


def test_expired_values_go() -> None:
    rule = CellsRule((FamilyRule("d", versions=3, ttl_ms=20),), lateness_ms=20)
    cells = [_put(19, written_ms=19), _put(20, written_ms=20), _put(21, written_ms=21)]
    assert _kept(cells, rule) == cells[1:]


def test_deleted_cells_that_are_kept_go_when_they_are_surplus() -> None:
    rule = CellsRule((FamilyRule("d", versions=2, keep_deleted=True),), lateness_ms=20)
    masked = [_put(at, written_ms=10) for at in (1, 2, 3)]
    marker = _marker("DeleteColumn", 3, written_ms=11)
    assert _kept([*masked, marker], rule) == [*masked[1:], marker]


def test_markers_by_sequence_go_whatever_their_timestamp() -> None:
    rule = CellsRule((FamilyRule("d", by_sequence=True),), lateness_ms=20)
    cells = [_put(10, written_ms=10), _marker("DeleteFamily", 2**63 - 1, written_ms=11), _put(5, 12, order=10)]
    assert _kept(cells, rule) == cells[2:]


def test_rows_wait_while_changes_are_out_of_sequence() -> None:
    rule = CellsRule((FamilyRule("d", by_sequence=True),), lateness_ms=20)
    cells = [_put(20, 10, order=2), _marker("Delete", 20, written_ms=12, order=3), _put(10, written_ms=50, order=1)]
    assert _kept(cells, rule) == cells
    assert visible_cells(cells[2:], rule, Moment(NOW_MS)) != visible_cells(cells, rule, Moment(NOW_MS))


def test_families_that_are_not_declared_keep_all() -> None:
    cells = [_put(1, written_ms=10), _put(2, written_ms=10), _marker("DeleteColumn", 1, written_ms=10)]
    assert _kept(cells, _PLAIN) == cells[1:2]
    assert _kept(cells, CellsRule((FamilyRule("s"),), LATENESS_MS)) == cells


def test_no_cells() -> None:
    assert _kept([], CellsRule()) == []
