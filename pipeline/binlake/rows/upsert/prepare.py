"""Prepares a change batch for its lake table, in one pass over its rows.

1. The statements of the source say which rows go on, and what these were after them. They name the source's columns, so
   they come first.
2. The columns are shaped for the lake table.
3. The rows are placed: lake names, record keys and partition paths are worked out once (``place_rows``).
4. The rows are cut into parcels.

A row that does not go on has one reason, the first one. A step marks such rows; none sees rows that an earlier step has
rejected.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from binlake.decode.changes import (
    META_NAMES,
    UNKNOWN_PLACE,
    ChangeBatch,
    Mask,
    TableSchema,
    rows_where,
)
from binlake.decode.quarantine import Reason
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.engines.engine import engine_of
from binlake.rows.upsert.engines.facts import FACT, FEED
from binlake.rows.upsert.parcel import Parcel
from binlake.rows.upsert.place import (
    PlacedRows,
    ambiguous_keys,
    null_keys,
    place_rows,
    removed_as_deletes,
    unusable_paths,
)
from binlake.rows.upsert.route import GROUP, KEY, ORDER_COLUMNS, AppliedRecords, Counts, RoutedRows
from binlake.rows.upsert.shape import shape, spelled
from binlake.rows.upsert.target import Target, is_found_by_partition, needs_before_images, target_and_names
from binlake.rows.upsert.truncates import MOST_ENDS, NOTHING_TRUNCATED, Truncates
from binlake.rows.upsert.version_columns import START_AT
from binlake.schema.rules.definitions import OTHER_COLUMNS
from binlake.schema.rules.restatement import DDL_REFUSED, LATE_ROW, NO_DDL, RestatedRows, RowFates, SourceDdl
from binlake.schema.rules.row_places import NO_SNAPSHOTS, RowPlaces, SnapshotPlaces, has_no_binlog_place
from binlake.settings import TableRules
from binlake.settings.fanout import Part, ShardRule
from binlake.settings.merging import GroupRule
from binlake.source.offsets import NO_RANGES, Ranges
from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import Bucketing

#: The quarantine reason for records of a table that the lake cannot hold.
TABLE_REFUSED = "table_refused"
#: Reasons that do not mean bad input: the records do not count towards the quarantine's threshold.
UNCOUNTED_REASONS = frozenset({TABLE_REFUSED, DDL_REFUSED, LATE_ROW, Reason.IRREVOCABLE})
#: All codes of reasons.
REASONS = frozenset({TABLE_REFUSED, DDL_REFUSED, LATE_ROW, OTHER_COLUMNS, *map(str, Reason)})
_KEY_ALONE = "a delete has only its key, which does not say which row of the lake, or of which partition, it deletes"
_BEFORE_FORGOTTEN = (
    f"it is from before the newest {MOST_ENDS} times at which all versions ended (TRUNCATE, DROP TABLE): what ended "
    "its version is not known any more"
)


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
        delivered: the records of the topic that the lake table has besides (``AppliedRecords``).
    """

    ddl: SourceDdl = NO_DDL
    applied_until: Mapping[int, int] = field(default_factory=dict)
    truncates: Truncates = NOTHING_TRUNCATED
    refused: str | None = None
    rank: SnapshotRank | None = None
    columns: Collection[str] = ()
    bucketing: Bucketing | None = None
    delivered: Ranges = NO_RANGES

    @property
    def applied(self) -> AppliedRecords:
        """The records of the topic that the lake table has applied."""
        return AppliedRecords(self.applied_until, self.delivered)


@dataclass(frozen=True, slots=True)
class RejectedRows:
    """Rows whose records go to the quarantine, each record as a whole. ``rows``: META_FIELDS of the rows."""

    rows: pa.Table
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class AcceptedRows:
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


@dataclass(slots=True)
class LeftOut:
    """The rows of a change batch that do not go on.

    ``gone``: META_FIELDS of the rows that were removed with a dropped table; ``held``: of those that wait until all
    rows before a statement are applied; None if there are none. ``known``: how many rows a refused table has already.
    """

    rejected: list[RejectedRows] = field(default_factory=list)
    gone: pa.Table | None = None
    held: pa.Table | None = None
    known: int = 0

    @property
    def dropped(self) -> int:
        """The number of rows that were removed with a dropped table."""
        return 0 if self.gone is None else len(self.gone)

    def reject(self, rows: pa.Table, mask: Mask, reason: str, detail: str) -> None:
        """Note the rows, with META_FIELDS, for which the mask holds as rejected."""
        if mask.any():
            self.rejected.append(RejectedRows(rows.select(META_NAMES).filter(pa.array(mask)), reason, detail))


