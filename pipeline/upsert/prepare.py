"""Prepares a change batch for its lake table: refuse, restate, shape, target, null keys, route, in this order.

The order matters. Statements of the source name the source's columns, so rows are restated before they are shaped.
Keys and partitions are made of shaped columns. No step sees rows that an earlier step has rejected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from pipeline.decode.changes import META_NAMES, ChangeBatch, TableSchema
from pipeline.decode.quarantine import Reason
from pipeline.errors import UnsupportedError
from pipeline.schema_changes.rules.plan import DDL_REFUSED, NO_DDL, SourceDdl, refused
from pipeline.schema_changes.rules.restatement import REMOVED, deleted, differing, restate_batch
from pipeline.schema_changes.rules.row_places import NO_SNAPSHOTS, RowPlaces, SnapshotPlaces
from pipeline.settings import TableRules
from pipeline.settings.fanout import ShardRule
from pipeline.upsert.collapse import Int64s
from pipeline.upsert.parcel import Parcel
from pipeline.upsert.route import (
    KEY,
    ORDER_COLUMNS,
    Counts,
    Routed,
    route,
    split_null_keys,
    split_unusable_paths,
    without_records_of,
)
from pipeline.upsert.shape import shape
from pipeline.upsert.target import Target, make_target
from pipeline.upsert.truncates import NOTHING_TRUNCATED, Truncates

#: The quarantine reason for records of a table that the lake cannot hold.
TABLE_REFUSED = "table_refused"
#: Reasons that do not mean bad input: the records do not count towards the quarantine's threshold.
UNCOUNTED_REASONS = frozenset({TABLE_REFUSED, DDL_REFUSED})


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Facts that decide, besides the settings, which rows of a source table go on.

    Args:
        ddl: the source's statements about it.
        applied_until: partition of the batch's topic -> offset below which the lake table has applied everything.
        truncates: the rows that TRUNCATE has removed from the lake table.
        refused: why the lake table accepts no rows; None if it accepts them.
    """

    ddl: SourceDdl = NO_DDL
    applied_until: Mapping[int, int] = field(default_factory=dict)
    truncates: Truncates = NOTHING_TRUNCATED
    refused: str | None = None


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


@dataclass(slots=True)
class Prepared:
    """The result of preparing a change batch. ``accepted`` is None where all rows are rejected."""

    accepted: Accepted | None = None
    rejected: list[Rejected] = field(default_factory=list)

    def reject(self, rows: ChangeBatch | None, reason: str, detail: str) -> None:
        """Note rejected rows; None has no effect."""
        if rows is not None:
            self.rejected.append(Rejected(rows, reason, detail))


def prepare(batch: ChangeBatch, rules: TableRules, shard: ShardRule | None, facts: TableFacts) -> Prepared:
    """Bring one change batch into the form in which its lake table is written.

    Args:
        batch: n rows of one source table, under the name of the lake table.
        rules: of the lake table.
        shard: the rule that distinguishes these rows from those of other source tables; None for a table of its own.
        facts: the known facts about the table.

    A rule that cannot hold for the table rejects the remaining rows (``TABLE_REFUSED``) and raises nothing.
    """
    prepared = Prepared()
    if facts.refused is not None:
        prepared.reject(batch, TABLE_REFUSED, str(UnsupportedError(facts.refused)))
        return prepared
    allowed, bad = refused(batch, facts.ddl.refusals)
    for part, why in bad:
        prepared.reject(part, DDL_REFUSED, why)
    if allowed is None:
        return prepared
    left = allowed
    try:
        doubt = differing(left, facts.ddl.restatements)
        left = restate_batch(left, facts.ddl.restatements, facts.ddl.texts)
        shaped = shape(left, rules, shard)
        prepared.reject(shaped.bad, Reason.BAD_COMPUTED, shaped.why)
        left = without_records_of(shaped.good, shaped.bad)
        target = make_target(left.schema, rules)
        left, keyless = split_null_keys(left, target)
        prepared.reject(keyless, Reason.NULL_KEY, f"the key {', '.join(target.key)} is null")
        left = without_records_of(left, keyless)
        left, unusable = split_unusable_paths(left, target)
        prepared.reject(unusable, Reason.BAD_PARTITION, "the partition value cannot name a directory")
        left = without_records_of(left, unusable)
        gone_until = _gone_until(left, facts.ddl, facts.truncates.order_of(shard))
        routed = route(left, target, facts.applied_until, gone_until)
        prepared.accepted = replace(_accepted(left, target, routed), doubt=doubt)
    except UnsupportedError as error:
        prepared.reject(left, TABLE_REFUSED, str(error))
    return prepared


def _gone_until(batch: ChangeBatch, ddl: SourceDdl, truncated: int) -> int | Int64s:
    """The ordering value up to which TRUNCATE removed rows; one value for each row where DROP TABLE or a statement
    about a partition removed some."""
    gone = batch.rows.column("__op").to_numpy() == REMOVED
    if any(one.deletes for one in ddl.restatements):
        gone |= deleted(RowPlaces.incoming(batch.rows), ddl.restatements)
    return np.where(gone, np.iinfo(np.int64).max, truncated) if gone.any() else truncated


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
    hidden = {KEY, *ORDER_COLUMNS, *META_NAMES, "__part"}
    return pa.schema([f.with_nullable(True) for f in schema if f.name not in hidden])
