"""Which cells are visible: single rules, and random cells against the slow reference."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.hbase.rules.rules import Moment, visible
from binlake.hbase.settings.families import FamilyRule
from binlake.hbase.settings.rules import CellsRule
from hudilake.errors import CorruptDataError
from tests.binlake.hbase.rules.drawn import NOW_MS, rules, tables
from tests.binlake.hbase.rules.reference import Cell, table_of, visible_cells

_LATER = Moment(NOW_MS)


def _seen(cells: list[Cell], rule: CellsRule, moment: Moment = _LATER) -> set[Cell]:
    shown = visible(table_of(cells), rule, moment).to_pylist()
    return {cell for cell, is_shown in zip(cells, shown, strict=True) if is_shown}


def _times(cells: list[Cell], family: FamilyRule, moment: Moment = _LATER, ticks: int = 1) -> list[int]:
    seen = _seen(cells, CellsRule((family,), ticks_per_ms=ticks), moment)
    return sorted(cell.timestamp for cell in seen)


def _put(timestamp: int, order: int = 1, qualifier: str = "q") -> Cell:
    return Cell("a", "d", qualifier, timestamp, "Put", order)


def _marker(kind: str, timestamp: int, order: int = 9) -> Cell:
    return Cell("a", "d", "" if kind.startswith("DeleteFamily") else "q", timestamp, kind, order)


@given(tables(), rules(), st.none() | st.integers(0, NOW_MS), st.randoms(use_true_random=False))
def test_visible_cells_are_those_of_the_reference(
    cells: list[Cell], rule: CellsRule, as_of: int | None, order: random.Random
) -> None:
    moment = Moment(NOW_MS, as_of)
    order.shuffle(cells)
    assert _seen(cells, rule, moment) == visible_cells(cells, rule, moment)


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        ("Delete", [10, 30]),
        ("DeleteColumn", [30]),
        ("DeleteFamily", [30]),
        ("DeleteFamilyVersion", [10, 30]),
        ("DeleteRange:10", [20, 30]),
    ],
)
def test_marker_masks_by_its_kind(kind: str, left: list[int]) -> None:
    values = [_put(10), _put(20), _put(30)]
    assert _times([*values, _marker(kind, 20)], FamilyRule("d", versions=3)) == left


def test_marker_masks_a_value_that_comes_later() -> None:
    assert _times([_marker("DeleteColumn", 50, order=2), _put(40, order=3)], FamilyRule("d")) == []
    assert _times([_marker("Delete", 40, order=2), _put(40, order=3)], FamilyRule("d")) == []


def test_delete_of_a_version_exposes_the_one_before() -> None:
    assert _times([_put(10), _put(20), _marker("Delete", 20)], FamilyRule("d")) == [10]


def test_by_sequence_masks_what_was_written_before_or_by_the_same_entry() -> None:
    family = FamilyRule("d", versions=3, by_sequence=True)
    cells = [_put(10, order=4), _put(20, order=5), _put(30, order=6), _marker("DeleteColumn", 50, order=5)]
    assert _times(cells, family) == [30]


def test_by_sequence_does_not_expose_what_was_surplus_when_the_delete_came() -> None:
    cells = [_put(10, order=1), _put(20, order=2), _marker("Delete", 20, order=3)]
    assert _times(cells, FamilyRule("d", by_sequence=True)) == []
    early = [_put(20, order=1), _marker("Delete", 20, order=2), _put(10, order=3)]
    assert _times(early, FamilyRule("d", by_sequence=True)) == [10]


def test_expired_values_stay_up_to_min_versions() -> None:
    cells = [_put(10), _put(20), _put(30)]
    assert _times(cells, FamilyRule("d", versions=3, ttl_ms=40), Moment(60)) == [20, 30]
    assert _times(cells, FamilyRule("d", versions=3, ttl_ms=1, min_versions=2), Moment(60)) == [20, 30]


def test_unit_of_timestamps_is_the_stores() -> None:
    family = FamilyRule("d", versions=3, ttl_ms=40)
    cells = [_put(19_999), _put(20_000), _put(30_999)]
    assert _times(cells, family, Moment(60), ticks=1000) == [20_000, 30_999]
    assert _times(cells, family, Moment(60, as_of_ms=30), ticks=1000) == [20_000, 30_999]
    assert _times(cells, family, Moment(60, as_of_ms=29), ticks=1000) == [20_000]


def test_later_marker_masks_older_reads_unless_deleted_cells_are_kept() -> None:
    cells = [_put(10), _marker("DeleteColumn", 30)]
    assert _times(cells, FamilyRule("d"), Moment(60, as_of_ms=20)) == []
    assert _times(cells, FamilyRule("d", keep_deleted=True), Moment(60, as_of_ms=20)) == [10]


def test_extreme_timestamps() -> None:
    most, least = 2**63 - 1, -(2**63)
    cells = [_put(most), _put(0), _put(least)]
    assert _times(cells, FamilyRule("d", versions=3), Moment(60, as_of_ms=2**62), ticks=1000) == [least, 0, most]
    assert _times([*cells, _marker("DeleteColumn", most)], FamilyRule("d", versions=3)) == []
    assert _times(cells, FamilyRule("d", versions=3, ttl_ms=2**63), ticks=1000) == [least, 0, most]


def test_no_cells() -> None:
    assert visible(table_of([]), CellsRule(), Moment(NOW_MS)).to_pylist() == []


@pytest.mark.parametrize("kind", ["Undelete", "", "put"])
def test_unknown_kind_is_refused(kind: str) -> None:
    with pytest.raises(CorruptDataError, match="a cell is of a kind that is not known"):
        visible(table_of([_marker(kind, 1)]), CellsRule(), Moment(NOW_MS))
