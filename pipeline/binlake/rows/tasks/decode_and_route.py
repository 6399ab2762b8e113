"""Turns offset ranges or raw records into parcels inside Spark tasks: fetch, decode, prepare. Plain functions over
iterators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import (
    ChangeBatch,
    ControlKind,
    DecodedRecords,
    QuarantinedRecord,
    RawRecords,
    SourceTable,
    TableSchema,
    note_said,
)
from binlake.decode.formats.reader import decode
from binlake.decode.inferred import add_inferred
from binlake.position.binlog_height import stretch_of
from binlake.rows.tasks.counts import TaskCounts
from binlake.rows.tasks.plan import BatchPlan, Item, TableState, TaskFailure, TaskReport, TaskTableReport
from binlake.rows.upsert.fanout import fan_out, part_of
from binlake.rows.upsert.parcel import Parcel
from binlake.rows.upsert.prepare import UNCOUNTED_REASONS, AcceptedRows, SnapshotRank, TableFacts, prepare
from binlake.rows.upsert.target import key_columns, needs_before_images, tells_records
from binlake.schema.rules.plan import named
from binlake.schema.rules.restatement import DDL_REFUSED, NO_DDL
from binlake.source.fetch import fetch
from binlake.source.offsets import NO_RANGES, OffsetRange, Ranges
from hudilake.clock import monotonic_s
from hudilake.errors import LakeError, TransientError
from hudilake.format.definition.column_names import lake_name

_NEW = TableState()
#: A row of a table that was dropped after it, counted as filtered.
DROPPED_TABLE = "dropped_table"
#: Counts records of a refused table that it has already.
KNOWN = "already_applied"


def fetch_and_decode(plan: BatchPlan, ranges: Sequence[OffsetRange]) -> Iterator[Item]:
    """Fetch offset ranges from Kafka and decode them; yields parcels, then one report."""
    records = fetch(plan.kafka, ranges, timeout_s=plan.fetch_timeout_s, chunk_records=plan.chunk_records)
    try:
        yield from decode_records(plan, records)
    except TransientError:
        raise  # Spark tries the task again
    except LakeError as error:
        yield TaskFailure(error)


def decode_records(plan: BatchPlan, chunks: Iterable[RawRecords]) -> Iterator[Item]:
    """Decode and route raw records; yields parcels, then one report."""
    report, counts = TaskReport(), TaskCounts(plan.counts_in)
    source = iter(chunks)
    while True:
        started = monotonic_s()
        records = next(source, None)
        report.spent("fetch", started)
        if records is None:
            break
        counts.add(records.topic, fetched=len(records))
        yield from _decode_chunk(plan, records, report)
        counts.add(records.topic, decoded=len(records))
    yield report


def _decode_chunk(plan: BatchPlan, records: RawRecords, report: TaskReport) -> list[Parcel]:
    started = monotonic_s()
    read = decode(records, plan.schemas, plan.decoding)
    known = named(read, plan.ddl)
    decoded = fan_out(known.decoded, plan.tables)
    report.records += len(records)
    report.raw_bytes += sum(records.sizes)
    report.by_template += read.by_template
    note_said(report.says_deletes, records.topic, read.says_deletes)
    report.nulls.add(read.nulls)
    if read.lone_tombstones:
        report.lone_tombstones.add(records.topic)
    _report_refused(plan, records, known.refused, report)
    _report_rest(plan, decoded, report)
    report.spent("decode", started)
    started, parcels = monotonic_s(), []
    for batch in decoded.changes:
        parcels += _parcels(plan, records, batch, report)
    report.spent("route", started)
    return parcels


def _report_refused(
    plan: BatchPlan, records: RawRecords, refused: Iterable[tuple[ChangeBatch, str]], report: TaskReport
) -> None:
    """Report rows whose table name belongs to no table of the lake."""
    for batch, why in refused if plan.only is None else ():
        report.quarantined += _records_of(batch.rows, batch, records, _NEW, DDL_REFUSED, why)


def _report_rest(plan: BatchPlan, decoded: DecodedRecords, report: TaskReport) -> None:
    """Report the other results of decoding: filtered and quarantined records, controls, columns without a schema."""
    for key, count in decoded.filtered.items() if plan.only is None else ():
        report.filtered[key] = report.filtered.get(key, 0) + count
    report.controls += [
        c
        for c in decoded.controls
        if (plan.only is None and c.kind is ControlKind.DDL) or _wanted(plan, c.source, c.origin)
    ]
    for table, names in decoded.unknown_columns.items():
        report.unknown_columns.setdefault(table, set()).update(names)
    for table, columns in decoded.inferred.items():
        add_inferred(report.inferred.setdefault(table, {}), columns)
    places = [(c.source, c.topic) for c in decoded.controls] + [(q.source, q.topic) for q in decoded.quarantined]
    for source, topic in places:
        if source is not None and plan.only is None and plan.states.get(source, _NEW).skipped:
            report.skipped.setdefault(source, set()).add(topic)
    _quarantine(plan, report, [q for q in decoded.quarantined if q.source is None or _wanted(plan, q.source, q.origin)])


def _wanted(plan: BatchPlan, source: SourceTable, origin: SourceTable | None = None) -> bool:
    if plan.only is not None:
        return source == plan.only and plan.tables.selects(origin or source)
    return plan.tables.selects(origin or source) and not plan.states.get(source, _NEW).skipped


def _quarantine(plan: BatchPlan, report: TaskReport, records: list[QuarantinedRecord]) -> None:
    """Count all records; keep only as many as the job's threshold allows."""
    room = plan.max_quarantined + 1 - report.quarantined_count
    report.quarantined_count += len(records)
    report.quarantined += records[: max(0, room)]


