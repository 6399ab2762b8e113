"""Prepares a change batch for its lake table: refuse, drop, hold, restate, shape, target, null keys, route, in order.

The order matters. Statements of the source name the source's columns, so rows are restated before they are shaped.
Keys and partitions are made of shaped columns. No step sees rows that an earlier step has rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import (
    FILE_BITS,
    META_NAMES,
    POSITION_BITS,
    UNKNOWN_PLACE,
    ChangeBatch,
    TableSchema,
    rows_where,
)
from binlake.decode.quarantine import Reason
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.engines.facts import FACT, FEED, route_facts
from binlake.rows.upsert.engines.refusals import engine_refusals, without_moves
from binlake.rows.upsert.parcel import Parcel
from binlake.rows.upsert.removed import removals_as_deletes, removed_rows
from binlake.rows.upsert.route import (
    GROUP,
    KEY,
    ORDER_COLUMNS,
    Counts,
    Routed,
    fresh_rows,
    route,
    split_null_keys,
    split_unusable_paths,
    without_records_of,
)
from binlake.rows.upsert.shape import shape
from binlake.rows.upsert.spelling import spelled
from binlake.rows.upsert.target import Target, make_target
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from binlake.schema.rules.plan import DDL_REFUSED, LATE_ROW, NO_DDL, SourceDdl, refused
from binlake.schema.rules.restatement import deleted, differing, restate_batch
from binlake.schema.rules.row_places import NO_SNAPSHOTS, RowPlaces, SnapshotPlaces
from binlake.settings import TableRules
from binlake.settings.fanout import Part
from binlake.settings.merging import GroupRule
from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import Bucketing

#: The quarantine reason for records of a table that the lake cannot hold.
TABLE_REFUSED = "table_refused"
#: Reasons that do not mean bad input: the records do not count towards the quarantine's threshold.
UNCOUNTED_REASONS = frozenset({TABLE_REFUSED, DDL_REFUSED, LATE_ROW, Reason.IRREVOCABLE})


@dataclass(frozen=True, slots=True)
class SnapshotRank:
    """What ranks the snapshot rows of a table that was fetched anew: those that were read at the binlog place ``since``
    or later get the ordering value ``order``."""

    since: int
    order: int


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Facts that decide, besides the settings, which rows of a source table go on.

    Args:
        ddl: the source's statements about it.
        applied_until: partition of the batch's topic -> offset below which the lake table has applied everything.
        truncates: the rows that TRUNCATE has removed from the lake table.
        refused: why the lake table accepts no rows; None if it accepts them.
        rank: of snapshot rows; None for a table that was never fetched anew.
        columns: lake names whose case the rows take on; none if rows are known to come in that case.
        bucketing: of the lake table; None for the settings' buckets.
    """

    ddl: SourceDdl = NO_DDL
    applied_until: Mapping[int, int] = field(default_factory=dict)
    truncates: Truncates = NOTHING_TRUNCATED
    refused: str | None = None
    rank: SnapshotRank | None = None
    columns: Collection[str] = ()
    bucketing: Bucketing | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows whose records go to the quarantine, each record as a whole."""

    rows: ChangeBatch
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """Rows for the file groups.

    Args:
        schema: the columns as the lake table keeps them, under the source's names.
        target: the lake table.
        columns: value columns as in the parcels; none where there is no parcel.
        parcels: rows by file group.
        counts: of the records so far.
        oldest_ms, newest_ms: the range of the source's times in milliseconds, 0 where it gives none.
        snapshots: the places at which snapshot rows were read.
        doubt: where the source sent another value for a computed column than binlake computes; None if it did not.
    """

    schema: TableSchema
    target: Target
    columns: pa.Schema
    parcels: Sequence[Parcel]
    counts: Counts
    oldest_ms: int = 0
    newest_ms: int = 0
    snapshots: SnapshotPlaces = NO_SNAPSHOTS
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class LakeRows:
    """Rows of a change batch as their lake table keeps them, under the source's names, and the table.

    ``doubt``: as in ``Accepted``.
    """

    batch: ChangeBatch
    target: Target
    doubt: str | None = None


@dataclass(slots=True)
class LeftOut:
    """The rows of a change batch that do not go on.

    ``dropped``: the number of rows that were removed with a dropped table. ``held``: rows that wait until all rows
    before a statement are applied.
    """

    rejected: list[Rejected] = field(default_factory=list)
    dropped: int = 0
    held: ChangeBatch | None = None

    def reject(self, rows: ChangeBatch | None, reason: str, detail: str) -> None:
        """Note rejected rows; None has no effect."""
        if rows is not None:
            self.rejected.append(Rejected(rows, reason, detail))


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of preparing a change batch. ``accepted`` is None where no row is left."""

    accepted: Accepted | None
    left_out: LeftOut


