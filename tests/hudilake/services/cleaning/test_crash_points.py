"""A clean that dies before and after every storage call, with commits before the recovery; the rows are the model's, no
time that is read is wrong, nothing pending, fsck content.

The control deletes before it says what it deletes, and must be seen to give wrong answers.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudilake.errors import TransientError, UnsupportedError
from hudilake.format.files.names import in_partition
from hudilake.locking.fenced import unfenced
from hudilake.metadata.services import compaction as metadata_compaction
from hudilake.services.cleaning import CleaningConfig, clean, finish_pending, plan_clean
from hudilake.table.table import HudiTable
from tests.hudilake.failing_storage import Killed
from tests.hudilake.lake import data_files, storage_at
from tests.hudilake.metadata.below import Counting, Dying
from tests.hudilake.services.cleaning.aged import INDEX, Aged
from tests.hypothesis_profile import usually

TWO = CleaningConfig(commits=2)
Step = Callable[[HudiTable], object]


def right_order(table: HudiTable) -> None:
    """What a cleaner does."""
    clean(table, TWO)


def deletions_first(table: HudiTable) -> None:
    """The wrong order: log files go before anything says so."""
    plan = plan_clean(table, TWO)
    assert plan is not None
    names = [in_partition(p, n) for p, found in plan.files.items() for n in found]
    for name in sorted(names, key=lambda name: not name.rpartition("/")[2].startswith(".")):
        table.storage.delete(name)
    clean(table, TWO)


def build(path: Path, indexed: bool) -> Aged:
    """Three compactions, of which two are out of the retention."""
    aged = Aged(path, indexed, partitioned=False)
    aged.live(3, commits=1)
    aged.write()
    return aged


def copied(made: Aged, path: Path) -> Aged:
    """The same table at another path."""
    shutil.copytree(made.path, path)
    twin = Aged.__new__(Aged)
    twin.__dict__.update(made.__dict__, path=path, moments=list(made.moments))
    twin.model = type(made.model)(dict(made.model.state))
    return twin


def times_are_right(aged: Aged) -> None:
    """Every moment is read right, or refused."""
    for instant, rows in aged.moments:
        try:
            found = aged.as_of(instant)
        except UnsupportedError:
            continue
        assert found == rows, instant


def dies_well(made: Aged, path: Path, step: Step, at: int, before: bool) -> None:
    """Die at a call; read; commit; recover; read."""
    aged = copied(made, path)
    table = aged.reopen(Dying(storage_at(path), at=-1))
    storage = unfenced(table.storage)
    assert isinstance(storage, Dying)
    storage.calls.clear()
    storage.at, storage.before = at, before
    with pytest.raises(Killed):
        step(table)
    times_are_right(aged)
    aged.check(tolerated=("info", "warning"))
    table = aged.reopen()
    table.rollback_pending()
    aged.write()
    times_are_right(aged)
    finish_pending(aged.reopen())
    assert aged.table.timeline.pending() == []
    times_are_right(aged)
    aged.check()
    plan = plan_clean(aged.table, TWO)
    clean(aged.table, TWO)
    assert plan is None or not {in_partition(p, n) for p, ns in plan.files.items() for n in ns} & set(data_files(path))
    aged.live(1, commits=1)
    aged.check()
    times_are_right(aged)
    shutil.rmtree(path)


def calls_of(made: Aged, path: Path, step: Step) -> int:
    aged = copied(made, path)
    storage = Counting(storage_at(path))
    table = aged.reopen(storage)
    storage.calls.clear()
    step(table)
    return len(storage.calls)


@pytest.mark.full
@pytest.mark.parametrize("indexed", usually([True], [False, True]))
def test_death_at_every_call(tmp_path: Path, indexed: bool) -> None:
    made = build(tmp_path / "made", indexed)
    calls = calls_of(made, tmp_path / "count", right_order)
    assert calls >= 10
    for at in range(0, calls, 2 if indexed else 1):
        dies_well(made, tmp_path / f"{at}", right_order, at, before=bool(at % 4))
        if not indexed:
            dies_well(made, tmp_path / f"{at}", right_order, at, before=not at % 4)


def test_the_index_of_who_finishes_a_clean_has_its_deletions(tmp_path: Path) -> None:
    """The clean dies as it completes. Who finishes it opened the table while it was pending, and then makes a base file
    of the metadata table."""
    made = build(tmp_path / "made", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudilake.commit.clean.publish", _dies)
        with pytest.raises(Killed):
            clean(made.table, TWO)
    table = made.reopen()
    index = table.metadata_table
    assert index is not None
    assert index.timeline.find(table.timeline.pending()[0].requested_time) is not None
    with table.exclusively():
        finish_pending(table)
        assert metadata_compaction.compact(index) is not None
    listed = {in_partition(path, name) for path in index.partition_paths() for name in index.reader.files([path])[path]}
    assert listed == set(data_files(made.path))
    made.check()


def _dies(*_: object) -> None:
    raise Killed


@pytest.mark.full
@pytest.mark.parametrize("indexed", usually([True], [False, True]))
def test_control_deletions_before_the_plan_are_seen(tmp_path: Path, indexed: bool) -> None:
    made = build(tmp_path / "made", indexed)
    for at in range(calls_of(made, tmp_path / "count", deletions_first)):
        try:
            dies_well(made, tmp_path / f"{at}", deletions_first, at, before=False)
        except (AssertionError, TransientError):
            return
    pytest.fail("no death was noticed")


@pytest.mark.full
@pytest.mark.parametrize("indexed", usually([True], [False, True]))
def test_the_recovery_dies_too(tmp_path: Path, indexed: bool) -> None:
    """Dead with all files gone and the metadata table half told; then every death of the recovery."""
    made = build(tmp_path / "made", indexed)
    late = calls_of(made, tmp_path / "count", right_order) - 3
    dead = copied(made, tmp_path / "dead")
    storage = Dying(storage_at(tmp_path / "dead"), at=-1)
    table = dead.reopen(storage)
    storage.calls.clear()
    storage.at = late
    with pytest.raises(Killed):
        clean(table, TWO)
    dead.table = HudiTable.open(storage_at(dead.path), metadata=INDEX if indexed else None)

    def recovery(table: HudiTable) -> None:
        finish_pending(table)

    for at in range(0, calls_of(dead, tmp_path / "count2", recovery), 3 if indexed else 1):
        dies_well(dead, tmp_path / f"{at}", recovery, at, before=bool(at % 2))
