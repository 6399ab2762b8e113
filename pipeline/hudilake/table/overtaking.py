"""The two checks of a commit against other writers (``actions.intent``), and what follows from a commit that passes.

The first check is made between the requested and the inflight file. The requested file announces the intent, then the
timeline is listed: so of two writers that announce at once, at least one sees the other. A commit gives way to what has
completed since its writer looked. It waits for a living writer's instant that is inflight or was requested earlier: the
older request wins, and an inflight instant never waits, so some writer always makes progress. The second check is made
under the table's lock, with what was really written.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep

import pyarrow as pa

from hudilake.clock import monotonic_s
from hudilake.commit.announced import clustered_intent, completed_intent, pending_intent
from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import Conflict, Intent, conflicts
from hudilake.format.timeline.instant import Instant, State
from hudilake.table.begun import Begun
from hudilake.table.table_state import TableState

#: How long a commit waits for another writer's inflight instant, and how often it looks.
PATIENCE_S = 60.0
_PAUSE_S = 0.02


def check_completed(table: TableState, mine: Intent, begun: Begun) -> None:
    """Raise OvertakenError if a write that completed since the instant began conflicts with it, as of the last refresh.

    Raises CorruptDataError or StorageError for a commit that cannot be read.
    """
    for write in table.begun.foreign_writes(begun.seen):
        if write is None:
            raise OvertakenError(
                "another process changed the table's properties since this instant began",
                do_next="roll it back and write again on the current state of the table",
                instant=mine.instant,
                table=table.config.name,
            )
        other = _completed(table, write)
        if (conflict := conflicts(mine, [other], table.policy)) is not None:
            raise _overtaken(table, mine, conflict, "another writer has committed since this instant began")


def _completed(table: TableState, write: Instant) -> Intent:
    """What a completed write has written. A clustering of rows that have no bucket conflicts with commits that write
    what it replaced, under any policy; else the policy ``queue`` needs no intents, for any two commits conflict."""
    clustered = clustered_intent(table.timeline, write) if not table.config.kind.computed else None
    if clustered is not None:
        return clustered
    if table.policy != "queue":
        return completed_intent(table.timeline, write)
    return Intent(write.requested_time, write.action, whole=True)


def check_compactions(table: TableState, mine: Intent, begun: Begun) -> None:
    """Raise OvertakenError if a compaction of a merge-on-read table that looks keys up was scheduled since the instant
    began, as of the last refresh.

    The commit's rows were placed by the base files from before. A log file of the commit is in the slice after the
    compaction: a row that was deleted in the slice before, and comes back in that log file, is in no base file then,
    and the next lookup would insert it a second time. A base file of the commit would be older than the compaction's.
    """
    if mine.groups and (newer := table.compactions() - begun.compactions):
        raise OvertakenError(
            "another process scheduled a compaction since this instant looked up its keys",
            do_next="roll it back and write again on the current state of the table",
            instant=mine.instant,
            table=table.config.name,
            other=min(newer),
        )


def check_pending(table: TableState, requested: Instant, mine: Intent, begun: Begun, *, waits: bool) -> None:
    """The first check. Call it once the requested file with the intent exists.

    Args:
        table: its state; it is refreshed.
        requested: the instant.
        mine: its intent.
        begun: what it began upon.
        waits: False for a writer that holds the table's lock: no other can complete before it.

    Raises OvertakenError for a conflict with what has completed, or with a pending instant that does not end in time,
    CorruptDataError, StorageError.
    """
    table.timeline.record(requested)
    deadline = monotonic_s() + PATIENCE_S
    while True:
        table.refresh()
        check_completed(table, mine, begun)
        conflict = next(_in_the_way(table, requested, mine), None) if waits else None
        if conflict is None:
            return
        if monotonic_s() >= deadline:
            raise _overtaken(table, mine, conflict, f"another writer's instant is pending for {PATIENCE_S:.0f} s")
        sleep(_PAUSE_S)


def _in_the_way(table: TableState, requested: Instant, mine: Intent) -> Iterator[Conflict]:
    """The conflicts with instants of living writers that may complete first."""
    for pending in table.timeline.pending():
        first = pending.state is State.INFLIGHT or pending.requested_time < requested.requested_time
        time = pending.requested_time
        known = table.begun.of(time) is not None or table.begun.is_given_up(time)
        ours = time == requested.requested_time or known
        if pending.action != table.action or not first or ours:
            continue
        announced = pending_intent(table.storage, pending)
        conflict = conflicts(mine, [announced], table.policy) if announced is not None else None
        if conflict is not None and not table.ownership.is_abandoned(time):
            yield conflict


def merged_schema(table: TableState, instant: str, begun: Begun, wanted: pa.Schema) -> pa.Schema:
    """The table's columns after a commit: those that the instant's writer wants, and those that others added since.

    A commit that changes the columns must have been requested after all that have completed, because readers take the
    columns of the write that was requested last (measured: Hudi Spark, hudi-rs and here).

    Args:
        table: its state, refreshed under the lock.
        instant: requested time of the commit.
        begun: what it began upon.
        wanted: the columns of its files.

    Raises OvertakenError for changes that cannot be united.
    """
    base, theirs = begun.schema, table.schema
    columns = _united(table, instant, base, theirs, wanted)
    last = table.timeline.last_completed()
    if columns != theirs and last is not None and last.requested_time > instant:
        raise OvertakenError(
            "the commit changes the table's columns, and a write that was requested after it has completed",
            do_next="roll it back and write again on the current state of the table",
            instant=instant,
            other=last.requested_time,
            table=table.config.name,
        )
    return columns


def _united(table: TableState, instant: str, base: pa.Schema, theirs: pa.Schema, mine: pa.Schema) -> pa.Schema:
    if theirs in (base, mine):
        return mine
    if mine == base:
        return theirs
    added = [field for field in mine if field.name not in base.names]
    kept = all(f.name in s.names and s.field(f.name).type == f.type for s in (mine, theirs) for f in base)
    clash = [f.name for f in added if f.name in theirs.names and theirs.field(f.name).type != f.type]
    if clash or not kept:
        raise OvertakenError(
            f"another writer changed the table's columns otherwise since this instant began: {clash or 'a type'}",
            do_next="roll it back and write again on the current state of the table",
            instant=instant,
            table=table.config.name,
        )
    return pa.schema([*theirs, *(field for field in added if field.name not in theirs.names)])


def _overtaken(table: TableState, mine: Intent, conflict: Conflict, what: str) -> OvertakenError:
    return OvertakenError(
        f"{what} and both write {conflict}",
        do_next="roll it back and write again on the current state of the table",
        instant=mine.instant,
        table=table.config.name,
        other=conflict.other.instant,
    )
