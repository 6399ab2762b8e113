"""Where snapshot rows stand among statements: incoming ones by their place, stored ones by what commits record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.changes import UNKNOWN_PLACE, ordering_value
from binlake.schema.rules.row_places import NO_SNAPSHOTS, RowPlaces, SnapshotPlaces

NOW = 1_760_000_000
STATEMENT = ordering_value(1, 5, 1000)


def read_at(place: int, second: int = NOW) -> RowPlaces:
    places = np.array([place], dtype=np.int64)
    return RowPlaces(np.array([ordering_value(1, 0, second)]), places, places)


@pytest.mark.parametrize("second", [NOW - 9, NOW, NOW + 9])
def test_a_snapshot_row_is_told_by_its_place_whatever_the_clocks_say(second: int) -> None:
    for place, earlier in ((999, True), (1000, True), (1001, False)):
        before, unsure = read_at(ordering_value(1, 5, place), second).before(STATEMENT, NOW)
        assert (before.tolist(), unsure.tolist()) == ([earlier], [False])


def test_without_a_place_its_second_decides_and_in_the_same_second_nothing_does() -> None:
    found = [read_at(UNKNOWN_PLACE, NOW + n).before(STATEMENT, NOW) for n in (-1, 0, 1)]
    assert [before.tolist() + unsure.tolist() for before, unsure in found] == [
        [True, False],
        [False, True],
        [False, False],
    ]
    before, unsure = read_at(UNKNOWN_PLACE).before(STATEMENT, None)
    assert (before.tolist(), unsure.tolist()) == ([False], [True])


def test_of_a_stored_row_the_places_of_its_second_are_known() -> None:
    places = SnapshotPlaces.of(read_at(ordering_value(1, 5, 900)))
    places = places.merged(SnapshotPlaces.of(read_at(ordering_value(1, 5, 950))))
    places = places.merged(SnapshotPlaces.of(read_at(ordering_value(1, 5, 1100), NOW + 1)))
    orders = np.array([ordering_value(1, 0, NOW + n) for n in (-1, 0, 1)] + [ordering_value(1, 5, 1001)])
    before, unsure = places.stored(orders).before(STATEMENT, NOW + 2)
    assert before.tolist() == [True, True, False, False], "the first is told by its second alone"
    assert not unsure.any()
    between = ordering_value(1, 5, 920)  # rows of one second, read on both sides of the statement
    before, unsure = places.stored(orders[1:2]).before(between, NOW)
    assert (before.tolist(), unsure.tolist()) == ([False], [True])


def test_streamed_rows_and_rows_without_a_place_are_not_recorded() -> None:
    streamed = np.array([ordering_value(1, 5, 7)])
    assert SnapshotPlaces.of(RowPlaces(streamed, streamed, streamed)) is NO_SNAPSHOTS
    assert SnapshotPlaces.of(read_at(UNKNOWN_PLACE)) is NO_SNAPSHOTS


moments = st.tuples(st.integers(0, 3), st.integers(0, 2_000), st.integers(0, 4_000))


@given(st.lists(st.lists(moments, min_size=1, max_size=300), max_size=4))
def test_recorded_places_hold_those_of_every_row_however_many_there_are(
    parts: list[list[tuple[int, int, int]]],
) -> None:
    known, rows = NO_SNAPSHOTS, list[tuple[int, int]]()
    for part in parts:
        mine = [(ordering_value(e, 0, NOW + s), ordering_value(e, 1 + s, p)) for e, s, p in part]
        orders, places = (np.array(column, dtype=np.int64) for column in zip(*mine, strict=True))
        known = known.merged(SnapshotPlaces.of(RowPlaces(orders, places, places)))
        rows += mine
    assert len(known.runs) <= 200
    assert known == SnapshotPlaces.from_json(known.to_json())
    assert all(one[1] < other[0] for one, other in zip(known.runs, known.runs[1:], strict=False))
    found = known.stored(np.array([order for order, _ in rows], dtype=np.int64))
    for (_, place), earliest, latest in zip(rows, found.earliest.tolist(), found.latest.tolist(), strict=True):
        assert earliest <= place <= latest
    assert known.merged(known) is known
