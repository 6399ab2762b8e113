"""An archival that dies before and after every storage call; both readers, the commits' own keys and the next archival
do not mind.

The control deletes the active instants before the history has them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudilake.errors import LakeError
from hudilake.format.timeline.history import History
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.table.table import HudiTable
from tests.hudilake.failing_storage import Killed
from tests.hudilake.lake import storage_at
from tests.hudilake.metadata.below import Counting, Dying
from tests.hudilake.services.archival.test_archival import archived, writes
from tests.hudilake.services.cleaning.aged import Aged
from tests.hypothesis_profile import usually

SMALL = ArchivalConfig(min_commits=3, max_commits=4)
Step = Callable[[HudiTable], object]


def right_order(table: HudiTable) -> None:
    """What an archival does."""
    archive(table, SMALL)


def deletions_first(table: HudiTable) -> None:
    """The wrong order: instants go before the history has them."""
    gone = table.timeline.completed()[:4]
    kept = {instant.path: table.storage.read(instant.path) for instant in gone}
    for instant in gone:
        table.storage.delete(instant.path)
    for path, body in kept.items():
        table.storage.create(path, body)
    archive(table, SMALL)


def build(path: Path, indexed: bool) -> Aged:
    """Three rounds; one key is in the first commit only."""
    aged = Aged(path, indexed, partitioned=False)
    aged.write(extra={"rare": "kept"})
    aged.live(3, commits=1)
    return aged


def dies_well(made: Aged, path: Path, step: Step, at: int, before: bool) -> bool:
    """Die at a call, read, go on; False if there are fewer calls."""
    shutil.copytree(made.path, path)
    aged = Aged.__new__(Aged)
    aged.__dict__.update(made.__dict__, path=path, moments=list(made.moments))
    aged.model = type(made.model)(dict(made.model.state))
    storage = Dying(storage_at(path), at=-1)
    table = aged.reopen(storage)
    everything = {i.requested_time for i in table.timeline.completed()} | set(archived(path))
    storage.calls.clear()
    storage.at, storage.before = at, before
    try:
        step(table)
    except Killed:
        pass
    else:
        return False
    aged.check()
    table = aged.reopen()
    table.rollback_pending()
    assert table.extra_metadata("rare") == "kept"
    aged.write()
    aged.check()
    archive(aged.table, SMALL)
    old = archived(path)
    assert len(old) == len(set(old))
    assert everything <= set(old) | {i.requested_time for i in writes(path)}
    assert aged.reopen().extra_metadata("rare") == "kept"
    aged.check()
    shutil.rmtree(path)
    return True


@pytest.mark.full
@pytest.mark.parametrize("indexed", usually([True], [False, True]))
def test_death_at_every_call(tmp_path: Path, indexed: bool) -> None:
    made = build(tmp_path / "made", indexed)
    at = 0
    while dies_well(made, tmp_path / f"{at}", right_order, at, before=bool(at % 2)):
        at += 1
    assert at > 15
    assert History.load(storage_at(tmp_path / f"{at}")).files


@pytest.mark.parametrize("indexed", usually([True], [False, True]))
def test_control_deletions_before_the_history_are_seen(tmp_path: Path, indexed: bool) -> None:
    made = build(tmp_path / "made", indexed)
    at = 0
    try:
        while dies_well(made, tmp_path / f"{at}", deletions_first, at, before=False):
            at += 1
    except (AssertionError, LakeError):
        return
    pytest.fail("no death was noticed")


def test_the_number_of_calls(tmp_path: Path) -> None:
    """Listings of the timeline and of the data files, bodies and history; three files for each instant."""
    made = build(tmp_path, indexed=False)
    counting = Counting(storage_at(tmp_path))
    table = made.reopen(counting)
    counting.calls.clear()
    count = archive(table, SMALL)
    methods = [method for method, _ in counting.calls]
    assert methods.count("write") == 3
    assert methods.count("list") <= 5
    assert len(counting.calls) <= 10 + 7 * count
