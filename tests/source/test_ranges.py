"""Offset ranges: what lies between two positions, and how it is shared among tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.source.ranges import (
    OffsetRange,
    Positions,
    format_positions,
    furthest,
    merged,
    parse_positions,
    ranges_between,
    split_ranges,
)

POSITIONS = st.dictionaries(
    st.sampled_from(["a", "b", "s.shop.orders"]), st.dictionaries(st.integers(0, 12), st.integers(0, 2**40), max_size=4)
)
RANGES = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3)), st.tuples(st.integers(0, 50), st.integers(0, 40)), max_size=6
).map(lambda found: [OffsetRange(t, p, start, start + size) for (t, p), (start, size) in found.items()])


def offsets(ranges: list[OffsetRange]) -> list[tuple[str, int, int]]:
    """Every single offset."""
    return [(r.topic, r.partition, o) for r in ranges for o in range(r.start, r.end)]


@given(POSITIONS)
def test_positions_survive_their_text(positions: Positions) -> None:
    assert parse_positions(format_positions(positions)) == positions


def test_positions_as_spark_writes_them() -> None:
    assert parse_positions('{"t":{"1":7,"0":5}}') == {"t": {0: 5, 1: 7}}
    assert format_positions({"u": {}, "t": {10: 1, 2: 3}}) == '{"t":{"2":3,"10":1},"u":{}}'


def test_between_positions() -> None:
    start, end = {"t": {0: 5, 1: 7}}, {"t": {0: 9, 1: 7, 2: 3}, "u": {0: 1}}
    assert ranges_between(start, end) == [
        OffsetRange("t", 0, 5, 9),
        OffsetRange("t", 2, 0, 3),
        OffsetRange("u", 0, 0, 1),
    ]


def test_a_start_beyond_the_end_is_no_range() -> None:
    assert ranges_between({"t": {0: 9}}, {"t": {0: 5}}) == []
    assert len(OffsetRange("t", 0, 9, 5)) == 0


@given(POSITIONS, POSITIONS)
def test_merged_and_furthest(base: Positions, newer: Positions) -> None:
    both, most = merged(base, newer), furthest(base, newer)
    for topic in base.keys() | newer.keys():
        old, new = base.get(topic, {}), newer.get(topic, {})
        assert both[topic] == old | new
        assert most[topic] == {p: max(old.get(p, -1), new.get(p, -1)) for p in old | new}
    assert both.keys() == most.keys() == base.keys() | newer.keys()


def test_merging_changes_neither_part() -> None:
    base: Positions = {"t": {0: 1}}
    merged(base, {"t": {0: 2, 1: 1}})["t"][0] = 9
    furthest(base, {"t": {0: 2}})["t"][0] = 9
    assert base == {"t": {0: 1}}


@given(RANGES, st.integers(1, 8))
def test_a_split_holds_every_offset_once(ranges: list[OffsetRange], tasks: int) -> None:
    shares = split_ranges(ranges, tasks)
    assert sorted(offsets([r for share in shares for r in share])) == sorted(offsets(ranges))
    assert len(shares) <= tasks
    assert all(len(r) for share in shares for r in share)


@given(RANGES, st.integers(1, 8))
def test_a_split_is_even(ranges: list[OffsetRange], tasks: int) -> None:
    sizes = [sum(len(r) for r in share) for share in split_ranges(ranges, tasks)]
    total = sum(len(r) for r in ranges)
    assert all(size == -(-total // tasks) for size in sizes[:-1])
    assert all(sizes)


@pytest.mark.parametrize("tasks", [0, -1])
def test_a_split_for_no_task_is_for_one(tasks: int) -> None:
    assert split_ranges([OffsetRange("t", 0, 0, 5)], tasks) == [[OffsetRange("t", 0, 0, 5)]]


def test_a_split_of_nothing() -> None:
    assert split_ranges([], 4) == []
    assert split_ranges([OffsetRange("t", 0, 5, 5)], 4) == []
