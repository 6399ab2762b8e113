"""The end of a compaction: metadata table first, then the completed file.

State after a crash: before the metadata table's entry completes, files that readers ignore. After it, entries that
readers ignore because the compaction is pending; the next attempt undoes them and records its own. After
``<t>_<completion>.commit``, markers that are not used any more.

Checks before publishing: the instant must still be inflight, every delta commit that completed before it must be in the
plan, and no delta commit that was begun before it may still be pending. The newest instant defines the table's columns,
so a compaction that completes first would hide the columns that such a commit may add (measured: in Hudi Spark, hudi-rs
and here).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import sleep
from typing import Final

from hudilake.clock import monotonic_s
from hudilake.commit.commit import check_still_inflight, drop_markers, publish
from hudilake.commit.compaction_plan import Operation
from hudilake.errors import CorruptDataError, TransientError
from hudilake.format.definition.schema import avro_schema
from hudilake.format.layout.order import order_extra
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata
from hudilake.format.timeline.instant import COMPACTION, DELTA_COMMIT, Instant, State
from hudilake.metadata.records.delta import MetadataDelta
from hudilake.metadata.services import rollback as metadata_rollback
from hudilake.services.compaction.scheduling import logs_before
from hudilake.services.compaction.task import CompactedFile
from hudilake.table.table import HudiTable

_PAUSE_S = 0.1


class UnsoundPlanError(TransientError):
    """A plan that would lose rows: it lacks a commit that completed before it. Unschedule it and plan again."""


class OlderWriterError(TransientError):
    """A delta commit that was begun before the compaction is still pending. Wait for it, or roll it back."""


def complete(table: HudiTable, instant: Instant, results: Iterable[CompactedFile]) -> Instant:
    """Publish a compaction whose base files are written; returns the completed instant.

    Args:
        table: the table, refreshed here under its lock.
        instant: from ``schedule``.
        results: one for each operation of its plan.

    Raises LostOwnershipError if another process completed, unscheduled or took it over, UnsoundPlanError,
    OlderWriterError, LockHeldError, CommitUnknownError and StorageError as ``commit.apply_commit`` says.
    """
    with table.exclusively():
        completed = _complete(table, instant.requested_time, list(results))
    table.ownership.end(instant.requested_time)
    return completed


def _complete(table: HudiTable, time: str, files: list[CompactedFile]) -> Instant:
    inflight = Instant(time, COMPACTION, State.INFLIGHT)
    table.ownership.claim(time)
    table.refresh()
    check_still_inflight(table.storage, inflight)
    _check_settled(table, time)
    _check_sound(table, time, [file.operation for file in files])
    note(table, time, files)
    check_still_inflight(table.storage, inflight)
    columns = avro_schema(table.schema_as_of(time), table.config.name, with_meta=False)
    stats = tuple(stat for file in files for stat in file.stats)
    order = order_extra(next((file.order for file in files), None))
    extra = {SCHEMA_KEY: columns, **order, **horizon_extra(table, files)}
    body = CommitMetadata(stats, extra, operation="COMPACT", compacted=True)
    completed = inflight.in_state(State.COMPLETED, table.clock.next())
    publish(table.storage, completed, body.to_bytes())
    table.timeline.record(completed)
    table.timeline.remember(completed, body)
    drop_markers(table.storage, time)
    return completed


def wait_for_older_writers(table: HudiTable, time: str, patience_s: float) -> None:
    """Wait until every delta commit that was begun before an instant has ended, at most ``patience_s`` seconds.

    No lock is held, so the writers can continue. ``complete`` checks again.
    """
    deadline = monotonic_s() + patience_s
    while _older_writers(table, time) and monotonic_s() < deadline:
        sleep(_PAUSE_S)
        table.refresh()


def note(table: HudiTable, time: str, files: Sequence[CompactedFile]) -> None:
    """Record the files in the metadata table, after undoing the entries of a dead attempt."""
    index = table.metadata_table
    if index is None:
        return
    undo_entries(table, time)
    index.apply(time, MetadataDelta(tuple(added for file in files for added in file.added)))


def undo_entries(table: HudiTable, time: str) -> None:
    """Undo the metadata table's entries of a compaction that is still pending."""
    index = table.metadata_table
    if index is not None:
        metadata_rollback.take_back(index, time)


def _older_writers(table: HudiTable, time: str) -> list[str]:
    pending = (i for i in table.timeline.pending() if i.action == DELTA_COMMIT)
    return [instant.requested_time for instant in pending if instant.requested_time < time]


def _check_settled(table: HudiTable, time: str) -> None:
    if older := _older_writers(table, time):
        raise OlderWriterError(
            "a delta commit that was begun before this compaction is still pending",
            do_next="run the compaction again; if that writer is dead, start it again: it rolls the commit back",
            instant=time,
            pending=older[0],
        )


def _check_sound(table: HudiTable, time: str, operations: Iterable[Operation]) -> None:
    planned = {operation.group: set(operation.log_files) for operation in operations}
    for file_slice in table.file_slices():
        names = planned.get((file_slice.partition_path, file_slice.file_id))
        if names is None:
            continue
        logs = {str(log.name) for log in logs_before(table.timeline, file_slice.log_files, time)}
        if missing := sorted(logs - names):
            raise UnsoundPlanError(
                "a commit completed before this compaction, and the plan lacks its file",
                do_next="unschedule the compaction; binlake plans it again when it is due",
                instant=time,
                file=missing[0],
            )


#: The key of the extra metadata of a compaction's commit; milliseconds since 1970 as text.
HORIZON_KEY: Final = "binlake.horizon"


def horizon_extra(table: HudiTable, files: Iterable[CompactedFile]) -> Mapping[str, str]:
    """What a compaction of a table records of its horizon. Errors as ``recorded_horizon``."""
    made = [file.horizon_ms for file in files if file.horizon_ms is not None]
    if not made:
        return {}
    return {HORIZON_KEY: str(max(*made, recorded_horizon(table) or 0))}


def recorded_horizon(table: HudiTable) -> int | None:
    """The horizon of a table as of its last refresh, in milliseconds since 1970; None if no row was left out.

    Raises CorruptDataError, StorageError.
    """
    text = table.extra_metadata(HORIZON_KEY)
    if text is not None and not text.isdecimal():
        raise CorruptDataError(
            f"a commit's extra metadata {HORIZON_KEY} names no time: {text[:200]}",
            do_next="run binlake fsck",
            table=table.config.name,
        )
    return None if text is None else int(text)