@dataclass(slots=True)
class _Sieve:
    """The rows of a batch that still go on: ``left``, bool of n. ``rows``: the n rows, with META_FIELDS."""

    rows: pa.Table
    left: Mask
    out: LeftOut

    def reject(self, mask: Mask, reason: str, detail: str) -> None:
        """Reject those of the rows that are left. The other rows of their records go with them: a record is quarantined
        as a whole."""
        mask = mask & self.left
        if mask.any():
            self.out.reject(self.rows, mask, reason, detail)
            offsets = self.rows.column("__offset").to_numpy()
            self.left = self.left & ~np.isin(offsets, offsets[mask])


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """The result of preparing a change batch. ``accepted`` is None where no row is left."""

    accepted: AcceptedRows | None
    left_out: LeftOut


def lake_rows(
    batch: ChangeBatch, rules: TableRules, part: Part | None, facts: TableFacts
) -> tuple[PlacedRows | None, str | None, LeftOut]:
    """The rows at their places, before they are cut into parcels; None where no row is left. Then ``doubt``, as in
    ``AcceptedRows``, and the rows that do not go on.

    Arguments as for ``prepare``.
    """
    out = LeftOut()
    if facts.refused is not None:
        fresh = facts.applied.fresh(batch.rows)
        out.reject(batch.rows, fresh, TABLE_REFUSED, str(UnsupportedError(facts.refused)))
        out.known = int((~fresh).sum())
        return None, None, out
    fates = facts.ddl.fates(batch.rows, facts.applied.fresh(batch.rows))
    moments, left = fates.moments, fates.left
    _note_fates(fates, batch.rows, out)
    if not (left.any() or left.all()):
        return None, None, out
    if not left.all():
        batch, moments = rows_where(batch, left), moments.where(left)
    sieve = _Sieve(batch.rows, _all(batch), out)
    try:
        restated = facts.ddl.restated(batch, moments)
        placed = _placed(restated, moments, rules, part, facts, sieve)
        return placed.where(sieve.left), restated.doubt, out
    except UnsupportedError as error:
        sieve.reject(sieve.left, TABLE_REFUSED, str(error))
        return None, None, out


def _note_fates(fates: RowFates, rows: pa.Table, out: LeftOut) -> None:
    """Note the rows that the source's statements do not let pass."""
    for mask, reason, detail in fates.refused:
        out.reject(rows, mask, reason, detail)
    if fates.dropped.any():
        out.gone = rows.select(META_NAMES).filter(pa.array(fates.dropped))
    if fates.waiting.any():
        out.held = rows.select(META_NAMES).filter(pa.array(fates.waiting))


def _placed(
    restated: RestatedRows, moments: RowPlaces, rules: TableRules, part: Part | None, facts: TableFacts, sieve: _Sieve
) -> PlacedRows:
    """The rows shaped and placed. Those that cannot be are rejected by ``sieve``, and stay among them."""
    if isinstance(part, ShardRule) and rules.merge.keeps_versions:
        raise UnsupportedError(
            f"merge.engine {rules.merge.engine}: several source tables go to the table, and a TRUNCATE would end the "
            "versions of all",
            do_next="give each source table a table of its own (tables.routes), or one in tables.history",
        )
    shaped = shape(spelled(restated.batch, facts.columns), rules, part)
    sieve.reject(shaped.bad, Reason.BAD_COMPUTED, shaped.why)
    target, names = target_and_names(shaped.batch.schema, rules, facts.ddl.key, facts.bucketing)
    sieve.reject(null_keys(shaped.batch, target, names), Reason.NULL_KEY, f"the key {', '.join(target.key)} is null")
    if is_found_by_partition(target) or needs_before_images(shaped.batch.schema, target, rules):
        sieve.reject(_at(shaped.batch.keys_alone, len(sieve.rows)), Reason.MISSING_IMAGE, _KEY_ALONE)
    placed = place_rows(shaped.batch, target, names, moments, restated.removed)
    sieve.reject(ambiguous_keys(placed), Reason.AMBIGUOUS_KEY, "other values have the same record key")
    sieve.reject(unusable_paths(placed), Reason.BAD_PARTITION, "the partition value cannot name a directory")
    if target.merging.keeps_versions:
        starts = np.asarray(placed.rows.column(START_AT).to_numpy(), dtype=np.int64)
        sieve.reject(starts < facts.truncates.forgotten, LATE_ROW, _BEFORE_FORGOTTEN)
    irrevocable, why = engine_of(placed.target.merging).refused(placed)
    sieve.reject(irrevocable, Reason.IRREVOCABLE, why)
    return placed


