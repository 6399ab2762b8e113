"""Undoes the metadata table's entries of an instant that is rolled back on the data table.

Order on storage, each step repeatable: plan, inflight, deletion of the instant's log files, deletion of the instant
(its completed file first: cut short, it reads as pending and is rolled back again), completed rollback.
"""

from __future__ import annotations

import contextlib

from hudilake.clock import monotonic_s
from hudilake.commit.commit import publish
from hudilake.commit.rollback import RollbackPlan
from hudilake.errors import CorruptDataError
from hudilake.format.files.names import parse_log_name
from hudilake.format.timeline.instant import COMMIT, DELTA_COMMIT, ROLLBACK, Instant, State
from hudilake.metadata.table import MetadataTable
from hudilake.storage.base import AlreadyExistsError


def roll_back(table: MetadataTable, target: str, rollback: str) -> None:
    """Undo the entries of an instant.

    Call it while the data instant is still pending, that is, before its own files are deleted.

    Args:
        table: the metadata table.
        target: the instant that is being rolled back on the data table.
        rollback: the rollback's instant on the data table; it is used here too.

    Raises CorruptDataError if the instant is already in a base file, StorageError: then call again.
    """
    recorded, begun = table.timeline.find(target), table.timeline.find(rollback)
    if begun is not None and begun.completed:
        return
    _check_not_compacted(table, recorded)
    plan = RollbackPlan(target, DELTA_COMMIT, tuple(_log_files_of(table, target)))
    if recorded is None and begun is None and not plan.files:
        return
    started = monotonic_s()
    requested = Instant(rollback, ROLLBACK, State.REQUESTED)
    for instant, body in ((requested, plan.to_bytes(table.storage.uri)), (requested.in_state(State.INFLIGHT), b"")):
        with contextlib.suppress(AlreadyExistsError):
            table.storage.create(instant.path, body)
    for partition, name in plan.files:
        table.storage.delete(f"{partition}/{name}")
    if recorded is not None and recorded.completed:
        table.storage.delete(recorded.path)
    for state in (State.INFLIGHT, State.REQUESTED):
        table.storage.delete(Instant(target, DELTA_COMMIT, state).path)
    millis = int((monotonic_s() - started) * 1000)
    completed = requested.in_state(State.COMPLETED, table.clock.next())
    publish(table.storage, completed, plan.metadata(table.storage.uri, rollback, millis))
    table.refresh(table.schema_without(target))


def take_back(table: MetadataTable, target: str) -> None:
    """Undo the entries of an action that will be recorded again. It is not rolled back on the data table, so the
    rollback has an instant in the metadata table only. Does nothing without entries. Raises as ``roll_back``."""
    if table.timeline.find(target) is not None:
        roll_back(table, target, table.clock.next())


def finish_rollback(table: MetadataTable, pending: Instant) -> None:
    """Finish a rollback that is pending here and not on the data table. Raises as ``roll_back``."""
    requested = pending.in_state(State.REQUESTED)
    plan = RollbackPlan.from_bytes(table.storage.read(requested.path), requested.path)
    roll_back(table, plan.target_time, pending.requested_time)


def _check_not_compacted(table: MetadataTable, recorded: Instant | None) -> None:
    last = next((i for i in reversed(table.timeline.completed()) if i.action == COMMIT), None)
    if recorded is None or recorded.completion_time is None or last is None:
        return
    if recorded.completion_time <= last.requested_time:
        raise CorruptDataError(
            "the instant to roll back is already in a base file of the metadata table",
            do_next="run binlake repair to rebuild the metadata table",
            instant=recorded.requested_time,
        )


def _log_files_of(table: MetadataTable, instant: str) -> list[tuple[str, str]]:
    """The instant's log files as (metadata partition, name), whether or not it has files in the timeline."""
    names = [
        (partition.value, info.path.rpartition("/")[2])
        for partition in table.partitions
        for info in table.storage.list(partition.value)
    ]
    return [(p, name) for p, name in names if (log := parse_log_name(name)) is not None and log.instant == instant]
