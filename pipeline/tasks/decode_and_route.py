"""What runs inside Spark's tasks: raw records -> parcels, and parcels -> log files. Plain functions over iterators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from pipeline.clock import monotonic_s
from pipeline.decode.changes import META_NAMES, ChangeBatch, ControlKind, Quarantined, RawRecords, SourceTable
from pipeline.decode.formats.reader import decode
from pipeline.decode.quarantine import Reason
from pipeline.errors import BinlakeError, TransientError, UnsupportedError
from pipeline.hudi.definition.bucket import file_id
from pipeline.hudi.files.file_group_write import FileGroupWrite, WriteContext, WriteResult, write_file_group
from pipeline.hudi.files.first_write import write_new_file_group
from pipeline.position.binlog_height import stretch_of
from pipeline.schema_changes.rules.plan import DDL_REFUSED, SourceDdl, named, refused
from pipeline.schema_changes.rules.restatement import deleted, restate_batch
from pipeline.source.fetch import fetch
from pipeline.source.offsets import OffsetRange
from pipeline.storage import Storage, open_storage
from pipeline.tasks.plan import (
    BatchPlan,
    TableFailed,
    TableReport,
    TableState,
    TableWriter,
    TaskFailed,
    TaskReport,
    Written,
)
from pipeline.upsert.collapse import Int64s
from pipeline.upsert.fanout import fan_out, shard_of
from pipeline.upsert.merge import merge
from pipeline.upsert.parcel import KEYLESS_BUCKET, Parcel, unpack
from pipeline.upsert.route import KEY, ORDER_COLUMNS, route, split_null_keys, without_records_of
from pipeline.upsert.shape import shape
from pipeline.upsert.target import make_target

Item = Parcel | TaskReport | Written | TableFailed | TaskFailed
_NEW = TableState()


def fetch_and_decode(plan: BatchPlan, ranges: Sequence[OffsetRange]) -> Iterator[Item]:
    """Fetch offset ranges from Kafka and decode them: parcels, then one report."""
    records = fetch(plan.kafka, ranges, timeout_s=plan.fetch_timeout_s, chunk_records=plan.chunk_records)
    try:
        yield from decode_records(plan, records)
    except TransientError:
        raise  # Spark tries the task again
    except BinlakeError as error:
        yield TaskFailed(error)


def decode_records(plan: BatchPlan, chunks: Iterable[RawRecords]) -> Iterator[Item]:
    """Decode and route raw records: parcels, then one report."""
    report = TaskReport()
    source = iter(chunks)
    while True:
        started = monotonic_s()
        records = next(source, None)
        _spent(report, "fetch", started)
        if records is None:
            break
        yield from _decode_chunk(plan, records, report)
    yield report


def _spent(report: TaskReport, stage: str, started: float) -> None:
    report.stage_ms[stage] = report.stage_ms.get(stage, 0.0) + (monotonic_s() - started) * 1000


def _decode_chunk(plan: BatchPlan, records: RawRecords, report: TaskReport) -> list[Parcel]:
    started = monotonic_s()
    known = named(decode(records, plan.schemas, plan.decoding), plan.ddl)
    decoded = fan_out(known.decoded, plan.tables)
    report.records += len(records)
    report.raw_bytes += sum(records.sizes)
    for (source, kind), count in decoded.filtered.items():
        if plan.only is None:
            report.filtered[(source, kind)] = report.filtered.get((source, kind), 0) + count
    for batch, why in known.refused:
        if plan.only is None:
            report.quarantined += _whole_batch(batch, records, _NEW, DDL_REFUSED, why)
    statements = plan.only is None
    report.controls += [
        c for c in decoded.controls if (statements and c.kind is ControlKind.DDL) or _wanted(plan, c.source, c.origin)
    ]
    for source, names in decoded.unknown_columns.items():
        report.unknown_columns.setdefault(source, set()).update(names)
    _quarantine(plan, report, [q for q in decoded.quarantined if q.source is None or _wanted(plan, q.source, q.origin)])
    _spent(report, "decode", started)
    started, parcels = monotonic_s(), []
    for batch in decoded.changes:
        parcels += _route_batch(plan, records, batch, report)
    _spent(report, "route", started)
    return parcels


def _wanted(plan: BatchPlan, source: SourceTable, origin: SourceTable | None = None) -> bool:
    if plan.only is not None:
        return source == plan.only
    return plan.tables.selects(origin or source) and not plan.states.get(source, _NEW).skipped


def _quarantine(plan: BatchPlan, report: TaskReport, records: list[Quarantined]) -> None:
    """Count them all; carry only as many as the job's threshold lets through."""
    room = plan.max_quarantined + 1 - report.quarantined_count
    report.quarantined_count += len(records)
    report.quarantined += records[: max(0, room)]


