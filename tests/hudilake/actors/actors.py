"""What each actor does, phase by phase. It gives out the name of its next phase before doing it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from hudilake.commit.commit import OvertakenError
from hudilake.errors import LostOwnershipError
from hudilake.format.files.file_group_write import WriteResult
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import (
    OlderWriterError,
    execute,
    finish_pending,
    prepare,
    publish_or_unschedule,
    schedule,
)
from hudilake.services.restore import finish_pending_restores, restore
from hudilake.table.table import HudiTable
from tests.hudilake.actors.orders import WAITS, Actor
from tests.hudilake.actors.world import COMPACTION, World
from tests.hudilake.lake import Change, deletes, upserts, write
from tests.hudilake.services.compaction.steps import serially

CLEANING = CleaningConfig(commits=1)
ARCHIVAL = ArchivalConfig(min_commits=2, max_commits=3)
Batches = Sequence[Sequence[Change]]
#: Ordering values meet across the writers: of equal ones the commit that is published later wins. But not a delete's
#: and an upsert's: if the delete is stated again by a compaction that the upsert's commit was begun before, it wins.
BATCHES: dict[str, Batches] = {
    "writer": [upserts([1, 2], 300, "a") + deletes([4], 299) + upserts([7], 300, "a", "d2"), upserts([2, 4], 310, "b")],
    "other": [
        upserts([2, 4], 300, "c") + upserts([7, 8], 300, "c", "d2"),
        deletes([1, 7], 310) + upserts([2], 310, "d"),
    ],
}
#: Makes an actor of a name on a table, for some rounds.
Part = Callable[[World, str, int], Actor]


def writer(world: World, name: str, rounds: int) -> Actor:
    """Batches, each begun again when another writer was faster. ``name``: one of BATCHES."""
    return write_batches(world, name, BATCHES[name][:rounds])


def write_batches(world: World, name: str, batches: Batches) -> Actor:
    yield "start"
    table = world.opened(name)
    table.rollback_pending()
    for changes in batches:
        completed = None
        while completed is None:
            yield "refresh"
            table.refresh()
            yield "begin"
            instant = table.begin()
            yield "write"
            completed = yield from committed(table, instant, write(table, instant, changes))
        world.told[completed] = changes
        assert table.maintain() is None


def committed(table: HudiTable, instant: str, results: Sequence[WriteResult]) -> Generator[str, None, str | None]:
    """Commit. Returns the completion time; None if another writer was faster, and the instant is given up."""
    yield "commit"
    try:
        return table.commit(instant, results)
    except OvertakenError:
        yield "abort"
        table.abort(instant)
        return None


def compactor(world: World, name: str, rounds: int) -> Actor:
    """Compactions, each from the schedule to the commit."""
    yield "start"
    table = world.opened(name)
    table.rollback_pending()
    for _ in range(rounds):
        yield from _finish(table, "finish")
        yield "schedule"
        requested = schedule(table, COMPACTION)
        if requested is None:
            continue
        yield "prepare"
        job = prepare(table, requested, COMPACTION)
        yield "execute"
        made = execute(job, serially)
        yield "complete"
        try:
            assert publish_or_unschedule(table, job, made) is not None, "its plan was unsound"
        except OlderWriterError:
            yield from _finish(table, f"{WAITS}, finish")


def _finish(table: HudiTable, phase: str) -> Actor:
    """What the dead left is rolled back or done; those who live are waited for."""
    while True:
        yield phase
        table.rollback_pending()
        try:
            finish_pending(table, COMPACTION, serially, patience_s=0)
        except OlderWriterError:
            phase = f"{WAITS}, finish"
        else:
            return


def cleaner(world: World, name: str, rounds: int) -> Actor:
    """Cleans."""
    yield "start"
    table = world.opened(name)
    table.rollback_pending()
    for _ in range(rounds):
        yield "clean"
        clean(table, CLEANING)


def archiver(world: World, name: str, rounds: int, config: ArchivalConfig = ARCHIVAL) -> Actor:
    """Archivals."""
    yield "start"
    table = world.opened(name)
    table.rollback_pending()
    for _ in range(rounds):
        yield "refresh"
        table.refresh()
        yield "archive"
        archive(table, config)


def restorer(world: World, name: str, rounds: int) -> Actor:
    """One restore, as soon as no writer stands in its way; ``rounds``: how many writes of the template go."""
    yield "start"
    table = world.opened(name)
    finish_pending_restores(table, world.index)
    wanted, phase = list(world.states)[-1 - rounds], "restore"
    while True:
        yield phase
        try:
            done = restore(table, wanted, world.index)
        except LostOwnershipError:
            table = world.opened(name)
            phase = f"{WAITS}, restore"
        else:
            assert done is not None
            world.told[done.completion_time or ""] = wanted
            return