def lake_rows(
    batch: ChangeBatch, rules: TableRules, part: Part | None, facts: TableFacts
) -> tuple[LakeRows | None, LeftOut]:
    """The steps before routing: refuse, hold, restate, shape, target, null keys, usable paths. None where no row is
    left.

    Arguments as for ``prepare``.
    """
    out = LeftOut()
    left = _accepted_by_ddl(batch, facts, out)
    if left is None:
        return None, out
    try:
        doubt = differing(left, facts.ddl.restatements)
        left = spelled(restate_batch(left, facts.ddl.restatements, facts.ddl.texts), facts.columns)
        shaped = shape(left, rules, part)
        out.reject(shaped.bad, Reason.BAD_COMPUTED, shaped.why)
        left = without_records_of(shaped.good, shaped.bad)
        target = make_target(left.schema, rules, facts.ddl.key, facts.bucketing)
        left, keyless = split_null_keys(left, target)
        out.reject(keyless, Reason.NULL_KEY, f"the key {', '.join(target.key)} is null")
        left = without_records_of(left, keyless)
        left, unusable = split_unusable_paths(left, target)
        out.reject(unusable, Reason.BAD_PARTITION, "the partition value cannot name a directory")
        left, irrevocable, why = engine_refusals(without_records_of(left, unusable), target)
        out.reject(irrevocable, Reason.IRREVOCABLE, why)
        return LakeRows(without_records_of(left, irrevocable), target, doubt), out
    except UnsupportedError as error:
        out.reject(left, TABLE_REFUSED, str(error))
        return None, out


def prepare(batch: ChangeBatch, rules: TableRules, part: Part | None, facts: TableFacts) -> Prepared:
    """Bring one change batch into the form in which its lake table is written.

    Args:
        batch: n rows of one source table, under the name of the lake table.
        rules: of the lake table.
        part: what the source table is of a lake table that several feed; None for a table of its own.
        facts: the known facts about the table.

    A rule that cannot hold for the table rejects the remaining rows (``TABLE_REFUSED``) and raises nothing.
    """
    found, out = lake_rows(batch, rules, part, facts)
    if found is None:
        return Prepared(None, out)
    try:
        left = removals_as_deletes(found.batch, keyed=bool(found.target.key))
        ranked = _ranked(left, facts.rank)  # only now: statements are placed by the snapshot's own order
        gone_until = _gone_until(ranked, facts.truncates.order_of(part))
        routed = _routed(ranked, found.target, facts.applied_until, gone_until, part)
        return Prepared(replace(_accepted(found.batch, found.target, routed), doubt=found.doubt), out)
    except UnsupportedError as error:
        out.reject(found.batch, TABLE_REFUSED, str(error))
        return Prepared(None, out)


def _routed(
    batch: ChangeBatch, target: Target, applied_until: Mapping[int, int], gone_until: int | Int64s, part: Part | None
) -> Routed:
    """The batch at the places of its rows, as the table's engine takes them."""
    engine = target.merging.engine
    if engine == "aggregate":
        return route_facts(batch, target, dict(target.merging.functions), applied_until, gone_until)
    if engine == "first_row":
        batch, ignored = without_moves(batch, target)
        routed = route(batch, target, applied_until, gone_until, every=True)
        again = len(ignored) - int(fresh_rows(ignored, applied_until).sum())
        routed.counts.add(Counts(len(ignored) - again, superseded=len(ignored) - again, already_applied=again))
        return routed
    group = part.index if isinstance(part, GroupRule) else None
    return route(batch, target, applied_until, gone_until, group, every=engine == "partial_update")


