"""One table's part of a batch on the driver: merge its parcels, write its files, commit them with their offsets."""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, wait
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from binlake.position.commit_record import NO_NOTES, CommitNotes, CommitRecord
from binlake.rows.merging.engines.heights import NOTHING_COUNTED, FactHeights
from binlake.rows.merging.write import write_merged
from binlake.rows.tasks.plan import TableReport, Written
from binlake.rows.upsert.keyless import KeylessState, resolve
from binlake.rows.upsert.merge import Place, records
from binlake.rows.upsert.parcel import KEYLESS_BUCKET, Parcel, unpack
from binlake.rows.upsert.route import KEY, Counts
from binlake.rows.upsert.target import Target
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from binlake.schema.rules.entries import gone_after
from binlake.schema.rules.evolution import retyped
from binlake.source.offsets import Ranges
from binlake.tables.appending import append_intent, appended
from binlake.tables.lake_table import LakeTable
from binlake.tables.looked_up import write_looked_up
from binlake.tables.merging_check import check_fed
from binlake.tables.services.table_services import TableServices, TableServicesOutcome
from binlake.tables.truncation import check_truncates, without_truncated
from hudilake.clock import monotonic_s, now_ms
from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import WHOLE_TABLE, GroupIntent, Intent
from hudilake.format.definition.bucketing import split_by_bucket
from hudilake.format.files.file_group_write import WriteContext

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableInput:
    """The input of one batch for one table.

    ``context`` is set if tasks have written files of the table already (``written``). ``truncates``: the TRUNCATEs of
    this batch. ``notes``: the optional entries of the commit record.
    """

    report: TableReport
    ranges: Ranges
    parcels: Sequence[Parcel] = ()
    written: Sequence[Written] = ()
    context: WriteContext | None = None
    truncates: Truncates = NOTHING_TRUNCATED
    notes: CommitNotes = NO_NOTES


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """The result of a table's part of a batch.

    Args:
        instant: of the commit; None if nothing had to be written.
        counts: the final counts of the table's records.
        bytes_written: the size of the commit's files.
        visible_ms: when the commit became visible (ms since the epoch).
        stage_ms: the time of writing and publishing, and of looking keys up, in milliseconds.
        services: the outcome of the table services after the commit.
        finding: what the lake cannot account for, of a table without a key; None if there is nothing new.
    """

    instant: str | None
    counts: Counts
    bytes_written: int = 0
    visible_ms: int = 0
    stage_ms: Mapping[str, float] = field(default_factory=dict)
    services: TableServicesOutcome = field(default_factory=TableServicesOutcome)
    finding: str | None = None


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that the driver holds, by file group; the next state of a keyless table; the number of superseded
    records."""

    groups: dict[Place, pa.Table]
    keyless: KeylessState | None
    superseded: int = 0


def write_and_commit(
    table: LakeTable, table_input: TableInput, stream: str, batch: int, pool: Executor, services: TableServices
) -> TableOutcome:
    """Write the rows that the tasks left to the driver, commit all files, then run the table services.

    On an error the instant is rolled back before the error goes on, unless its outcome is unknown or another writer
    owns it. If another writer has overtaken the instant, the rows of the driver are written again under the lock. The
    table services run without the lock: a compaction may wait for other writers, which wait for the lock.
    """
    try:
        outcome = _write_and_commit(table, table_input, stream, batch, pool, services)
    except OvertakenError as error:
        if table_input.written:
            raise
        fields = {"event": "overtaken", "table": table.rules.path}
        _log.info("%s: the commit is written again: %s", table.rules.path, error.what, extra=fields)
        with table.table.exclusively():
            table.refresh(stream)
            outcome = _write_and_commit(table, replace(table_input, context=None), stream, batch, pool, services)
    return outcome if outcome.instant is None else replace(outcome, services=services.after_commit(table))


def commit_without_rows(table: LakeTable, table_input: TableInput, counts: Counts, stream: str, batch: int) -> None:
    """Commit the record of ``table_input`` without rows, because none is left. Errors as ``LakeTable.commit``.

    ``counts``: the final counts of the table's records.
    """
    context = table.begin(table.table.schema, Intent())
    with table.undone_on_error(context.instant):
        source = table_input.report.target.source
        record = CommitRecord(stream, batch, counts, source, table.origin, table_input.ranges, notes=table_input.notes)
        table.commit(context, [], record)


def _write_and_commit(
    table: LakeTable, table_input: TableInput, stream: str, batch: int, pool: Executor, services: TableServices
) -> TableOutcome:
    report, counts = table_input.report, copy.copy(table_input.report.counts)
    if not (table_input.parcels or table_input.written or table_input.truncates.news_to(table.truncates)):
        if table_input.context is not None:
            table.table.abort(table_input.context.instant)
        counts.settle()
        return TableOutcome(None, counts)
    begun = table_input.context
    with table.undone_on_error(begun.instant) if begun is not None else contextlib.nullcontext():
        table.check_routing(report.target)
        check_fed(table.table.config, report.target.merging, report.columns.names, table.rules.path)
    origin, looks_up = table.origin_of(report), table.table.config.kind.looks_up
    known = table.keyless.unmatched if table.keyless is not None else 0
    context = _context(table, table_input, services, stream)
    with table.undone_on_error(context.instant):
        started = monotonic_s()
        rows = _rows(table, table_input)
        tag_ms = 0.0
        if looks_up:
            done, tag_ms = write_looked_up(table, rows.groups, context, pool)
        else:
            done = _write(table, table_input, rows.groups, context, pool)
        results = [one.result for one in done if one.result is not None]
        counts.superseded += rows.superseded + sum(one.superseded for one in done)
        counts.settle()
        record = CommitRecord(
            stream,
            batch,
            counts,
            report.target.source,
            origin,
            table_input.ranges,
            truncates=table_input.truncates,
            keyless=rows.keyless,
            notes=replace(table_input.notes, source_times=_source_times(report)),
            snapshots=report.snapshots,
            heights=_heights(table, table_input, done),
        )
        written = monotonic_s()
        table.commit(context, results, record, [one.touched for one in done if one.touched is not None])
    stage_ms = {"write": (written - started) * 1000 - tag_ms, "publish": (monotonic_s() - written) * 1000}
    if looks_up:
        stage_ms["tag"] = tag_ms
    finding = rows.keyless.finding if rows.keyless is not None and rows.keyless.unmatched > known else None
    written_bytes = sum(r.size_bytes for r in results)
    return TableOutcome(context.instant, counts, written_bytes, now_ms(), stage_ms, finding=finding)


def _context(table: LakeTable, table_input: TableInput, services: TableServices, stream: str) -> WriteContext:
    """The write context of the tasks' instant, or of an instant that begins here. Changes that the table's rules refuse
    are refused before the instant begins."""
    columns, begun = table_input.report.columns, table_input.context
    check_truncates(table, table_input.truncates)
    schema = table.schema_with(columns)
    if begun is not None:
        held = schema is table.table.schema and {*begun.arrow_schema.names} >= {*table.merging.hidden_fields}
        return begun if held else table.context(begun.instant, schema)
    if retyped(table.table.schema, schema):
        services.end_logs(table, f"{stream}.types")  # hudi-rs reads one type per column in a slice's logs (measured)
        schema = table.schema_with(columns)  # it may have loaded another writer's commits
    return table.begin(schema, _intent(table, table_input, whole=bool(retyped(table.table.schema, schema))))


def _intent(table: LakeTable, table_input: TableInput, *, whole: bool) -> Intent:
    """What the batch will write to the table. Rows of a table without a key, rows that are looked up, and deletes of a
    TRUNCATE may go to any file group."""
    places = sorted({(parcel.partition_path, parcel.bucket) for parcel in table_input.parcels})
    any_group = table.keyless is not None or table.table.config.kind.looks_up
    if whole or any_group or table_input.truncates.news_to(table.truncates):
        return WHOLE_TABLE
    if table.table.config.kind.appends:
        return append_intent(table, [path for path, _ in places])
    fed = _fed_columns(table, table_input.report.columns)
    return Intent.of_groups(
        GroupIntent(place[0], table.names.of(*place), fed, inserts=fed is None, deletes=fed is None) for place in places
    )


def _fed_columns(table: LakeTable, columns: pa.Schema) -> frozenset[str] | None:
    """Under ``conflicts: column`` the columns of the groups that a batch feeds, as if every row lived: the second check
    knows what was written. None for whole rows, also of
    a table whose commits rewrite base files."""
    merging, config = table.merging, table.table.config
    if not merging.groups or table.rules.conflicts != "column" or config.kind.copies:
        return None
    shared = {*config.record_key_fields, *config.partition_fields}
    values = tuple(name for name in columns.names if name not in shared)
    groups = {group.order_field: merging.columns_of(group, values) for group in merging.groups}
    return frozenset(name for order, names in groups.items() if names for name in (order, *names))


def _source_times(report: TableReport) -> tuple[int, int] | None:
    """The source's times (ms) of the oldest and the newest change, from which freshness is computed; None if the source
    gives no times."""
    return (report.oldest_ms, report.newest_ms) if report.newest_ms else None


def _write(
    table: LakeTable,
    table_input: TableInput,
    groups: Mapping[Place, pa.Table],
    context: WriteContext,
    pool: Executor,
) -> list[Written]:
    """Write every file group that the driver has rows for. Returns what was written, also by the tasks."""
    if (append := table.append_writer(context)) is not None:
        added = appended(table, append, {path: rows for (path, _), rows in groups.items()}, pool)
        return [*added, *table_input.written]
    writer = table.group_writer(context)
    replayed = table_input.notes.replayed is not None  # each once, whatever is counted
    merger = table.merger(context.arrow_schema, NOTHING_COUNTED if replayed else None)

    def write(item: tuple[Place, pa.Table]) -> list[Written]:
        place, rows = item
        name = table.names.of(*place)
        merged = merger.merge(place, name, rows)
        results = write_merged(table.storage, writer, merged)
        return Written.of(table.rules.path, GroupIntent(place[0], name), merged, results)

    written = [pool.submit(write, (place, rows)) for place, rows in groups.items() if len(rows)]
    wait(written)  # if one fails, the instant is rolled back: none may write a file after that
    return [*(one for some in written for one in some.result()), *table_input.written]


def _heights(table: LakeTable, table_input: TableInput, done: Sequence[Written]) -> FactHeights | None:
    """How far facts are counted after the file groups; None if that does not change. Records that were quarantined, and
    come back, lie below what is counted."""
    known = [one.heights for one in done if one.heights is not None]
    return table.heights.merged(known) if known and table_input.notes.replayed is None else None


def _rows(table: LakeTable, table_input: TableInput) -> _Rows:
    """The rows that the driver holds, without those that a TRUNCATE of this batch removes."""
    rows = _unpacked(table, table_input)
    if not table_input.truncates.news_to(table.truncates):
        return rows
    groups, dropped = without_truncated(table, table_input.truncates, rows.groups)
    return replace(rows, groups=groups, superseded=rows.superseded + dropped)


def _unpacked(table: LakeTable, table_input: TableInput) -> _Rows:
    by_place: dict[Place, list[Parcel]] = {}
    for parcel in table_input.parcels:
        by_place.setdefault((parcel.partition_path, parcel.bucket), []).append(parcel)
    events = by_place.pop(("", KEYLESS_BUCKET), None)
    groups = {place: unpack(parcels) for place, parcels in by_place.items()}
    if events is None:
        return _Rows(groups, table.keyless)
    target, state = table_input.report.target, (table.keyless or KeylessState()).copy()
    rows = unpack(events)
    order = table_input.truncates.whole  # a table without a key is never merged from several source tables
    fresh = rows.filter(pc.greater(rows.column("__order"), order))
    if order > table.truncates.whole:
        state.removed_until(order)
    gone = gone_after(table_input.notes.ddl or table.ddl)
    resolved = resolve(fresh, target, state, lambda marks: table.live_rows(marks, order), gone)
    superseded = records(rows) - records(fresh) + resolved.superseded
    return _Rows(groups | _by_place(resolved.rows, resolved.paths, target), state, superseded)


def _by_place(rows: pa.Table, paths: pa.Array, target: Target) -> dict[Place, pa.Table]:
    groups = split_by_bucket(target.bucketing, rows.column(KEY), (), paths)
    return {(path, bucket): rows.take(pa.array(groups.order[some])) for path, bucket, some in groups}
