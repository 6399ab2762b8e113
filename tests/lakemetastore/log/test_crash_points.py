"""Every call of a log's writer gets every answer; the next process goes on; no change is lost or doubled.

The writer commits across a snapshot and a trim. On files each call of the storage is such a point, on the other stores
each call of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudilake.errors import LakeError
from hudilake.storage import OutcomeUnknownError
from hudilake.storage.local import LocalStorage
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.stores.files import FileStore
from lakemetastore.log.stores.opening import open_store
from lakemetastore.log.versioned import VersionedLog
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed, answers_of
from tests.hypothesis_profile import is_nightly
from tests.lakemetastore.log.counters import FOLD, Change, Counters, counting
from tests.lakemetastore.log.dying_log_store import DyingLogStore

LOG = "tables/a"
POLICY = LogPolicy(background=False, snapshot_every=3)
_BEFORE, _COMMITS, _AFTER = 4, 3, 8
_ARRIVALS = (0, 4, 25, 1 << 30)

#: Gives a store with a fate, at a path.
Opened = Callable[[Path, Fate], LogStore]


def _files(path: Path, fate: Fate) -> LogStore:
    return FileStore(DyingStore(LocalStorage(path, fsync=False), fate))


def _sqlite(path: Path, fate: Fate) -> LogStore:
    path.mkdir(exist_ok=True)
    return DyingLogStore(open_store(f"sqlite:///{path}/log.db"), fate)


def _lmdb(path: Path, fate: Fate) -> LogStore:
    return DyingLogStore(open_store(f"lmdb:{path}"), fate)


def _log(store: LogStore) -> VersionedLog[Counters, Change]:
    return VersionedLog(store, LOG, FOLD, POLICY)


def _count(store: LogStore, name: str, times: int) -> list[int]:
    """Commit some numbers; those that were answered. A commit that fails is not done again."""
    log, answered = _log(store), []
    for _ in range(times):
        try:
            answered.append(log.commit(counting(name)).state.numbers[name])
        except LakeError:
            continue
    return answered


def _points(calls: list[tuple[str, str]]) -> Iterator[tuple[int, Answer, int]]:
    turn = 0
    for at, (method, _) in enumerate(calls):
        for answer in answers_of(method):
            turn += 1
            yield at, answer, _ARRIVALS[turn % len(_ARRIVALS)]


def _live(opened: Opened, path: Path, at: int, answer: Answer, arrives_at: int) -> list[str]:
    """What is wrong after a writer met this answer and another one went on."""
    _count(opened(path, Fate()), "a", _BEFORE)
    fate, answered = Fate(at, answer), []
    store, log = opened(path, fate), None
    try:
        log = _log(store)
        for _ in range(_COMMITS):
            try:
                answered.append(log.commit(counting("a")).state.numbers["a"])
            except LakeError:
                if answer is Answer.UNANSWERED:
                    return ["a write whose answer was lost was not read back"]
    except Killed:
        pass
    following = fate.after(arrives_at)
    other = opened(path, following)
    went_on = _count(other, "b", _AFTER)
    following.arrive()
    fresh, found = _log(opened(path, Fate())).state(), []
    state = fresh.state
    if state.wrong or fresh.version != state.changes:
        found.append(f"{state.changes} changes in {fresh.version} versions, wrong: {state.wrong}")
    if went_on != list(range(1, _AFTER + 1)) or state.numbers["b"] != _AFTER:
        found.append(f"the next process was told {went_on}, the log has {state.numbers}")
    if answered != sorted(set(answered)) or (answered and answered[-1] > state.numbers["a"]):
        found.append(f"the writer was told {answered}, the log has {state.numbers}")
    doubt = 1 if fate.is_deadly else 0
    if state.numbers["a"] > _BEFORE + len(answered) + doubt:
        found.append(f"the writer was told {answered}, the log has more: {state.numbers}")
    if _log(other).state() != fresh or (log is not None and not fate.is_deadly and log.state() != fresh):
        found.append("processes have different states")
    return found


@pytest.mark.first(1)
@pytest.mark.parametrize("opened", [_files, _sqlite, _lmdb], ids=["files", "sqlite", "lmdb"])
def test_no_change_is_lost_or_doubled_whatever_a_call_answers(opened: Opened, tmp_path: Path) -> None:
    counted = Fate()
    _count(opened(tmp_path / "counted", Fate()), "a", _BEFORE)
    _count(opened(tmp_path / "counted", counted), "a", _COMMITS)
    methods = [method for method, _ in counted.calls]
    # Three commits, a snapshot, and the trim of what the older snapshot covers.
    assert methods.count("create") == _COMMITS
    assert methods.count("write") == 1
    assert methods.count("delete") >= 1
    points = list(_points(counted.calls))
    step = 1 if is_nightly() or opened is _files else 2
    faults = [
        f"call {at} {' '.join(counted.calls[at])} is {answer}, arrives before {arrives}: {fault}"
        for at, answer, arrives in points[::step]
        for fault in _live(opened, tmp_path / f"{at}-{answer}", at, answer, arrives)
    ]
    assert faults == []


def test_a_write_that_arrives_after_a_trim_changes_nothing(tmp_path: Path) -> None:
    """On files a free name says nothing once entries are forgotten."""
    store = FileStore(LocalStorage(tmp_path, fsync=False))
    _count(store, "a", 5)
    behind = _log(store)
    stale = LocalStorage(tmp_path, fsync=False)
    assert behind.state().version == 5
    entry = stale.read(f"{LOG}/{5:020d}.entry")
    _count(store, "b", 12)
    assert stale.stat(f"{LOG}/{6:020d}.entry") is None
    stale.create(f"{LOG}/{6:020d}.entry", entry)
    assert behind.state() == _log(store).state()
    assert behind.state().state.numbers == {"a": 5, "b": 12}
    with pytest.raises(OutcomeUnknownError, match="the log was trimmed past the entry"):
        store.append(LOG, 10, entry)
    assert stale.stat(f"{LOG}/{10:020d}.entry") is None
    assert _log(store).state() == behind.state()