def _accepted_by_ddl(batch: ChangeBatch, facts: TableFacts, out: LeftOut) -> ChangeBatch | None:
    """The rows that the lake table and the source's statements let pass; None if there are none."""
    if facts.refused is not None:
        out.reject(batch, TABLE_REFUSED, str(UnsupportedError(facts.refused)))
        return None
    allowed, bad = refused(batch, facts.ddl.refusals)
    for rows, why in bad:
        out.reject(rows, DDL_REFUSED, why)
    if allowed is None:
        return None
    left = _without_waiting(_without_dropped(allowed, facts, out), facts, out)
    return _without_late(left, facts, out)


def _without_dropped(batch: ChangeBatch, facts: TableFacts, out: LeftOut) -> ChangeBatch | None:
    """The batch without the rows that DROP TABLE removed. Their columns and keys are another table's."""
    gone = deleted(RowPlaces.incoming(batch.rows), facts.ddl.restatements)
    out.dropped = int(gone.sum())
    return _kept(batch, ~gone)


def _without_waiting(batch: ChangeBatch | None, facts: TableFacts, out: LeftOut) -> ChangeBatch | None:
    """The batch without the rows that wait: those after a statement that is held, and not applied already."""
    if batch is None or facts.ddl.held is None:
        return batch
    earlier, unsure = RowPlaces.incoming(batch.rows).before(*facts.ddl.held)
    out.held = _kept(batch, ~earlier & ~unsure & fresh_rows(batch.rows, facts.applied_until))
    return _kept(batch, earlier | unsure)


def _without_late(batch: ChangeBatch | None, facts: TableFacts, out: LeftOut) -> ChangeBatch | None:
    """The batch without rows from before the statement that took the table's key: all of them were applied when it was
    carried out, so these came again or came late."""
    if batch is None or facts.ddl.keyless_since is None:
        return batch
    earlier, _ = RowPlaces.incoming(batch.rows).before(*facts.ddl.keyless_since)
    late = _kept(batch, earlier)
    out.reject(late, LATE_ROW, "the table has lost its key since, so the row that it changes cannot be found")
    return _kept(batch, ~earlier)


def _kept(batch: ChangeBatch, mask: npt.NDArray[np.bool_]) -> ChangeBatch | None:
    if mask.all():
        return batch
    return rows_where(batch, mask) if mask.any() else None


def _gone_until(batch: ChangeBatch, truncated: int) -> int | Int64s:
    """The ordering value up to which TRUNCATE removed rows; one value for each row where a statement about a partition
    removed some."""
    gone = removed_rows(batch)
    return np.where(gone, np.iinfo(np.int64).max, truncated) if gone.any() else truncated


def _ranked(batch: ChangeBatch, rank: SnapshotRank | None) -> ChangeBatch:
    """The batch with the ordering values of snapshot rows by their rank."""
    if rank is None:
        return batch
    orders, places = batch.rows.column("__order").to_numpy(), batch.rows.column("__place").to_numpy()
    unplaced = (orders >> POSITION_BITS) & ((1 << FILE_BITS) - 1) == 0
    snapshot = unplaced & (places != UNKNOWN_PLACE) & (places >= rank.since)
    if not snapshot.any():
        return batch
    at = batch.rows.column_names.index("__order")
    ranked = pa.array(np.where(snapshot, rank.order, orders), pa.int64())
    return replace(batch, rows=batch.rows.set_column(at, batch.rows.schema.field(at), ranked))


def _accepted(batch: ChangeBatch, target: Target, routed: Routed) -> Accepted:
    millis = batch.rows.column("__source_ms").to_numpy()
    known = millis[millis > 0]
    oldest, newest = (int(known.min()), int(known.max())) if len(known) else (0, 0)
    return Accepted(
        batch.schema,
        target,
        _value_columns(routed.parcels),
        routed.parcels,
        routed.counts,
        oldest,
        newest,
        SnapshotPlaces.of(RowPlaces.incoming(batch.rows)),
    )


def _value_columns(parcels: Sequence[Parcel]) -> pa.Schema:
    """The lake's value columns as in the parcels."""
    if not parcels:
        return pa.schema([])
    schema = pa.ipc.open_stream(parcels[0].blob).schema
    hidden = {KEY, GROUP, *ORDER_COLUMNS, *META_NAMES, "__part", FEED, FACT}
    return pa.schema([f.with_nullable(True) for f in schema if f.name not in hidden])