def prepare(batch: ChangeBatch, rules: TableRules, part: Part | None, facts: TableFacts) -> PreparedBatch:
    """Bring one change batch into the form in which its lake table is written.

    Args:
        batch: n rows of one source table, under the name of the lake table.
        rules: of the lake table.
        part: what the source table is of a lake table that several feed; None for a table of its own.
        facts: the known facts about the table.

    A rule that cannot hold for the table rejects the remaining rows (``TABLE_REFUSED``) and raises nothing.
    """
    rows, doubt, out = lake_rows(batch, rules, part, facts)
    if rows is None:
        return PreparedBatch(None, out)
    try:
        routed = _routed(rows, facts, part)
    except UnsupportedError as error:
        out.reject(rows.rows, np.ones(len(rows), dtype=np.bool_), TABLE_REFUSED, str(error))
        return PreparedBatch(None, out)
    return PreparedBatch(_accepted(rows, routed, doubt), out)


def _routed(rows: PlacedRows, facts: TableFacts, part: Part | None) -> RoutedRows:
    """The rows as parcels, as the table's engine takes them."""
    rows = removed_as_deletes(rows)
    gone_until: int | Int64s = facts.truncates.order_of(part)
    if rows.removed.any():
        gone_until = np.where(rows.removed, np.iinfo(np.int64).max, gone_until)
    rows = _ranked(rows, facts.rank)  # only now: statements are placed by the snapshot's own order
    group = part.index if isinstance(part, GroupRule) else None
    return engine_of(rows.target.merging).routed(rows, facts.applied, gone_until, group)


def _ranked(rows: PlacedRows, rank: SnapshotRank | None) -> PlacedRows:
    """The rows with the ordering values of snapshot rows by their rank."""
    if rank is None:
        return rows
    read = rows.moments.latest
    snapshot = has_no_binlog_place(rows.orders) & (read != UNKNOWN_PLACE) & (read >= rank.since)
    if not snapshot.any():
        return rows
    number = rows.rows.column_names.index("__order")
    orders = pa.array(np.where(snapshot, rank.order, rows.orders), pa.int64())
    return rows.with_rows(rows.rows.set_column(number, rows.rows.schema.field(number), orders))


def _accepted(rows: PlacedRows, routed: RoutedRows, doubt: str | None) -> AcceptedRows:
    millis = rows.rows.column("__source_ms").to_numpy()
    known = millis[millis > 0]
    oldest, newest = (int(known.min()), int(known.max())) if len(known) else (0, 0)
    columns, snapshots = _value_columns(routed.parcels), SnapshotPlaces.of(rows.moments)
    return AcceptedRows(
        rows.schema, rows.target, columns, routed.parcels, routed.counts, oldest, newest, snapshots, doubt
    )


def _at(places: Int64s, count: int) -> Mask:
    mask: Mask = np.zeros(count, dtype=np.bool_)
    mask[places] = True
    return mask


def _all(batch: ChangeBatch) -> Mask:
    return np.ones(len(batch.rows), dtype=np.bool_)


def _value_columns(parcels: Sequence[Parcel]) -> pa.Schema:
    """The lake's value columns as in the parcels."""
    if not parcels:
        return pa.schema([])
    schema = pa.ipc.open_stream(parcels[0].blob).schema
    hidden = {KEY, GROUP, *ORDER_COLUMNS, *META_NAMES, "__part", FEED, FACT}
    return pa.schema([f.with_nullable(True) for f in schema if f.name not in hidden])
