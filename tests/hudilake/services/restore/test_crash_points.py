"""A restore that dies before and after every change of the store: readers see whole states only, and the recovery ends
in the table of the wanted moment, whatever had been written of the metadata table.

The control deletes data files before the commits that name them, and must be seen to show a state that never was.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudilake.format.timeline.instant import RESTORE
from hudilake.services import restore as module
from hudilake.services.compaction import schedule
from hudilake.services.restore import restore
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable
from tests.hudilake.failing_storage import Killed, sides
from tests.hudilake.lake import data_files, ours, rs, storage_at, upserts, write
from tests.hudilake.metadata.below import Counting, Dying
from tests.hudilake.services.cleaning.aged import COMPACTION, INDEX
from tests.hudilake.services.restore.past import Past
from tests.hypothesis_profile import usually

_CHANGES = frozenset({"create", "write", "delete", "delete_tree"})
Step = Callable[[HudiTable], object]


def build(path: Path, indexed: bool) -> tuple[Past, str]:
    """A moment, and after it commits to several file groups, a compaction, one that is pending, a dead commit."""
    past = Past(path, indexed, buckets=2)
    past.live(1, commits=1)
    wanted = past.write()
    past.write(upserts(range(5), 110) + upserts(range(3), 110, day="d2"))
    past.compact()
    past.write()
    schedule(past.table, COMPACTION)
    write(past.table, past.table.begin(), upserts([70], 500))
    return past, wanted


def step_to(instant: str, indexed: bool) -> Step:
    return lambda table: restore(table, instant, INDEX if indexed else None)


def changes_of(made: Past, path: Path, step: Step) -> list[int]:
    """The places of the changes among the calls of a step."""
    past = made.copied(path)
    storage = Counting(storage_at(path))
    table = past.reopen(storage)
    storage.calls.clear()
    step(table)
    return [at for at, (method, _) in enumerate(storage.calls) if method in _CHANGES]


def only_whole_states(past: Past, wanted: str) -> None:
    """What readers see now is a state that the table had at the wanted moment or later."""
    later = [i for i, _ in past.moments]
    states = [rows for _, rows in past.moments[later.index(wanted) :]]
    assert ours(past.path) in states
    assert rs(past.path) in states


def dies_well(made: Past, path: Path, wanted: str, step: Step, at: int, before: bool) -> Past:
    """Die at a call; read; recover; read; go on."""
    past = made.copied(path)
    storage = Dying(storage_at(path), at=-1)
    table = past.reopen(storage)
    storage.calls.clear()
    storage.at, storage.before = at, before
    with pytest.raises(Killed):
        step(table)
    only_whole_states(past, wanted)
    begun = HudiTable.open(storage_at(path)).timeline
    started = any(i.action == RESTORE for i in begun.pending()) or begun.completed_actions({RESTORE})
    past.recover()
    if not started:
        step(past.table)
    is_restored(past, wanted)
    return past


def is_restored(past: Past, wanted: str) -> None:
    """The table of that moment, which goes on."""
    past.forget_after(wanted)
    timeline = past.table.timeline
    assert timeline.pending() == []
    assert [i.requested_time for i in timeline.completed()] == [i for i, _ in past.moments]
    assert len(timeline.completed_actions({RESTORE})) == 1
    assert bool(past.table.config.metadata_partitions) == past.indexed
    assert not [name for name in data_files(past.path) if not any(i in name for i, _ in past.moments)]
    past.check()
    past.live(1, commits=1)
    past.check()


@pytest.mark.full
@pytest.mark.parametrize("indexed", usually([True], [False, True]))
def test_death_at_every_change(tmp_path: Path, indexed: bool) -> None:
    made, wanted = build(tmp_path / "made", indexed)
    step = step_to(wanted, indexed)
    places = changes_of(made, tmp_path / "count", step)
    assert len(places) >= 20
    for turn, at in enumerate(places[:: 2 if indexed else 1]):
        for before in sides(turn):
            dies_well(made, tmp_path / "died", wanted, step, at, before)
            shutil.rmtree(tmp_path / "died")


@pytest.mark.full
@pytest.mark.parametrize("indexed", usually([True], [False, True]))
def test_the_recovery_dies_too(tmp_path: Path, indexed: bool) -> None:
    made, wanted = build(tmp_path / "made", indexed)
    step = step_to(wanted, indexed)
    places = changes_of(made, tmp_path / "count", step)
    dead = made.copied(tmp_path / "dead")
    storage = Dying(storage_at(dead.path), at=-1)
    table = dead.reopen(storage)
    storage.calls.clear()
    storage.at = places[len(places) // 2]
    with pytest.raises(Killed):
        step(table)

    def recovery(table: HudiTable) -> None:
        module.finish_pending_restores(table, INDEX if indexed else None)

    for at in changes_of(dead, tmp_path / "count2", recovery)[:: 3 if indexed else 1]:
        dies_well(dead, tmp_path / "again", wanted, recovery, at, before=bool(at % 2))
        shutil.rmtree(tmp_path / "again")


@contextlib.contextmanager
def data_first() -> Iterator[None]:
    """The wrong order: the data files of an instant go while it still counts."""
    undo = module._undo

    def wrong(storage: Storage, time: str, traces: module._Traces) -> None:
        for info in traces.data.get(time, []):
            storage.delete(info.path)
        undo(storage, time, traces)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_undo", wrong)
        yield


@pytest.mark.full
def test_control_data_files_before_their_commits_are_seen(tmp_path: Path) -> None:
    made, wanted = build(tmp_path / "made", indexed=False)
    step = step_to(wanted, indexed=False)
    with data_first():
        for at in changes_of(made, tmp_path / "count", step):
            try:
                dies_well(made, tmp_path / f"{at}", wanted, step, at, before=False)
            except AssertionError:
                return
    pytest.fail("no death was noticed")
