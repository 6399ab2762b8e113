"""Snapshot, time travel, read optimized and incremental, each against what the table held."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudilake.errors import ConfigError, TransientError, UnsupportedError
from hudilake.format.timeline.avro_container import encode_container
from hudilake.format.timeline.instant import CLEAN, Instant, State
from hudilake.read import Incremental, Query, ReadOptimized, Snapshot, TableReader, instant_of
from hudilake.read.question import ask
from hudilake.storage.base import Files
from tests.hudilake.lake import commit, deletes, new_table, upserts, write_history
from tests.hudilake.read.lakes import Counting, ids, random_table, row
from tests.hudilake.read.lakes import new_table as indexed_table
from tests.hudilake.services.compaction import complete_compaction, request_compaction, write_base_files


def named(reader: TableReader, query: Query, **options: Any) -> list[tuple[int, str]]:  # noqa: ANN401
    """(id, name) of the rows of a query."""
    plan = reader.plan(query, columns=["id", "name"], **options)
    assert not plan.warnings
    return sorted((r["id"], r["name"]) for batch in reader.batches(plan) for r in batch.to_pylist())


def test_time_travel_to_every_commit(tmp_path: Path) -> None:
    table = indexed_table(tmp_path, buckets=2)
    state: dict[int, str] = {}
    seen = []
    for number in range(1, 7):
        alive, gone = [number, number + 1], [number - 1]
        instant = table.write([row(key, number, name=f"{number}") for key in alive], [row(key, number) for key in gone])
        state = {key: name for key, name in {**state, **dict.fromkeys(alive, str(number))}.items() if key not in gone}
        seen.append((instant, sorted(state.items())))
        if number in (2, 4):
            seen.append((table.compact(), sorted(state.items())))
    reader = TableReader.open(str(tmp_path))
    for instant, expected in seen:
        assert named(reader, Snapshot(instant)) == expected
        assert named(reader, Snapshot(instant), condition="id = 3") == [pair for pair in expected if pair[0] == 3]
    assert named(reader, Snapshot("1" * 17)) == []
    assert named(reader, Snapshot()) == seen[-1][1]


def test_time_travel_reads_the_schema_of_its_time(tmp_path: Path) -> None:
    table = indexed_table(tmp_path, buckets=1)
    first = table.write([row(1, 1)])
    wider = table.table.schema.append(pa.field("later", pa.int64()))
    table.write([row(2, 2, later=5)], schema=wider)
    reader = TableReader.open(str(tmp_path))
    assert ids(reader, reader.plan(condition="later IS NULL", columns=["id"])) == [1]
    assert ids(reader, reader.plan(condition="later = 5", columns=["id"])) == [2]
    with pytest.raises(UnsupportedError, match="later"):
        reader.plan(Snapshot(first), columns=["later"])


def test_read_optimized_is_the_state_of_the_last_compaction(tmp_path: Path) -> None:
    table = indexed_table(tmp_path, buckets=2)
    table.write([row(key, 1, name="old") for key in range(6)])
    assert named(TableReader.open(str(tmp_path)), ReadOptimized()) == []
    table.compact()
    table.write([row(2, 2, name="new")], [row(3, 2)])
    reader = TableReader.open(str(tmp_path))
    assert named(reader, ReadOptimized()) == [(key, "old") for key in range(6)]
    assert named(reader, ReadOptimized(), condition="id = 3 AND name = 'old'") == [(3, "old")]
    assert reader.plan(ReadOptimized()).files == 6
    assert reader.plan().files == 8


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2])
def test_every_window_of_commits(tmp_path: Path, seed: int) -> None:
    """After ``begin``, up to ``end``: the rows that those commits left, as they were at ``end``."""
    random_table(tmp_path, seed, commits=7)
    reader = TableReader.open(str(tmp_path))
    commits = reader.table.timeline.completed()
    for end in commits:
        at_end = reader.plan(Snapshot(end.requested_time), columns=["id", "_hoodie_commit_time"])
        rows = [found for batch in reader.batches(at_end) for found in batch.to_pylist()]
        for begin in ("", *(c.completion_time or "" for c in commits)):
            if begin > (end.completion_time or ""):
                with pytest.raises(ConfigError, match="the window is empty"):
                    Incremental(begin, end.completion_time)
                continue
            inside = {
                c.requested_time for c in commits if begin < (c.completion_time or "") <= (end.completion_time or "")
            }
            expected = sorted(found["id"] for found in rows if found["_hoodie_commit_time"] in inside)
            plan = reader.plan(Incremental(begin, end.completion_time), columns=["id"])
            assert ids(reader, plan) == expected
            assert not plan.warnings
            again = reader.plan(Incremental(begin, end.completion_time), "id % 2 = 0 OR id < 12", ["id"])
            assert {key for key in expected if key < 12} <= set(ids(reader, again)) <= set(expected)


def test_an_incremental_read_skips_what_the_commits_did_not_touch(tmp_path: Path) -> None:
    table = indexed_table(tmp_path)
    table.write([row(key, 1) for key in range(60)])
    table.compact()
    table.write([row(7, 2)])
    reader = TableReader.open(str(tmp_path))
    commits = reader.table.timeline.completed()
    plan = reader.plan(Incremental(commits[1].completion_time or ""), columns=["id"])
    assert (ids(reader, plan), len(plan.slices), plan.files) == ([7], 1, 2)
    plan = reader.plan(Incremental(commits[0].completion_time or ""), columns=["id"])
    assert (ids(reader, plan), len(plan.slices)) == ([7], 1)  # the compaction between has written no row
    assert ids(reader, reader.plan(Incremental(commits[-1].completion_time or ""), columns=["id"])) == []


def test_the_end_counts_completion_times_not_requested_ones(tmp_path: Path) -> None:
    """A compaction requested before a commit completes after it: at the commit's completion its base files are not
    there yet, and nothing that follows may be seen."""
    table = new_table(tmp_path, buckets=1)
    commit(table, upserts(range(4), 100, "a"))
    pending, slices = request_compaction(table)
    commit(table, upserts([1], 200, "b"))
    end = table.timeline.completed()[-1].completion_time
    complete_compaction(table, pending, write_base_files(table, pending, slices))
    commit(table, upserts([2], 300, "c") + deletes([3], 300))
    reader = TableReader.open(str(tmp_path))
    assert named(reader, Incremental("", end)) == [(0, "a0"), (1, "b1"), (2, "a2"), (3, "a3")]
    assert named(reader, Incremental(end or "")) == [(2, "c2")]
    assert named(reader, Snapshot()) == [(0, "a0"), (1, "b1"), (2, "c2")]


def test_archived_commits_have_their_completion_times_in_the_history(tmp_path: Path) -> None:
    table = new_table(tmp_path, buckets=1)
    instants = [commit(table, upserts([number], 100 + number)) for number in range(4)]
    completed = [c.completion_time or "" for c in table.timeline.completed()]
    write_history(tmp_path, dict(zip(instants[:2], completed[:2], strict=True)))
    for file in (tmp_path / ".hoodie/timeline").iterdir():
        if file.name[:17] in instants[:2]:
            file.unlink()
    reader = TableReader.open(str(tmp_path))
    assert [key for key, _ in named(reader, Incremental(completed[0]))] == [1, 2, 3]
    assert [key for key, _ in named(reader, Incremental(completed[1]))] == [2, 3]
    assert [key for key, _ in named(reader, Incremental("", completed[2]))] == [0, 1, 2]
    with pytest.raises(UnsupportedError, match="archived"):
        reader.plan(Incremental("", completed[1]))


# -- cleaning


def clean(path: Path, instant: str, earliest: str, files: Iterable[str]) -> None:
    """What a cleaner leaves: files gone, and an instant that says so."""
    for name in files:
        (path / name).unlink()
    record = {
        "startCleanTime": instant,
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 1,
        "earliestCommitToRetain": earliest,
        "lastCompletedCommitTimestamp": instant,
        "partitionMetadata": {},
        "version": 2,
        "bootstrapPartitionMetadata": None,
        "extraMetadata": None,
    }
    done = Instant(instant, CLEAN, State.COMPLETED, str(int(instant) + 1))
    (path / done.path).write_bytes(encode_container("HoodieCleanMetadata", record))


def compacted(path: Path) -> tuple[list[str], list[str]]:
    """A table of a commit, a compaction and a commit: (their instants, the log files that the base file replaces)."""
    table = new_table(path, buckets=1, partitioned=False)
    first = commit(table, upserts(range(4), 100, "a"))
    old = [file.name for file in path.glob(".*.log.*")]
    pending, slices = request_compaction(table)
    middle = complete_compaction(table, pending, write_base_files(table, pending, slices))
    return [first, middle, commit(table, upserts([1], 200, "b"))], old


def test_a_time_whose_files_were_cleaned_is_refused(tmp_path: Path) -> None:
    instants, old = compacted(tmp_path)
    reader = TableReader.open(str(tmp_path))
    assert named(reader, Snapshot(instants[0])) == [(key, f"a{key}") for key in range(4)]
    clean(tmp_path, str(int(instants[-1]) + 5), instants[1], old)
    reader = TableReader.open(str(tmp_path))
    for query in (Snapshot(instants[0]), Incremental("", reader.table.timeline.completed()[0].completion_time)):
        with pytest.raises(UnsupportedError, match="cleaned"):
            reader.plan(query)
    assert named(reader, Snapshot(instants[1])) == [(key, f"a{key}") for key in range(4)]
    assert named(reader, Snapshot()) == [(0, "a0"), (1, "b1"), (2, "a2"), (3, "a3")]


class Overtaken(Counting):
    """Between reading the timeline and listing files, another process compacts and cleans."""

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        if prefix == "" and self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
        return super().list(prefix, start_after)

    meanwhile: Any = None


@pytest.mark.parametrize("overtaken", [False, True])
def test_a_clean_between_timeline_and_listing_is_noticed(tmp_path: Path, overtaken: bool) -> None:
    table = new_table(tmp_path, buckets=1, partitioned=False)
    commit(table, upserts(range(4), 100, "a"))
    old = [file.name for file in tmp_path.glob(".*.log.*")]
    storage = Overtaken(table.storage)

    def meanwhile() -> None:
        pending, slices = request_compaction(table)
        done = complete_compaction(table, pending, write_base_files(table, pending, slices))
        clean(tmp_path, str(int(done) + 5), done, old)

    reader = TableReader.open(storage)
    storage.meanwhile = meanwhile
    expected = [(key, f"a{key}") for key in range(4)]
    if overtaken:
        assert named(reader, Snapshot()) == expected
        return
    control = reader._current_planner()  # one attempt without the look back: the old files gone, the new not counted
    plan = control.plan(ask(reader.table, Snapshot(), None, ["id"]), count_all=False, batch_rows=10)
    assert ids(reader, plan) == []


def test_a_file_that_goes_while_a_plan_is_read(tmp_path: Path) -> None:
    compacted(tmp_path)
    reader = TableReader.open(str(tmp_path))
    plan = reader.plan()
    for file in tmp_path.glob(".*.log.*"):
        file.unlink()
    with pytest.raises(TransientError, match="cleaned during the read"):
        list(reader.batches(plan))


# -- moments


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("20240229123456789", "20240229123456789"),
        ("20240229123456", "20240229123456999"),
        ("2024-02-29", "20240229000000000"),
        ("2024-02-29 12:34:56", "20240229123456000"),
        ("2024-02-29T12:34:56.789", "20240229123456789"),
    ],
)
def test_moments(text: str, instant: str) -> None:
    assert instant_of(text) == instant


NO_DAYS = ["2024-13-01", "2023-02-29", "2024-02-30", "2024-02-29 24:00:00", "2024-02-29 12:60:00"]
NO_DAYS += ["20241301000000", "20241301000000000", "99999999999999999"]
ARABIC = "2024-02-29".translate(
    str.maketrans("0123456789", "\u0660\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668\u0669")
)


@pytest.mark.parametrize("text", ["", "yesterday", "2024-2-9", "2024-02-29 12:34", *NO_DAYS, ARABIC])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a moment"):
        instant_of(text)


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    first, second = "20240229123456000", "20240229123456002"
    with pytest.raises(ConfigError, match="the window is empty"):
        Incremental(second, first)
    assert Incremental(first, first) == Incremental(first, first)  # what a reader asks that has all
