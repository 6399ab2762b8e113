"""Offsets and ranges as values: their JSON, what lies between two positions, and how it is shared among tasks."""

from __future__ import annotations

import json
import pickle
from dataclasses import astuple
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.source.offsets import NO_OFFSETS, NO_RANGES, OffsetRange, Offsets, Ranges

OFFSETS = st.dictionaries(
    st.sampled_from(["a", "b", "s.shop.orders"]), st.dictionaries(st.integers(0, 12), st.integers(0, 2**40), max_size=4)
).map(Offsets)
RANGES = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3)), st.tuples(st.integers(0, 50), st.integers(0, 40)), max_size=6
).map(lambda found: Ranges(OffsetRange(t, p, start, start + size) for (t, p), (start, size) in found.items()))
MANY_RANGES = st.lists(
    st.builds(OffsetRange, st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 50), st.integers(50, 90)),
    max_size=8,
).map(Ranges)


def single(ranges: Ranges) -> list[tuple[str, int, int]]:
    """Every single offset."""
    return [(r.topic, r.partition, o) for r in ranges for o in range(r.start, r.end)]


# -- offsets ----------------------------------------------------------------------------------------------------------


@given(OFFSETS)
def test_offsets_survive_their_json(offsets: Offsets) -> None:
    assert Offsets.from_text(offsets.to_text()) == offsets
    stored = json.dumps(offsets.to_json())
    assert Offsets.from_json(json.loads(stored)) == offsets
    assert json.dumps(Offsets.from_json(json.loads(stored)).to_json()) == stored  # the order is kept
    assert pickle.loads(pickle.dumps(offsets)) == offsets


def test_offsets_as_spark_writes_them() -> None:
    assert Offsets.from_text('{"t":{"1":7,"0":5}}') == {"t": {0: 5, 1: 7}}
    assert Offsets({"u": {}, "t": {10: 1, 2: 3}}).to_text() == '{"t":{"2":3,"10":1},"u":{}}'


@pytest.mark.parametrize("text", ['{"t":5}', '{"t":{"x":5}}', '{"t":{"0":"x"}}', "[]", "5", "{"])
def test_what_is_no_offsets_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)):
        Offsets.from_text(text)


@given(OFFSETS)
def test_what_is_known_of_offsets(offsets: Offsets) -> None:
    places = list(offsets.places())
    assert Offsets.of_places(places) == {t: parts for t, parts in offsets.items() if parts}
    assert all(offsets.knows(t, p) and offsets.at(t, p) == o == offsets[t][p] for t, p, o in places)
    assert offsets.total == sum(o for _, _, o in places)
    assert (offsets.knows("a", 99), offsets.at("a", 99), offsets.at("none", 0)) == (False, 0, 0)


@given(OFFSETS, OFFSETS)
def test_merge_furthest_and_earliest(base: Offsets, other: Offsets) -> None:
    merged, most, least = base.merge(other), base.furthest(other), base.earliest(other)
    assert merged.keys() == most.keys() == least.keys() == base.keys() | other.keys()
    for topic in merged:
        old, new = dict(base.get(topic, {})), dict(other.get(topic, {}))
        assert merged[topic] == old | new
        assert most[topic] == {p: max(old.get(p, -1), new.get(p, -1)) for p in old | new}
        assert least[topic] == {p: min(old.get(p, 2**50), new.get(p, 2**50)) for p in old | new}


@given(OFFSETS, OFFSETS)
def test_what_is_ahead_and_what_falls_short(mine: Offsets, other: Offsets) -> None:
    ahead, short = mine.ahead_of(other), mine.short_of(other)
    for topic, partition, offset in other.places():
        at = mine.at(topic, partition)
        assert (ahead.knows(topic, partition), short.knows(topic, partition)) == (at > offset, at < offset)
        assert (ahead.at(topic, partition), short.at(topic, partition)) == (at * (at > offset), at * (at < offset))
    assert all(other.knows(topic, partition) for topic, partition, _ in [*ahead.places(), *short.places()])


@given(OFFSETS, OFFSETS)
def test_the_difference_counts_what_lies_between(end: Offsets, start: Offsets) -> None:
    lags = end.minus(start)
    assert [(t, p) for t, p, _ in lags.places()] == [(t, p) for t, p, _ in end.places()]
    assert lags.total == start.ranges_to(end).records
    assert end.within(start).keys() <= end.keys() & start.keys()
    assert all(start.knows(t, p) and end.at(t, p) == o for t, p, o in end.within(start).places())


def test_offsets_are_not_changed_from_outside() -> None:
    parts = {0: 1}
    offsets = Offsets({"t": parts})
    parts[0] = 9
    offsets.to_json()["t"][0] = 9
    with pytest.raises(TypeError):
        offsets["t"][0] = 9  # type: ignore[index]
    assert offsets == offsets.merge({}) == {"t": {0: 1}}
    assert offsets.merge({"t": {0: 2, 1: 1}}) == {"t": {0: 2, 1: 1}}
    assert offsets == {"t": {0: 1}}


