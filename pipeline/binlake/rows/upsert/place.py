"""The rows of a change batch at their places in the lake: the value of which parcels are cut.

Lake names, the partition column, record keys and partition paths are worked out here, once for the rows and once for
their before images. Every later step takes this value and makes another one; none changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from binlake.decode.changes import META_NAMES, UNKNOWN_PLACE, ChangeBatch, Mask, Op, TableSchema
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.target import Target, partition_values
from binlake.rows.upsert.version_columns import with_version_columns
from binlake.schema.rules.row_places import RowPlaces, has_no_binlog_place
from hudilake.format.definition.keys import record_keys, shared_keys


@dataclass(frozen=True, slots=True)
class Images:
    """n rows, or before images, under their lake names.

    Args:
        rows: the value columns, with the partition column; those of a batch's rows then have META_FIELDS.
        keys: the record key of each, string array of n; None for a table without a key.
        paths: the partition path of each, string array of n.
    """

    rows: pa.Table
    keys: pa.Array | None
    paths: pa.Array

    def where(self, mask: Mask) -> Images:
        """The images for which the mask, bool of n, holds."""
        kept = pa.array(mask)
        keys = None if self.keys is None else self.keys.filter(kept)
        return Images(self.rows.filter(kept), keys, self.paths.filter(kept))


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """n rows of one change batch as their lake table keeps them.

    Args:
        schema: the columns, under the source's names.
        topic: of the batch.
        target: the lake table.
        names: source column -> lake column.
        images: the n rows.
        moments: where they stand among the source's statements.
        removed: bool of n: a statement about their partition has removed these rows.
        before: m before images, without META_FIELDS; None where the batch has none.
        before_at: the row of each before image, int64 of m, ascending.
    """

    schema: TableSchema
    topic: str
    target: Target
    names: Mapping[str, str]
    images: Images
    moments: RowPlaces
    removed: Mask
    before: Images | None
    before_at: Int64s

    def __len__(self) -> int:
        return int(self.images.rows.num_rows)

    @property
    def rows(self) -> pa.Table:
        """The n rows: value columns under their lake names, then META_FIELDS."""
        return self.images.rows

    @property
    def keys(self) -> pa.Array:
        """The record keys, string array of n. Only of a table with a key."""
        assert self.images.keys is not None
        return self.images.keys

    @property
    def paths(self) -> pa.Array:
        """The partition paths, string array of n."""
        return self.images.paths

    @property
    def orders(self) -> Int64s:
        """The ordering values, int64 of n."""
        return np.asarray(self.rows.column("__order").to_numpy(), dtype=np.int64)

    def where(self, mask: Mask) -> PlacedRows:
        """The rows for which the mask, bool of n, holds, with their before images; this value itself if it holds for
        all."""
        if mask.all():
            return self
        images, moments, removed = self.images.where(mask), self.moments.where(mask), self.removed[mask]
        if self.before is None:
            return replace(self, images=images, moments=moments, removed=removed)
        inside = mask[self.before_at]
        before_at = (np.cumsum(mask) - 1)[self.before_at[inside]]
        before = self.before.where(inside)
        return replace(self, images=images, moments=moments, removed=removed, before=before, before_at=before_at)

    def with_rows(self, rows: pa.Table) -> PlacedRows:
        """The same places with other values in META_FIELDS."""
        return replace(self, images=replace(self.images, rows=rows))

    def moved(self) -> Mask:
        """The updates that change the partition of a row and not its key, bool of n."""
        moved: Mask = np.zeros(len(self), dtype=np.bool_)
        if self.target.partition is None or self.before is None:
            return moved
        after = pa.array(self.before_at)
        keys, paths = (np.asarray(a.take(after)) for a in (self.keys, self.paths))
        old_keys, old_paths = np.asarray(self.before.keys), np.asarray(self.before.paths)
        moved[self.before_at[(keys == old_keys) & (paths != old_paths)]] = True
        return moved


def place_rows(
    batch: ChangeBatch,
    target: Target,
    names: Mapping[str, str],
    moments: RowPlaces,
    removed: Mask | None = None,
) -> PlacedRows:
    """The rows of a change batch at their places.

    Args:
        batch: n rows, shaped for the lake table.
        target: the lake table.
        names: source column -> lake column.
        moments: of the n rows.
        removed: as in ``PlacedRows``; None for no row.

    Raises UnsupportedError for a partition or key column of a type that cannot be one.
    """
    orders, source_ms = (_longs(batch.rows, name) for name in ("__order", "__source_ms"))
    if target.merging.keeps_versions:  # among the events a row of a snapshot has the place at which it was read
        orders = np.where(has_no_binlog_place(orders) & (moments.latest != UNKNOWN_PLACE), moments.latest, orders)
    transactions = _transactions(batch) if batch.transactions and target.merging.names_transactions else None
    before = None
    if batch.before is not None and len(batch.before):
        index = batch.before_at
        named = transactions.take(pa.array(index)) if transactions is not None else None
        before = _images(batch.before, target, names, orders[index], source_ms[index], named)
    return PlacedRows(
        batch.schema,
        batch.topic,
        target,
        names,
        _images(batch.rows, target, names, orders, source_ms, transactions),
        moments,
        np.zeros(len(batch.rows), dtype=np.bool_) if removed is None else removed,
        before,
        batch.before_at if before is not None else np.empty(0, dtype=np.int64),
    )


def _longs(rows: pa.Table, name: str) -> Int64s:
    return np.asarray(rows.column(name).to_numpy(), dtype=np.int64)


def _transactions(batch: ChangeBatch) -> pa.Array:
    """The transaction of each row; null for one that no message names."""
    offsets = batch.rows.column("__offset").combine_chunks().dictionary_encode()
    names = pa.array([batch.transactions.get(offset) for offset in offsets.dictionary.to_pylist()], pa.string())
    return names.take(offsets.indices)


def _images(
    rows: pa.Table,
    target: Target,
    names: Mapping[str, str],
    orders: Int64s,
    source_ms: Int64s,
    transactions: pa.Array | None,
) -> Images:
    rows = rows.rename_columns([names.get(n, n) for n in rows.column_names])
    rule = target.partition
    number = len([n for n in rows.column_names if n not in META_NAMES])
    if target.merging.keeps_versions:
        rows = with_version_columns(rows, number, orders, source_ms, target.merging.engine, transactions)
    if rule is not None and rule.transform != "identity":
        rows = rows.add_column(number, pa.field(rule.field, pa.string()), partition_values(rule, rows))
    paths = _flat(target.config.layout.paths(rows))
    return Images(rows, _flat(record_keys(rows, target.key)) if target.key else None, paths)


def null_keys(batch: ChangeBatch, target: Target, names: Mapping[str, str]) -> Mask:
    """The rows that have null in their key, bool of n.

    A key of the source is never null; a key that the settings name may be.
    """
    null: Mask = np.zeros(len(batch.rows), dtype=np.bool_)
    for column, name in names.items():
        if name in target.key and (values := batch.rows.column(column)).null_count:
            null |= values.is_null().to_numpy()
    return null


def ambiguous_keys(rows: PlacedRows) -> Mask:
    """The rows whose record key other values have, too, or that of their before image, bool of n: one would replace the
    row of the other, or take it away. The key of the source names a fact, so it counts as well."""
    shared: Mask = np.zeros(len(rows), dtype=np.bool_)
    keys = [rows.target.key] if rows.target.key else []
    if keys and rows.target.merging.functions:
        keys.append(tuple(rows.names[column] for column in rows.schema.key))
    for key in keys:
        shared |= shared_keys(rows.rows, key)
        if rows.before is not None:
            shared[rows.before_at[shared_keys(rows.before.rows, key)]] = True
    return shared


def unusable_paths(rows: PlacedRows) -> Mask:
    """The rows whose partition value cannot name a directory, bool of n.

    Such a value would otherwise stop its whole table, or put rows where no reader looks.
    """
    if rows.target.partition is None:
        return np.zeros(len(rows), dtype=np.bool_)
    usable = rows.target.usable_paths(rows.paths)
    return ~np.asarray(usable.to_numpy(zero_copy_only=False), dtype=np.bool_)


def removed_as_deletes(rows: PlacedRows) -> PlacedRows:
    """The rows with deletes for those that a statement about their partition has removed; what delete nothing stay
    marked as removed.

    Such a row was in the lake's place when the statement ran, whether the lake had it by then or not. So in a table
    with a key its event is a delete: it also removes an older version that the lake has in another partition of the
    source. In a table without a key only the row's former content is left to remove.
    """
    gone = rows.removed
    if not gone.any():
        return rows
    if rows.target.key:
        return replace(_with_deletes(rows, gone), removed=np.zeros(len(rows), dtype=np.bool_))
    if rows.before is None:
        return rows
    moved = gone[rows.before_at]
    row_of = rows.before_at[moved]
    deletes: Mask = np.zeros(len(rows), dtype=np.bool_)
    deletes[row_of] = True
    images = _with_content(rows.images, row_of, rows.before.where(moved))
    left = replace(rows, images=images, before=rows.before.where(~moved), before_at=rows.before_at[~moved])
    return replace(_with_deletes(left, deletes), removed=gone & ~deletes)


def _with_deletes(rows: PlacedRows, deletes: Mask) -> PlacedRows:
    table = rows.rows
    number = table.column_names.index("__op")
    ops = np.where(deletes, np.int8(Op.DELETE), table.column(number).to_numpy())
    return rows.with_rows(table.set_column(number, table.schema.field(number), pa.array(ops, pa.int8())))


def _with_content(images: Images, row_of: Int64s, former: Images) -> Images:
    """The images with former content in the rows ``row_of``, int64 of m, one for each of the m former images."""
    source = np.arange(len(images.rows))
    source[row_of] = len(images.rows) + np.arange(len(row_of))
    chosen, rows = pa.array(source), images.rows
    for number, field in enumerate(rows.schema):
        if field.name not in META_NAMES:
            known = field.name in former.rows.column_names
            old = former.rows.column(field.name).cast(field.type) if known else pa.nulls(len(row_of), field.type)
            both = pa.chunked_array([*rows.column(number).chunks, *pa.chunked_array(old).chunks], field.type)
            rows = rows.set_column(number, field, both.take(chosen))
    return Images(rows, images.keys, pa.concat_arrays([images.paths, former.paths]).take(chosen))


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
