"""What commits say of hours stays small, and never says too little; files are shared out whole."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from binlake.load.replay.coverage import MOST_FILES, DumpPortion, fewer, portions, united, with_hours
from binlake.load.replay.engine import shared_out
from binlake.position.commit_record import CommitNotes
from binlake.position.recorded import DumpHours
from binlake.source.dump_layout import DumpFile

Hours = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 5)).map(lambda r: (r[0], r[0] + r[1])), max_size=20)


def hours(ranges: list[tuple[int, int]]) -> set[int]:
    return {hour for first, end in ranges for hour in range(first, end)}


@given(Hours)
def test_ranges_that_touch_become_one(ranges: list[tuple[int, int]]) -> None:
    found = united(ranges)
    assert hours(found) == hours(ranges)
    assert all(a[1] < b[0] for a, b in pairwise(found))


@given(Hours, st.integers(1, 6))
def test_fewer_ranges_cover_no_less(ranges: list[tuple[int, int]], most: int) -> None:
    whole = united(ranges)
    found = fewer(whole, most)
    assert len(found) <= max(most, 0) or len(whole) <= most
    assert hours(found) >= hours(whole)
    assert found == whole or len(whole) > most


def test_the_smallest_gaps_are_filled() -> None:
    assert fewer([(0, 1), (2, 3), (10, 11), (12, 13)], 2) == [(0, 3), (10, 13)]


def test_two_dumps_are_told_apart() -> None:
    said: DumpHours = {}
    for hour in range(0, 900, 3):
        said = with_hours(said, "file:///a", (hour, hour + 1))
    said = with_hours(said, "file:///b", (5, 6))
    assert said["file:///b"] == [(5, 6)]
    assert len(said["file:///a"]) == 200
    assert hours(said["file:///a"]) >= set(range(0, 900, 3))
    (text,) = CommitNotes(hours=said).to_extra().values()
    assert len(text) < 5_000


def files(sizes: list[int]) -> list[DumpFile]:
    return [DumpFile(at // 3, f"f{at:05d}.jsonl", size, 0) for at, size in enumerate(sizes)]


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 60))
def test_portions_are_whole_files_of_a_bounded_size(sizes: list[int], most: int) -> None:
    given_files = files(sizes)
    found = list(portions(given_files, most, {f.path: f.size for f in given_files}))
    assert [f for p in found for f in p.files] == given_files
    assert all(sum(f.size for f in p.files) <= most or len(p.files) == 1 for p in found)


def test_portions_name_a_bounded_number_of_files() -> None:
    given_files = files([1] * (MOST_FILES + 1))
    assert [len(p.files) for p in portions(given_files, 1 << 40, {f.path: 1 for f in given_files})] == [MOST_FILES, 1]


def test_a_portion_has_the_name_of_its_files() -> None:
    some = tuple(files([1, 2]))
    assert DumpPortion(some).name == DumpPortion(some, frozenset()).name
    assert DumpPortion(some).name != DumpPortion(some[:1]).name
    assert DumpPortion(some).name != DumpPortion((some[0], DumpFile(0, some[1].path, 2, 1))).name
    said = json.loads(DumpPortion(some).recorded("file:///a", ()).to_text())
    assert said["files"] == [[0, "f00000.jsonl", 1, 0], [0, "f00001.jsonl", 2, 0]]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30), st.integers(1, 8))
def test_shares_are_whole_files_evenly(sizes: list[int], tasks: int) -> None:
    given_files = files(sizes)
    shares = shared_out(given_files, tasks)
    assert sorted(f for share in shares for f in share) == given_files
    assert len(shares) <= tasks
    loads = [sum(f.size for f in share) for share in shares]
    assert max(loads) - min(loads) <= max(sizes) + len(sizes)