def _parcels(plan: BatchPlan, records: RawRecords, batch: ChangeBatch, report: TaskReport) -> list[Parcel]:
    """The parcels of one change batch; adds the fates of its records to the report."""
    source, origin = batch.schema.source, batch.origin or batch.schema.source
    if not _wanted(plan, source, origin):
        _report_unwanted(plan, batch, report)
        return []
    report.shown.setdefault(origin, set()).update(column.name for column in batch.schema.columns)
    if (stretch := stretch_of(batch, origin)) is not None:
        report.stretches.append(stretch)
    state, keeps_all = plan.states.get(source, _NEW), plan.tables.is_history(source)
    part = None if keeps_all else part_of(origin, plan.tables)
    applied_until = state.applied_until.get(batch.topic, {})
    delivered = _delivered(state, report.tables.get(source))
    facts = TableFacts(
        NO_DDL if keeps_all else plan.ddl.of(origin),
        applied_until,
        state.truncates,
        state.refused,
        _ranked(state),
        state.columns,
        state.bucketing,
        delivered.of_topics({batch.topic}),
    )
    rules = plan.tables.rules(source)
    prepared = prepare(batch, rules, part, facts)
    out = prepared.left_out
    for one in out.rejected:
        quarantined = _records_of(one.rows, batch, records, state, one.reason, one.detail)
        if one.reason in UNCOUNTED_REASONS:
            report.quarantined += quarantined
        else:
            _quarantine(plan, report, quarantined)
    if out.dropped:
        report.filtered[(source, DROPPED_TABLE)] = report.filtered.get((source, DROPPED_TABLE), 0) + out.dropped
    if out.known:
        report.filtered[(source, KNOWN)] = report.filtered.get((source, KNOWN), 0) + out.known
    if out.held is not None:
        first = int(pc.min(out.held.column("__offset")).as_py())
        report.hold(source, {(batch.topic, records.partition): first})
    accepted = prepared.accepted
    if accepted is None:
        return []
    report.add_table(
        source,
        TaskTableReport(
            schema=accepted.schema,
            target=accepted.target,
            columns=accepted.columns,
            topics={batch.topic},
            origins={origin},
            shared=part is not None,
            counts=accepted.counts,
            oldest_ms=accepted.oldest_ms,
            newest_ms=accepted.newest_ms,
            snapshots=accepted.snapshots,
            before_images=needs_before_images(accepted.schema, accepted.target, rules),
            doubt=accepted.doubt,
            unordered={(batch.topic, records.partition)} if _is_unordered(batch.schema, accepted) else set(),
            brought=_brought(batch, accepted).without(delivered) if plan.notes_records else NO_RANGES,
        ),
    )
    return list(accepted.parcels)


def _delivered(state: TableState, before: TaskTableReport | None) -> Ranges:
    """The records that a table has, with those of the task's chunks before: a dump may name a record twice."""
    if before is None or not before.brought or tells_records(before.target.config, before.target.merging):
        return state.delivered
    return Ranges((*state.delivered, *before.brought)).united()


def _brought(batch: ChangeBatch, accepted: AcceptedRows) -> Ranges:
    """The offsets of a batch's rows; of a table whose rows tell their records, one range of each partition."""
    keyed = tells_records(accepted.target.config, accepted.target.merging)
    partitions, offsets = batch.rows.column("__partition").to_numpy(), batch.rows.column("__offset").to_numpy()
    return Ranges(
        one
        for partition in np.unique(partitions).tolist()
        for one in _runs(batch.topic, partition, np.unique(offsets[partitions == partition]), whole=keyed)
    )


def _runs(topic: str, partition: int, offsets: npt.NDArray[np.int64], *, whole: bool) -> Iterator[OffsetRange]:
    """The ranges of n > 0 ascending offsets; ``whole``: one from the first to the last."""
    if whole:
        yield OffsetRange(topic, partition, int(offsets[0]), int(offsets[-1]) + 1)
        return
    firsts = np.flatnonzero(np.diff(offsets, prepend=offsets[0] - 2) != 1)
    for first, last in zip(offsets[firsts], offsets[np.append(firsts[1:], len(offsets)) - 1], strict=True):
        yield OffsetRange(topic, partition, int(first), int(last) + 1)


def _is_unordered(source: TableSchema, accepted: AcceptedRows) -> bool:
    """Whether partitions of a topic give changes of one row of the lake: its key does not name the row of the source by
    which the connector chooses a partition."""
    target = accepted.target
    if target.merging.groups:
        return not accepted.schema.key
    own = target.source_key if key_columns(target.config) and not target.merging.functions else None
    return own is not None and not {*map(lake_name, source.key)} <= {*own}


def _ranked(state: TableState) -> SnapshotRank | None:
    return SnapshotRank(state.resync.place, state.resync.order + 1) if state.resync is not None else None


def _report_unwanted(plan: BatchPlan, batch: ChangeBatch, report: TaskReport) -> None:
    """Report rows of a table that is excluded, or that is behind and is caught up separately."""
    source = batch.schema.source
    if plan.only is not None:
        return
    if plan.tables.selects(batch.origin or source):
        report.skipped.setdefault(source, set()).add(batch.topic)
    else:
        key = (source, "excluded")
        report.filtered[key] = report.filtered.get(key, 0) + len(batch.rows)


def _records_of(
    rows: pa.Table, batch: ChangeBatch, records: RawRecords, state: TableState, reason: str, detail: str
) -> list[QuarantinedRecord]:
    """Every record of some rows of a change batch as quarantined, except those that the table has applied already."""
    offsets = np.unique(rows.column("__offset").to_numpy())
    offsets = offsets[offsets >= state.applied(batch.topic, records.partition)]
    places = np.searchsorted(records.offsets, offsets).tolist()
    return [records.quarantined(place, reason, detail, batch.schema.source) for place in places]
