"""One table's part of a batch on the driver: merge its parcels, write its files, commit them with their offsets."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.clock import monotonic_s, now_ms
from pipeline.hudi.actions.commit import OvertakenError
from pipeline.hudi.definition.bucket import bucket_ids, bucket_of_file_id, file_id
from pipeline.hudi.files.file_group_write import WriteContext, WriteResult, write_file_group
from pipeline.hudi.files.first_write import write_new_file_group
from pipeline.hudi.read.slice import read_file_slice
from pipeline.lake.lake_table import LakeTable
from pipeline.lake.table_services import Upkeep, UpkeepOutcome
from pipeline.position.commit_record import NO_NOTES, CommitNotes, CommitRecord
from pipeline.source.offsets import Ranges
from pipeline.tasks.plan import TableReport, Written
from pipeline.upsert.keyless import KeylessState, resolve
from pipeline.upsert.merge import Place, merge, records, truncated
from pipeline.upsert.parcel import KEYLESS_BUCKET, Parcel, unpack
from pipeline.upsert.route import KEY
from pipeline.upsert.target import ORDER_FIELD
from pipeline.upsert.truncates import NOTHING_TRUNCATED, Truncates

_log = logging.getLogger(__name__)


@dataclass
class TableWork:
    """What one batch brings for one table.

    ``context`` is set when tasks have written for the table already (``written``). ``truncates``: what
    TRUNCATE takes away in this batch. ``notes``: what else the commit records. ``stage_ms``: what files and instant
    took, known afterwards.
    """

    report: TableReport
    ranges: Ranges
    parcels: list[Parcel] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    context: WriteContext | None = None
    truncates: Truncates = NOTHING_TRUNCATED
    notes: CommitNotes = NO_NOTES
    stage_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """A table's commit: its instant (None where nothing had to be written), the bytes of its files, when it was visible
    (epoch, milliseconds), and the upkeep after it."""

    instant: str | None
    bytes_written: int = 0
    visible_ms: int = 0
    upkeep: UpkeepOutcome = field(default_factory=UpkeepOutcome)


def write_and_commit(
    table: LakeTable, work: TableWork, stream: str, batch: int, pool: Executor, upkeep: Upkeep
) -> TableOutcome:
    """Write what the tasks left to the driver, commit all of it, then see to the table's upkeep.

    On an error the instant is rolled back before the error goes on; not where the outcome is unknown or the instant is
    no longer ours. If another writer has overtaken the instant, what the driver holds is written again under the lock.
    The upkeep is not: a compaction may have to wait for others, who wait for the lock.
    """
    counts = copy.copy(work.report.counts)
    try:
        outcome = _write_and_commit(table, work, stream, batch, pool, upkeep)
    except OvertakenError as error:
        if work.written:
            raise
        fields = {"event": "overtaken", "table": table.rules.path}
        _log.info("%s: the commit is written again: %s", table.rules.path, error.what, extra=fields)
        work.context, work.report.counts = None, counts
        with table.table.exclusively():
            table.refresh(stream)
            outcome = _write_and_commit(table, work, stream, batch, pool, upkeep)
    return outcome if outcome.instant is None else replace(outcome, upkeep=upkeep.after_commit(table))


def _write_and_commit(
    table: LakeTable, work: TableWork, stream: str, batch: int, pool: Executor, upkeep: Upkeep
) -> TableOutcome:
    counts = work.report.counts
    if not (work.parcels or work.written or work.truncates.news_to(table.truncates)):
        if work.context is not None:
            table.table.abort(work.context.instant)
        counts.settle()
        return TableOutcome(None)
    origin = table.origin_of(work.report)
    if work.context is None and table.retypes(work.report.columns):
        upkeep.compact_now(table)  # hudi-rs reads one type a column in the log files of a slice (measured)
    instant = work.context.instant if work.context is not None else table.begin(work.report.columns).instant
    with table.undone_on_error(instant):
        context, started = table.context(instant, work.report.columns), monotonic_s()
        results, keyless = _write(table, work, context, pool)
        counts.settle()
        record = CommitRecord(
            stream,
            batch,
            counts,
            work.report.target.source,
            origin,
            work.ranges,
            truncates=work.truncates,
            keyless=keyless,
            notes=replace(work.notes, source_times=_source_times(work.report)),
        )
        written = monotonic_s()
        table.commit(context, results, record)
    work.stage_ms = {"write": (written - started) * 1000, "publish": (monotonic_s() - written) * 1000}
    return TableOutcome(instant, sum(r.size_bytes for r in results), now_ms())


def _source_times(report: TableReport) -> tuple[int, int] | None:
    """The source's times (ms) of the oldest and the newest change, where it gives them: how fresh a commit was."""
    return (report.oldest_ms, report.newest_ms) if report.newest_ms else None