def _route_batch(plan: BatchPlan, records: RawRecords, batch: ChangeBatch, report: TaskReport) -> list[Parcel]:
    source, origin = batch.schema.source, batch.origin or batch.schema.source
    if not _wanted(plan, source, origin):
        if plan.only is None and not plan.tables.selects(origin):
            key = (source, "excluded")
            report.filtered[key] = report.filtered.get(key, 0) + len(batch.rows)
        elif plan.only is None:
            report.skipped.setdefault(source, set()).add(batch.topic)
        return []
    if (stretch := stretch_of(batch, origin)) is not None:
        report.stretches.append(stretch)
    state = plan.states.get(source, _NEW)
    try:
        if state.refused is not None:
            raise UnsupportedError(state.refused)
        rules, shard, ddl = plan.tables.rules(source), shard_of(origin, plan.tables), plan.ddl.of(origin)
        allowed, bad = refused(batch, ddl.refusals)
        for part, why in bad:
            report.quarantined += _whole_batch(part, records, state, DDL_REFUSED, why)
        if allowed is None:
            return []
        batch = restate_batch(allowed, ddl.restatements, ddl.texts)
        shaped = shape(batch, rules, shard)
        if shaped.bad is not None:
            _quarantine(plan, report, _whole_batch(shaped.bad, records, state, Reason.BAD_COMPUTED, shaped.why))
        batch = without_records_of(shaped.good, shaped.bad)
        target = make_target(batch.schema, rules)
        batch, keyless = split_null_keys(batch, target)
        if keyless is not None:
            detail = f"the key {', '.join(target.key)} is null"
            _quarantine(plan, report, _whole_batch(keyless, records, state, Reason.NULL_KEY, detail))
        batch = without_records_of(batch, keyless)
        applied = state.applied_until.get(batch.topic, {})
        routed = route(batch, target, applied, _gone_until(batch, ddl, state.truncates.order_of(shard)))
    except UnsupportedError as error:
        # a refused table is no flood of bad input: its records do not count towards the threshold
        report.quarantined += _whole_batch(batch, records, state, "table_refused", str(error))
        return []
    millis = batch.rows.column("__source_ms").to_numpy()
    known = millis[millis > 0]
    seen = TableReport(
        schema=batch.schema,
        target=target,
        columns=_value_columns(routed.parcels),
        topics={batch.topic},
        origins={origin},
        sharded=shard is not None,
        counts=routed.counts,
        oldest_ms=int(known.min()) if len(known) else 0,
        newest_ms=int(known.max()) if len(known) else 0,
    )
    if source in report.tables:
        report.tables[source].add(seen)
    else:
        report.tables[source] = seen
    return routed.parcels


def _gone_until(batch: ChangeBatch, ddl: SourceDdl, truncated: int) -> int | Int64s:
    """The ordering value up to which rows are gone, by TRUNCATE; each row's own where a DROP TABLE took some away."""
    if not any(one.deletes for one in ddl.restatements):
        return truncated
    gone = deleted(np.asarray(batch.rows.column("__order").to_numpy(), dtype=np.int64), ddl.restatements)
    return np.where(gone, np.iinfo(np.int64).max, truncated)


def _value_columns(parcels: Sequence[Parcel]) -> pa.Schema:
    """The lake's value columns as the parcels hold them."""
    if not parcels:
        return pa.schema([])
    schema = pa.ipc.open_stream(parcels[0].blob).schema
    hidden = {KEY, *ORDER_COLUMNS, *META_NAMES, "__part"}
    return pa.schema([f.with_nullable(True) for f in schema if f.name not in hidden])


def _whole_batch(
    batch: ChangeBatch, records: RawRecords, state: TableState, reason: str, detail: str
) -> list[Quarantined]:
    """Every record behind a change batch, as quarantined, but for those the table has applied already."""
    offsets = np.unique(batch.rows.column("__offset").to_numpy())
    offsets = offsets[offsets >= state.applied_until.get(batch.topic, {}).get(records.partition, 0)]
    found = np.searchsorted(records.offsets, offsets)
    return [records.quarantined(int(at), reason, detail, batch.schema.source) for at in found]


def write_parcels(plan: BatchPlan, items: Iterable[Item]) -> Iterator[Item]:
    """Merge and write the parcels of the tables this plan opened; hand everything else on to the driver."""
    groups: dict[tuple[str, str, int], list[Parcel]] = {}
    report = TaskReport()
    for item in items:
        if isinstance(item, Parcel) and _writable(plan.writers, item):
            groups.setdefault((item.table, item.partition_path, item.bucket), []).append(item)
        else:
            yield item
    lake = open_storage(plan.lake_uri, plan.lake_options)
    started = monotonic_s()
    for (table, path, bucket), parcels in groups.items():
        writer = plan.writers[table]
        name = writer.file_ids.get((path, bucket)) or file_id(writer.context.table_name, path, bucket)
        try:
            group, superseded = merge((path, bucket), name, unpack(parcels))
            storage, first = lake.sub(table), (path, bucket) not in writer.existing
            for result in _write_group(storage, writer.context, group, first=first):
                yield Written(table, result, superseded)
                superseded = 0
        except BinlakeError as error:
            yield TableFailed(table, error)
    _spent(report, "write", started)
    yield report


def _write_group(
    storage: Storage, context: WriteContext, group: FileGroupWrite, *, first: bool
) -> Sequence[WriteResult]:
    return write_new_file_group(storage, context, group) if first else [write_file_group(storage, context, group)]


def _writable(writers: Mapping[str, TableWriter], parcel: Parcel) -> bool:
    """Whether a task may write this parcel: an open instant, a record key, and no column that is new to the table."""
    writer = writers.get(parcel.table)
    if writer is None or parcel.bucket == KEYLESS_BUCKET:
        return False
    known = {f.name: f.type for f in writer.context.arrow_schema}
    incoming = pa.ipc.open_stream(parcel.blob).schema
    return all(known.get(f.name) == f.type for f in incoming if f.name not in (KEY, *ORDER_COLUMNS))
