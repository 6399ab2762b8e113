"""The active timeline between its bounds, and nothing lost by it: rows, times, the callers' own keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.history import History
from hudilake.format.timeline.instant import CLEAN, COMMIT, DELTA_COMMIT, ROLLBACK, Instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.read import Incremental, TableReader
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean, due, oldest_retained
from hudilake.services.compaction import schedule
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from hudilake.table.table import HudiTable
from tests.hudilake.lake import storage_at
from tests.hudilake.metadata.below import Counting
from tests.hudilake.services.cleaning.aged import COMPACTION, Aged

SMALL = ArchivalConfig(min_commits=4, max_commits=6)
CLEANING = CleaningConfig(commits=3)
indexed = pytest.mark.parametrize("indexed", [False, True])


def active(path: Path) -> list[Instant]:
    """The completed instants on storage."""
    return Timeline.load(storage_at(path)).completed_actions({COMMIT, DELTA_COMMIT, CLEAN, ROLLBACK})


def writes(path: Path) -> list[Instant]:
    return [i for i in active(path) if i.action in (COMMIT, DELTA_COMMIT)]


def archived(path: Path) -> list[str]:
    """The requested times of the history, with repetitions."""
    history = History.load(storage_at(path))
    return sorted(t for e in history.entries for t in history.read(e)["instantTime"].to_pylist())


@pytest.mark.full
@indexed
def test_bounded_over_hundreds_of_commits(tmp_path: Path, indexed: bool) -> None:
    """Commits, compactions, cleans, rollbacks and archivals; the index holds archival back to its own compactions."""
    aged = Aged(tmp_path, indexed, partitioned=False)
    bounds = ArchivalConfig(min_commits=6, max_commits=10)
    everything: set[str] = set()
    most, files = 0, []
    for turn in range(200):
        aged.write(extra={"every": str(turn)} | ({"rare": "kept"} if turn == 2 else {}))
        if turn % 3 == 2:
            aged.compact()
        if turn % 20 == 5:
            aged.table.abort(aged.table.begin())
        if due(aged.table, CLEANING):
            clean(aged.table, CLEANING)
        everything |= {i.requested_time for i in active(tmp_path)}
        archive(aged.table, bounds, CLEANING)
        most = max(most, len(active(tmp_path)))
        files.append(len(list(tmp_path.glob(".*.log.*"))) + len(list(tmp_path.glob("*.parquet"))))
        if turn % 50 == 49:
            aged.reopen()
            aged.check()
    assert most <= 2 * (bounds.max_commits + 6)  # cleans and rollbacks are not counted; the index adds up to four
    assert max(files[100:]) <= max(files[:100])
    old = archived(tmp_path)
    assert len(old) == len(set(old)) > 200
    assert set(old) | {i.requested_time for i in active(tmp_path)} == everything
    assert not set(old) & {i.requested_time for i in active(tmp_path)}
    fresh = HudiTable.open(storage_at(tmp_path))
    assert (fresh.extra_metadata("every"), fresh.extra_metadata("rare"), fresh.extra_metadata("no")) == (
        "199",
        "kept",
        None,
    )
    assert fresh.schema == aged.table.schema
    assert len(list((tmp_path / ".hoodie/timeline/history").iterdir())) < 50


@indexed
def test_what_leaves_and_what_stays(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(3)
    before = writes(tmp_path)
    assert archive(aged.table, ArchivalConfig(8, 9)) == 0
    count = archive(aged.table, SMALL)
    after = writes(tmp_path)
    assert after == before[len(before) - len(after) :]
    assert len(after) == 4 if not indexed else 4 <= len(after) <= 8
    assert count == len(before) - len(after) > 0
    assert [i.requested_time for i in before[:count]] == archived(tmp_path)
    assert aged.table.timeline.completed() == after
    assert archive(aged.table, SMALL) == 0
    aged.check()
    aged.live(2)
    aged.reopen()
    aged.check()


@indexed
def test_asking_costs_nothing_while_the_timeline_is_short(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(1)
    counting = Counting(storage_at(tmp_path))
    table = aged.reopen(counting)
    counting.calls.clear()
    assert archive(table, SMALL, CLEANING) == 0
    assert counting.calls == []


@indexed
def test_cleaning_comes_first(tmp_path: Path, indexed: bool) -> None:
    """What cleaning retains stays active, with two writes to spare: the bounds move up by as much."""
    aged = Aged(tmp_path, indexed)
    aged.live(8)
    assert clean(aged.table, CleaningConfig(commits=10)) is not None
    retained = oldest_retained(aged.table.timeline, CleaningConfig(commits=10))
    assert retained is not None
    assert archive(aged.table, SMALL, CleaningConfig(commits=10)) > 0
    left = writes(tmp_path)
    assert len(left) == 11 if not indexed else 11 <= len(left) <= 14
    assert left[1] == retained or indexed
    readable = 0
    for instant, rows in aged.moments:
        if instant >= retained.requested_time:
            assert aged.as_of(instant) == rows
            readable += 1
    assert readable == 10
    with pytest.raises(UnsupportedError, match="cleaned"):
        aged.as_of(aged.moments[0][0])


@indexed
def test_pending_instants_hold_archival(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(1)
    requested = schedule(aged.table, COMPACTION)
    assert requested is None
    aged.write()
    requested = schedule(aged.table, COMPACTION)
    assert requested is not None
    for _ in range(8):
        aged.write()
    archive(aged.table, SMALL)
    left = writes(tmp_path)
    assert left[0].requested_time == aged.moments[2][0] or indexed  # the compaction kept a delete in a log file
    assert left[0].requested_time <= aged.moments[3][0] < requested.requested_time
    aged.check()


def test_log_files_of_the_newest_slices_hold_archival_without_an_index(tmp_path: Path) -> None:
    """hudi-rs ignores log files of archived commits where there is no metadata table."""
    aged = Aged(tmp_path, indexed=False)
    for _ in range(8):
        aged.write()
    assert archive(aged.table, SMALL) == 0
    aged.compact()
    aged.live(1)
    assert archive(aged.table, SMALL) > 0
    aged.check()


@indexed
def test_savepoints_hold_archival(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(1)
    saved = aged.moments[1][0]
    create_savepoint(aged.table, saved, "me")
    aged.live(4)
    clean(aged.table, CLEANING)
    archive(aged.table, SMALL, CLEANING)
    assert writes(tmp_path)[0].requested_time == saved
    assert aged.as_of(saved) == aged.moments[1][1]
    delete_savepoint(aged.table, saved)
    clean(aged.table, CLEANING)
    assert archive(aged.table, SMALL, CLEANING) > 0
    assert writes(tmp_path)[0].requested_time > saved
    aged.check()


def test_an_index_that_was_never_compacted_holds_everything(tmp_path: Path) -> None:
    aged = Aged(tmp_path, True)
    index = aged.table.metadata_table
    assert index is not None
    for _ in range(2):
        aged.write()
    assert archive(aged.table, ArchivalConfig(min_commits=1, max_commits=1 + 1)) == 0
    before = writes(tmp_path)
    aged.live(3)
    count = archive(aged.table, SMALL)
    left = writes(tmp_path)
    compacted = [i.requested_time for i in index.timeline.completed() if i.action == COMMIT][-1]
    later = [w for w in left if (w.completion_time or "") > compacted]
    assert count > 0
    assert later[0] == left[0] or len(left) == SMALL.min_commits
    assert before[0] not in left


@indexed
def test_reading_windows_of_commits_after_archival(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(4)
    done = {i.requested_time: i.completion_time or "" for i in aged.table.timeline.completed()}
    assert archive(aged.table, SMALL) > 0
    reader = TableReader.open(str(tmp_path))
    for at, (instant, _) in enumerate(aged.moments[:-1]):
        plan = reader.plan(Incremental(done[instant]), columns=["id", "_hoodie_commit_time"])
        found = {r["_hoodie_commit_time"] for batch in reader.batches(plan) for r in batch.to_pylist()}
        assert found <= {i for i, _ in aged.moments[at + 1 :]}
    everything = reader.plan(Incremental(""), columns=["id", "day"])
    rows = [r for batch in reader.batches(everything) for r in batch.to_pylist()]
    assert {(r["day"], r["id"]) for r in rows} == {(r["day"], r["id"]) for r in aged.model.rows()}


def test_a_reader_that_listed_before_still_finds_a_commit(tmp_path: Path) -> None:
    """Another process archives: what it moved is read from the history."""
    aged = Aged(tmp_path, indexed=False)
    aged.live(3)
    old = HudiTable.open(storage_at(tmp_path))
    assert archive(aged.table, SMALL) > 0
    first = old.timeline.completed()[0]
    assert old.timeline.commit_metadata(first).stats
    assert old.extra_metadata("none") is None


def test_values_beside_an_archived_key_are_the_newest_archived_ones(tmp_path: Path) -> None:
    aged = Aged(tmp_path, indexed=False)
    for turn in ("1", "2"):
        aged.table.commit(aged.table.begin(), [], {"rare": turn, f"only{turn}": turn})
    aged.live(4)
    assert archive(aged.table, SMALL) > 0
    fresh = HudiTable.open(storage_at(tmp_path))
    assert all("rare" not in fresh.timeline.commit_metadata(i).extra for i in fresh.timeline.completed())
    assert fresh.extra_values("rare", "only1", "only2", "no") == {"rare": "2", "only1": "1", "only2": "2"}
    assert fresh.extra_values("no", "rare") == {}


@pytest.mark.parametrize(("least", "most"), [(0, 3), (3, 3), (5, 2)])
def test_bounds_that_are_none(least: int, most: int) -> None:
    with pytest.raises(ConfigError):
        ArchivalConfig(least, most)


def test_keys_that_only_matter_while_they_are_new_do_not_fill_the_history(tmp_path: Path) -> None:
    aged = Aged(tmp_path, indexed=False)
    for turn in range(12):
        aged.write(extra={"state": f"{turn}" * 1000, "every": str(turn)} if turn < 6 else {"every": str(turn)})
    aged.compact()
    assert archive(aged.table, ArchivalConfig(4, 6, newest_only=("state",))) > 6
    history = History.load(storage_at(tmp_path))
    rows = [row for entry in history.entries for row in history.read(entry).to_pylist()]
    kept = [CommitMetadata.from_bytes(row["metadata"], "").extra for row in rows if row["action"] == DELTA_COMMIT]
    assert [extra["every"] for extra in kept] == [str(n) for n in range(len(kept))]
    assert not any("state" in extra for extra in kept)
    assert HudiTable.open(storage_at(tmp_path)).extra_metadata("state") == "5" * 1000
    aged.check()