# -- ranges -----------------------------------------------------------------------------------------------------------


def test_between_offsets() -> None:
    start, end = Offsets({"t": {0: 5, 1: 7}}), {"u": {0: 1}, "t": {2: 3, 0: 9, 1: 7}}
    assert start.ranges_to(end) == Ranges(
        [OffsetRange("t", 0, 5, 9), OffsetRange("t", 2, 0, 3), OffsetRange("u", 0, 0, 1)]
    )


def test_a_start_beyond_the_end_is_no_range() -> None:
    assert Offsets({"t": {0: 9}}).ranges_to({"t": {0: 5}}) == NO_RANGES
    assert len(OffsetRange("t", 0, 9, 5)) == 0


@given(OFFSETS, OFFSETS)
def test_ranges_lead_from_their_start_to_their_end(start: Offsets, end: Offsets) -> None:
    ranges = start.ranges_to(end)
    assert start.merge(ranges.ends()).ranges_to(end) == NO_RANGES
    assert ranges.starts().ranges_to(ranges.ends()) == ranges


def test_the_furthest_end_of_a_partition_counts() -> None:
    twice = Ranges([OffsetRange("t", 0, 5, 9), OffsetRange("u", 0, 0, 1), OffsetRange("t", 0, 2, 4)])
    assert (twice.ends(), list(twice.ends())) == (Offsets({"t": {0: 9}, "u": {0: 1}}), ["t", "u"])
    assert twice.of_topics({"u"}) == Ranges([OffsetRange("u", 0, 0, 1)])


@given(RANGES)
def test_ranges_of_a_commit_survive_their_json(ranges: Ranges) -> None:
    stored = json.loads(json.dumps(ranges.to_json()))
    again = Ranges.from_json(stored)
    assert sorted(single(again)) == sorted(single(ranges))
    assert again.to_json() == stored
    assert pickle.loads(pickle.dumps(ranges)) == ranges
    assert type(pickle.loads(pickle.dumps(ranges))) is Ranges


@given(MANY_RANGES)
def test_several_ranges_of_a_partition_survive_their_json(ranges: Ranges) -> None:
    stored = json.loads(json.dumps(ranges.by_partition()))
    again = Ranges.from_partitions(stored)
    assert sorted(again, key=repr) == sorted(ranges, key=repr)
    assert again.by_partition() == stored


@given(RANGES, st.integers(1, 60))
def test_ranges_are_cut_to_about_so_many_records(ranges: Ranges, records: int) -> None:
    whole = Ranges(r for r in ranges if len(r))
    cut = whole.at_most(records)
    assert cut.starts() == whole.starts()
    assert all(1 <= len(less) <= len(more) for less, more in zip(cut, whole, strict=True))
    assert cut.records <= max(records, len(whole))
    assert cut == whole or whole.records > records


@given(RANGES, st.integers(1, 8))
def test_a_split_holds_every_offset_once(ranges: Ranges, tasks: int) -> None:
    shares = ranges.split(tasks)
    assert sorted(single(Ranges(r for share in shares for r in share))) == sorted(single(ranges))
    assert len(shares) <= tasks
    assert all(len(r) for share in shares for r in share)


@given(RANGES, st.integers(1, 8))
def test_a_split_is_even(ranges: Ranges, tasks: int) -> None:
    sizes = [share.records for share in ranges.split(tasks)]
    assert all(size == -(-ranges.records // tasks) for size in sizes[:-1])
    assert all(sizes)


@pytest.mark.parametrize("tasks", [0, -1])
def test_a_split_for_no_task_is_for_one(tasks: int) -> None:
    whole = Ranges([OffsetRange("t", 0, 0, 5)])
    assert whole.split(tasks) == [whole]


def test_a_split_of_nothing() -> None:
    assert NO_RANGES.split(4) == []
    assert Ranges([OffsetRange("t", 0, 5, 5)]).split(4) == []
    assert NO_OFFSETS.ranges_to({}) == NO_RANGES


@given(MANY_RANGES, MANY_RANGES)
def test_ranges_as_sets_of_offsets(some: Ranges, others: Ranges) -> None:
    mine, its = set(single(some)), set(single(others))
    for made, wanted in ((some.united(), mine), (some.without(others), mine - its)):
        assert single(made) == sorted(wanted)
        assert all((a[:2] != b[:2]) or a[3] < b[2] for a, b in pairwise(map(astuple, made)))
    assert some.meets(others) == bool(mine & its)
    stored = json.loads(json.dumps(some.united().by_partition()))
    assert Ranges.from_partitions(stored) == some.united()