def _write(
    table: LakeTable, work: TableWork, context: WriteContext, pool: Executor
) -> tuple[list[WriteResult], KeylessState | None]:
    """Write every file group the driver has rows for; the results, the tasks' among them."""
    groups, keyless = _groups(table, work)
    rewrites = _drop_truncated(table, work, groups) if work.truncates.news_to(table.truncates) else []

    existing = table.groups() if context.base_from_rows is not None else set()

    def write(item: tuple[Place, pa.Table]) -> tuple[list[WriteResult], int]:
        place, rows = item
        name = table.foreign_file_ids.get(place) or file_id(table.table.config.name, *place)
        group, superseded = merge(place, name, rows)
        if context.base_from_rows is not None and place not in existing:
            return write_new_file_group(table.storage, context, group), superseded
        return [write_file_group(table.storage, context, group)], superseded

    written = list(pool.map(write, [(place, rows) for place, rows in groups.items() if len(rows)]))
    lost = [s for _, s in written] + [w.superseded for w in work.written] + rewrites
    work.report.counts.superseded += sum(lost)
    return [r for results, _ in written for r in results] + [w.result for w in work.written], keyless


def _groups(table: LakeTable, work: TableWork) -> tuple[dict[Place, pa.Table], KeylessState | None]:
    """The rows the driver holds, by file group; for a keyless table also its next state."""
    by_place: dict[Place, list[Parcel]] = {}
    for parcel in work.parcels:
        by_place.setdefault((parcel.partition_path, parcel.bucket), []).append(parcel)
    events = by_place.pop(("", KEYLESS_BUCKET), None)
    groups = {place: unpack(parcels) for place, parcels in by_place.items()}
    if events is None:
        return groups, table.keyless
    state = (table.keyless or KeylessState()).copy()
    rows = unpack(events)
    order = work.truncates.whole  # a table without a key is not merged from others
    fresh = rows.filter(pc.greater(rows.column("__order"), order))
    work.report.counts.superseded += records(rows) - records(fresh)
    state.debts = [debt for debt in state.debts if debt[1] > order]
    resolved = resolve(fresh, work.report.target, state, lambda marks: table.live_rows(marks, order))
    work.report.counts.superseded += resolved.superseded
    return groups | _by_place(resolved.rows, resolved.paths, work), state


def _by_place(rows: pa.Table, paths: pa.Array, work: TableWork) -> dict[Place, pa.Table]:
    target = work.report.target
    buckets = bucket_ids(rows.column(KEY), (), target.buckets)
    encoded = paths.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64) * target.buckets + buckets
    groups: dict[Place, pa.Table] = {}
    for code in np.unique(codes).tolist():
        path, bucket = divmod(code, target.buckets)
        groups[(encoded.dictionary[path].as_py(), bucket)] = rows.take(pa.array(np.flatnonzero(codes == code)))
    return groups


def _drop_truncated(table: LakeTable, work: TableWork, groups: dict[Place, pa.Table]) -> list[int]:
    """Take a TRUNCATE into account: rows of the batch at or before it go, stored ones get deletes. How many went."""
    truncates, dropped = work.truncates, []
    for place, rows in groups.items():
        groups[place] = rows.filter(pa.array(rows.column("__order").to_numpy() > truncates.order_at(rows)))
        dropped.append(records(rows) - records(groups[place]))
    for piece in table.table.file_slices():
        place = (piece.partition_path, bucket_of_file_id(piece.file_id))
        columns = [KEY, ORDER_FIELD, *truncates.columns]
        deletes = truncated(read_file_slice(table.table, piece, columns=columns), truncates)
        mine = [groups[place]] if place in groups else []
        groups[place] = pa.concat_tables([deletes, *mine], promote_options="default")
    return dropped
