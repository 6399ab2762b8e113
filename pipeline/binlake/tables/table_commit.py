"""One table's part of a batch on the driver: merge its parcels, write its files, commit them with their offsets."""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from binlake.position.commit_record import NO_NOTES, CommitNotes, CommitRecord
from binlake.rows.merging.engines.heights import OUT_OF_TURN, FactHeights
from binlake.rows.tasks.plan import TaskTableReport, WrittenFile
from binlake.rows.upsert.keyless import DIGEST_FIELD, KeylessState, LiveRow, LiveRows, resolve
from binlake.rows.upsert.merge import Place, records
from binlake.rows.upsert.parcel import KEYLESS_BUCKET, Parcel, unpack
from binlake.rows.upsert.route import KEY, Counts
from binlake.rows.upsert.target import ORDER_FIELD, Target, key_columns
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from binlake.schema.rules.entries import gone_after
from binlake.schema.rules.evolution import retyped
from binlake.source.offsets import NO_RANGES, Ranges
from binlake.tables.lake_table import LakeTable
from binlake.tables.merging_check import check_fed
from binlake.tables.services.table_services import TableServices, TableServicesOutcome
from binlake.tables.truncation import check_truncates, without_truncated
from hudilake.clock import monotonic_s, now_ms
from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import WHOLE_TABLE, Intent
from hudilake.format.definition.bucketing import split_by_bucket
from hudilake.format.definition.schema import PARTITION_PATH_FIELD
from hudilake.format.files.file_group_write import WriteContext
from hudilake.read.slice import read_file_slice
from hudilake.table.table import HudiTable

_log = logging.getLogger(__name__)


def _brought(table: LakeTable) -> Ranges:
    """What replays of dumps have brought: all that a stream may meet a second time."""
    return table.brought


@dataclass(frozen=True)
class TableInput:
    """The input of one batch for one table.

    ``context`` is set if tasks have written files of the table already (``written``). ``truncates``: the TRUNCATEs of
    this batch; ``each_truncate``: of each that is counted as read. ``notes``: optional entries of the commit record.
    ``left_out``: the records of a table without keys that tasks left out, because it has them; ``has``: says which it
    has by now.
    """

    report: TaskTableReport
    ranges: Ranges
    parcels: Sequence[Parcel] = ()
    written: Sequence[WrittenFile] = ()
    context: WriteContext | None = None
    truncates: Truncates = NOTHING_TRUNCATED
    each_truncate: Sequence[Truncates] = ()
    notes: CommitNotes = NO_NOTES
    left_out: Ranges = NO_RANGES
    has: Callable[[LakeTable], Ranges] = _brought


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
class _DriverRows:
    """The rows that the driver holds, by file group; the next state of a keyless table; the number of superseded
    records."""

    groups: dict[Place, pa.Table]
    keyless: KeylessState | None
    superseded: int = 0


def _say_nothing() -> None:
    """Nobody waits for the commit."""


def write_and_commit(
    table: LakeTable,
    table_input: TableInput,
    stream: str,
    batch: int,
    pool: Executor,
    services: TableServices,
    *,
    committing: Callable[[], None] = _say_nothing,
) -> TableOutcome:
    """Write the rows that the tasks left to the driver, commit all files, then run the table services.

    ``committing`` is called between the two.

    On an error the instant is rolled back before the error goes on, unless its outcome is unknown or another writer
    owns it. If another writer has overtaken the instant, the rows of the driver are written again under the lock. The
    table services run without the lock: a compaction may wait for other writers, which wait for the lock.
    """
    try:
        outcome = _write_and_commit(table, table_input, stream, batch, pool, services, committing)
    except OvertakenError as error:
        if table_input.written:
            raise
        fields = {"event": "overtaken", "table": table.rules.path}
        _log.info("%s: the commit is written again: %s", table.rules.path, error.what, extra=fields)
        with table.hudi.exclusively():
            table.refresh(stream)
            again = replace(table_input, context=None)
            outcome = _write_and_commit(table, again, stream, batch, pool, services, committing)
    return outcome if outcome.instant is None else replace(outcome, services=services.after_commit(table))


def _check_left_out(table: LakeTable, table_input: TableInput) -> None:
    """Raise OvertakenError if another writer has brought some of these records since tasks read them, to a table whose
    rows do not say so."""
    if key_columns(table.hudi.config):
        return
    mine = Ranges((*table_input.ranges, *table_input.report.brought))
    if mine.meets(table_input.has(table).without(table_input.left_out)):
        raise OvertakenError(
            "another writer has brought some of these records since they were read",
            do_next="none needed: the batch runs again and leaves them out",
            table=table.rules.path,
        )


def commit_without_rows(table: LakeTable, table_input: TableInput, counts: Counts, stream: str, batch: int) -> None:
    """Commit the record of ``table_input`` without rows, because none is left. Errors as ``LakeTable.commit``.

    ``counts``: the final counts of the table's records.
    """
    context = table.begin(table.hudi.schema, Intent())
    with table.undone_on_error(context.instant):
        source = table_input.report.target.source
        record = CommitRecord(stream, batch, counts, source, table.origin, table_input.ranges, notes=table_input.notes)
        table.commit(context, [], record)


