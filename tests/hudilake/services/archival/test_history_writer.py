"""The history as it is written: its files, levels and manifests, and what a death leaves."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.history import EXTRA_ENTRY, HISTORY_PATH, History
from hudilake.format.timeline.history_writer import move_to_history
from hudilake.format.timeline.instant import CLEAN, COMMIT, COMPACTION, DELTA_COMMIT, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage
from tests.hudilake.failing_storage import Killed
from tests.hudilake.lake import storage_at
from tests.hudilake.metadata.below import Counting, Dying
from tests.selection import first

#: ``make test`` takes one of so many calls to die at, and ``make test-rest`` the others.
SHARES = 3


def time(number: int) -> str:
    return f"20240101000000{number:03d}"


def add(storage: Storage, number: int, action: str = DELTA_COMMIT, extra: dict[str, str] | None = None) -> Instant:
    """A completed instant with all its files; its completion time is half an instant later."""
    done = Instant(time(10 * number), action, State.COMPLETED, time(10 * number + 5))
    started = Instant(done.requested_time, COMPACTION if action == COMMIT else action, State.REQUESTED)
    storage.create(started.path, b"plan" if action != DELTA_COMMIT else b"")
    storage.create(started.in_state(State.INFLIGHT).path, b"")
    storage.create(done.path, CommitMetadata(extra=extra or {}).to_bytes())
    return done


def rows(storage: Storage) -> list[dict[str, object]]:
    """All that the history holds, file by file."""
    history = History.load(storage)
    return [row for entry in history.entries for row in history.read(entry).to_pylist()]


def names(storage: Storage) -> list[str]:
    return sorted(info.path.rpartition("/")[2] for info in storage.list(HISTORY_PATH))


def test_what_a_row_says(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    instants = [add(storage, 1), add(storage, 2, COMMIT), add(storage, 3, CLEAN)]
    bodies = [storage.read(i.path) for i in instants]
    move_to_history(storage, instants)
    assert rows(storage) == [
        {
            "instantTime": i.requested_time,
            "completionTime": i.completion_time,
            "action": i.action,
            "metadata": body,
            "plan": plan,
            "version": 1,
        }
        for i, body, plan in zip(instants, bodies, [None, b"plan", b"plan"], strict=True)
    ]
    assert names(storage) == [f"{time(10)}_{time(30)}_0.parquet", "_version_", "manifest_1"]
    assert storage.list(".hoodie/timeline") == []


@pytest.mark.full
@pytest.mark.parametrize("share", first(1, range(SHARES)))
def test_death_at_every_call(tmp_path: Path, share: int) -> None:
    """No instant is lost or held twice, none leaves a hole behind it, and the next archival finishes.

    The tenth file of a level is written, so that levels are merged and old files deleted.
    """

    def build(path: Path) -> tuple[Storage, list[Instant]]:
        storage = storage_at(path)
        for number in range(9):
            move_to_history(storage, [add(storage, number)])
        return storage, [add(storage, n, COMMIT if n == 10 else DELTA_COMMIT) for n in range(9, 12)]

    storage, instants = build(tmp_path / "count")
    counting = Counting(storage)
    move_to_history(counting, instants)
    assert len(counting.calls) > 40
    everything = [time(10 * n) for n in range(12)]
    for at in range(share, len(counting.calls), SHARES):
        for before in (True, False):
            storage, instants = build(tmp_path / f"{at}{before}")
            with pytest.raises(Killed):
                move_to_history(Dying(storage, at=at, before=before), instants)
            active = [i.requested_time for i in Timeline.load(storage).completed()]
            assert active == everything[len(everything) - len(active) :]
            held = [str(row["instantTime"]) for row in rows(storage)]
            assert len(held) == len(set(held))
            assert set(held) | set(active) == set(everything)
            move_to_history(storage, instants)
            held = [str(row["instantTime"]) for row in rows(storage)]
            assert sorted(held) == everything
            assert storage.list(".hoodie/timeline") == []


def test_control_deleting_the_newest_first_leaves_a_hole(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    instants = [add(storage, n) for n in range(4)]
    storage.delete(instants[2].path)
    for state in (State.REQUESTED, State.INFLIGHT):
        storage.delete(instants[2].in_state(state).path)
    timeline = Timeline.load(storage)
    assert [timeline.is_completed(i.requested_time) for i in instants] == [True, True, False, True]


def test_without_the_version_file_the_newest_manifest_counts(tmp_path: Path) -> None:
    """Hudi deletes the file before it writes the next one."""
    storage = storage_at(tmp_path)
    for number in range(3):
        move_to_history(storage, [add(storage, number)])
    storage.delete(f"{HISTORY_PATH}/_version_")
    assert len(rows(storage)) == 3
    move_to_history(storage, [add(storage, 3)])
    assert len(rows(storage)) == 4
    assert storage.read(f"{HISTORY_PATH}/_version_") == b"4"


def test_questions_about_one_instant_read_one_file(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    for number in range(25):
        move_to_history(storage, [add(storage, number)])
    counting = Counting(storage)
    history = History.load(counting)
    assert len(history.files) == 7
    counting.calls.clear()
    assert history.completion_time(time(130)) == time(135)
    assert history.completion_time(time(130)) == time(135)
    assert history.completion_time(time(137)) is None
    assert len(counting.calls) == 1


def test_the_newest_value_of_a_key(tmp_path: Path) -> None:
    """Found in the footers, whatever merging the files have been through; in the rows where Hudi has written them."""
    storage = storage_at(tmp_path)
    for number in range(25):
        extra = {"every": str(number)} | ({"once": "3"} if number == 3 else {})
        move_to_history(storage, [add(storage, number, extra=extra)])
    counting = Counting(storage)
    history = History.load(counting)
    counting.calls.clear()
    assert (history.newest_extra("every"), history.newest_extra("once"), history.newest_extra("no")) == (
        "24",
        "3",
        None,
    )
    assert {method for method, _ in counting.calls} == {"read_range"}
    assert len(counting.calls) == len(history.files)
    for entry in history.entries:  # as Hudi writes them: without our entry
        table = history.read(entry)
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        storage.write(entry.path, sink.getvalue().to_pybytes())
    by_rows = History.load(storage)
    sized = tuple(type(e).named(e.name, (tmp_path / e.path).stat().st_size) for e in by_rows.entries)
    by_rows = History(storage, sized)
    assert all(EXTRA_ENTRY.encode() not in by_rows._footer(entry) for entry in by_rows.entries)
    assert (by_rows.newest_extra("every"), by_rows.newest_extra("once")) == ("24", "3")


def test_a_footer_larger_than_the_guess(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    move_to_history(storage, [add(storage, 1, extra={"big": "x" * 200_000})])
    assert History.load(storage).newest_extra("big") == "x" * 200_000