def _write_and_commit(
    table: LakeTable,
    table_input: TableInput,
    stream: str,
    batch: int,
    pool: Executor,
    services: TableServices,
    committing: Callable[[], None],
) -> TableOutcome:
    report, counts = table_input.report, copy.copy(table_input.report.counts)
    # One that came before removes nothing more: it must not pass for a record whose row is missing.
    counts.superseded += sum(not one.news_to(table.truncates) for one in table_input.each_truncate)
    if not (table_input.parcels or table_input.written or table_input.truncates.news_to(table.truncates)):
        if table_input.context is not None:
            table.hudi.abort(table_input.context.instant)
        counts.settle()
        return TableOutcome(None, counts)
    begun = table_input.context
    with table.undone_on_error(begun.instant) if begun is not None else contextlib.nullcontext():
        table.check_routing(report.target)
        _check_left_out(table, table_input)
        check_fed(table.hudi.config, report.target.merging, report.columns.names, table.rules.path)
    origin = table.origin_of(report)
    known = table.keyless.unmatched if table.keyless is not None else 0
    context = _context(table, table_input, services, stream)
    with table.undone_on_error(context.instant):
        started = monotonic_s()
        rows = _rows(table, table_input)
        replayed = table_input.notes.replayed is not None  # each once, whatever is counted
        wrote = table.rows.write(rows.groups, context, pool, OUT_OF_TURN if replayed else table.heights)
        done = [*wrote.done, *table_input.written]
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
        committing()
        table.commit(context, results, record, [one.touched for one in done if one.touched is not None])
    write_ms = (written - started) * 1000 - sum(wrote.stage_ms.values())
    stage_ms = {"write": write_ms, "publish": (monotonic_s() - written) * 1000, **wrote.stage_ms}
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
        held = schema is table.hudi.schema and {*begun.arrow_schema.names} >= {*table.merging.hidden_fields}
        return begun if held else table.context(begun.instant, schema)
    if retyped(table.hudi.schema, schema):
        services.end_logs(table, f"{stream}.types")  # hudi-rs reads one type per column in a slice's logs (measured)
        schema = table.schema_with(columns)  # it may have loaded another writer's commits
    return table.begin(schema, _intent(table, table_input, whole=bool(retyped(table.hudi.schema, schema))))


def _intent(table: LakeTable, table_input: TableInput, *, whole: bool) -> Intent:
    """What the batch will write to the table. Rows of a table without a key and deletes of a TRUNCATE may go to any
    file group."""
    if whole or table.keyless is not None or table_input.truncates.news_to(table.truncates):
        return WHOLE_TABLE
    places = sorted({(parcel.partition_path, parcel.bucket) for parcel in table_input.parcels})
    return table.rows.intent(places, table_input.report.columns)


def _source_times(report: TaskTableReport) -> tuple[int, int] | None:
    """The source's times (ms) of the oldest and the newest change, from which freshness is computed; None if the source
    gives no times."""
    return (report.oldest_ms, report.newest_ms) if report.newest_ms else None


def _heights(table: LakeTable, table_input: TableInput, done: Sequence[WrittenFile]) -> FactHeights | None:
    """How far facts are counted after the file groups; None if that does not change. Records that were quarantined, and
    come back, lie below what is counted."""
    known = [one.heights for one in done if one.heights is not None]
    return table.heights.merged(known) if known and table_input.notes.replayed is None else None


def _rows(table: LakeTable, table_input: TableInput) -> _DriverRows:
    """The rows that the driver holds, without those that a TRUNCATE of this batch removes."""
    rows = _unpacked(table, table_input)
    if not (table_input.truncates.news_to(table.truncates) or table.truncates.ends):
        return rows
    groups, dropped = without_truncated(table, table_input.truncates, rows.groups)
    return replace(rows, groups=groups, superseded=rows.superseded + dropped)


def _unpacked(table: LakeTable, table_input: TableInput) -> _DriverRows:
    by_place: dict[Place, list[Parcel]] = {}
    for parcel in table_input.parcels:
        by_place.setdefault((parcel.partition_path, parcel.bucket), []).append(parcel)
    events = by_place.pop(("", KEYLESS_BUCKET), None)
    groups = {place: unpack(parcels) for place, parcels in by_place.items()}
    if events is None:
        return _DriverRows(groups, table.keyless)
    target, state = table_input.report.target, (table.keyless or KeylessState()).copy()
    rows = unpack(events)
    order = table_input.truncates.whole  # a table without a key is never merged from several source tables
    fresh = rows.filter(pc.greater(rows.column("__order"), order))
    if order > table.truncates.whole:
        state.removed_until(order)
    gone = gone_after(table_input.notes.ddl or table.ddl)
    resolved = resolve(fresh, target, state, lambda marks: _live_rows(table.hudi, marks, order), gone)
    superseded = records(rows) - records(fresh) + resolved.superseded
    return _DriverRows(groups | _by_place(resolved.rows, resolved.paths, target), state, superseded)


def _live_rows(table: HudiTable, digests: frozenset[str], truncated_order: int) -> LiveRows:
    """The live rows of a keyless table whose content has one of the digests and that no TRUNCATE removes."""
    rows_by_digest: dict[str, list[LiveRow]] = {}
    wanted = pa.array(sorted(digests), pa.string())
    names = [ORDER_FIELD, PARTITION_PATH_FIELD, KEY, DIGEST_FIELD]
    for piece in table.file_slices():
        rows = read_file_slice(table, piece, columns=names)
        spared = pc.greater(rows.column(ORDER_FIELD), truncated_order)
        kept = rows.filter(pc.and_(pc.is_in(rows.column(DIGEST_FIELD), wanted), spared))
        for order, path, key, digest in zip(*(kept.column(n).to_pylist() for n in names), strict=True):
            rows_by_digest.setdefault(digest, []).append((order, path, key))
    return rows_by_digest


def _by_place(rows: pa.Table, paths: pa.Array, target: Target) -> dict[Place, pa.Table]:
    groups = split_by_bucket(target.config.bucketing, rows.column(KEY), (), paths)
    return {(path, bucket): rows.take(pa.array(groups.order[some])) for path, bucket, some in groups}
