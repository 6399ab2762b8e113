"""Change batches -> parcels, which a task sends to the writers of file groups.

One call takes one change batch. It renames the columns to lake names, computes record keys, partition paths and
buckets, keeps the newest change of each key, and splits the rows by file group. No row becomes a Python object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import META_NAMES, ChangeBatch, Mask, Moves, rows_where, select_rows
from binlake.rows.upsert.append import append_parcels
from binlake.rows.upsert.collapse import Int64s, codes_of, newest
from binlake.rows.upsert.parcel import KEYLESS_BUCKET, LOOKED_UP_BUCKET, Parcel, pack
from binlake.rows.upsert.target import Target, lake_names, partition_values
from binlake.rows.upsert.truncates import as_deletes
from hudilake.format.definition.bucketing import split_by_bucket, split_by_partition
from hudilake.format.definition.keys import record_keys

KEY = "_hoodie_record_key"
#: ``__op`` of the delete that an update adds at the previous place of its row. It is not a record of its own.
MOVED_AWAY = 2
#: Columns of a parcel besides the key and the value columns.
ORDER_COLUMNS = ("__op", "__order", "__row", "__offset", "__partition")
#: A further column of the parcels of stitched tables, int8: the index of the row's group in ``Merging.groups``.
GROUP = "__group"


@dataclass
class Counts:
    """The number of a table's records in one batch by outcome (see ``outcomes``).

    read = applied + superseded + filtered + quarantined.
    """

    read: int = 0
    applied: int = 0
    superseded: int = 0
    filtered: int = 0
    quarantined: int = 0
    already_applied: int = 0

    def settle(self) -> None:
        """Count every record that was read and has no other outcome as applied."""
        self.applied = self.read - self.superseded - self.filtered - self.quarantined

    def add(self, other: Counts) -> None:
        """Add another task's counts."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass
class Routed:
    """Parcels of one change batch, and the outcomes of its records so far."""

    parcels: list[Parcel] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


def route(
    batch: ChangeBatch,
    target: Target,
    applied_until: Mapping[int, int],
    truncated_order: int | Int64s,
    group: int | None = None,
    *,
    every: bool = False,
) -> Routed:
    """Route one change batch to the file groups of its target.

    Args:
        batch: n rows, without null in the key (see ``split_null_keys``).
        target: the lake table.
        applied_until: per Kafka partition, the offset below which this table has applied everything.
        truncated_order: ordering value of this table's newest TRUNCATE, or -1 (one value for each row, if an array):
            rows up to it are superseded, or deletes of a column group whose deletes delete the row.
        group: the index of the rows' column group in a stitched table; None for any other table.
        every: keep every event, not the newest of each key alone.
    """
    routed = Routed()
    rows, moves = _named(batch, target)
    fresh = fresh_rows(rows, applied_until)
    routed.counts.already_applied = len(rows) - int(fresh.sum())
    routed.counts.read = int(fresh.sum())
    if group is not None and target.merging.groups[group].on_delete == "row":
        rows = as_deletes(rows, rows.column("__order").to_numpy() <= truncated_order, truncated_order)
        truncated_order = -1
    alive = fresh & (rows.column("__order").to_numpy() > truncated_order)
    routed.counts.superseded = int(fresh.sum() - alive.sum())
    if not alive.any():
        return routed
    if not alive.all():
        rows, moves = select_rows(rows, moves, alive)
    if target.kind.appends:
        routed.parcels += list(append_parcels(rows, target))
        return routed
    if not target.key:
        routed.parcels += list(_keyless_events(rows, moves, target))
        return routed
    keyed, paths = _keyed(rows, target)
    keyed, paths = _with_moves(keyed, paths, rows, moves, target)
    if group is not None:
        keyed = keyed.append_column(pa.field(GROUP, pa.int8(), nullable=False), _constant(group, len(keyed)))
    if every:
        routed.parcels += list(pack_by_place(keyed, paths, target))
        return routed
    events = len(rows)
    keep = newest(keyed, *codes_of(keyed.column(KEY).combine_chunks(), paths if target.partition else None))
    routed.parcels += list(cut(keyed, paths, keep, target))
    routed.counts.superseded += events - int((keep < events).sum())
    return routed


@dataclass(frozen=True)
class PlacedRows:
    """The rows of a change batch at their places in the lake; nothing is left out.

    Args:
        rows: n rows: KEY, the value columns under their lake names, META_FIELDS.
        paths: the partition path of each row, string array of n.
        before: the before images, KEY and value columns; None where the batch has none.
        before_paths: the partition path of each before image.
        before_at: the row of each before image, int64.
    """

    rows: pa.Table
    paths: pa.Array
    before: pa.Table | None
    before_paths: pa.Array
    before_at: Int64s


def placed(batch: ChangeBatch, target: Target) -> PlacedRows:
    """The rows and before images of a change batch of a table with a key, at their places.

    ``batch``: as for ``route``. Raises UnsupportedError as ``route``.
    """
    rows, moves = _named(batch, target)
    before, at = moves if moves is not None else (None, np.empty(0, dtype=np.int64))

    def keyed(images: pa.Table) -> pa.Table:
        return images.add_column(0, pa.field(KEY, pa.string()), record_keys(images, target.key))

    return PlacedRows(
        keyed(rows),
        _flat(target.layout.paths(rows)),
        None if before is None else keyed(before),
        pa.array([], pa.string()) if before is None else _flat(target.layout.paths(before)),
        at,
    )


def split_null_keys(batch: ChangeBatch, target: Target) -> tuple[ChangeBatch, ChangeBatch | None]:
    """The batch without the rows that have null in their key, and these rows; None if there are none.

    A key of the source is never null; a key that the settings name may be.
    """
    names = lake_names([c.name for c in batch.schema.columns], batch.schema.source)
    keys = [batch.rows.column(column) for column, name in names.items() if name in target.key]
    if not any(key.null_count for key in keys):
        return batch, None
    whole = np.logical_and.reduce([key.is_valid().to_numpy() for key in keys])
    return rows_where(batch, whole), rows_where(batch, ~whole)


def split_unusable_paths(batch: ChangeBatch, target: Target) -> tuple[ChangeBatch, ChangeBatch | None]:
    """The batch without the rows whose partition value cannot name a directory, and these rows; None if there are none.

    Such a value would otherwise stop its whole table, or put rows where no reader looks.
    """
    if target.partition is None:
        return batch, None
    rows, _ = _named(batch, target)
    usable = target.usable_paths(target.layout.paths(rows))
    if pc.all(usable).as_py() is not False:
        return batch, None
    fine = np.asarray(usable.to_numpy(zero_copy_only=False), dtype=bool)
    return rows_where(batch, fine), rows_where(batch, ~fine)


def without_records_of(batch: ChangeBatch, refused: ChangeBatch | None) -> ChangeBatch:
    """The batch without the rows of records that have a refused row: a record is quarantined as a whole."""
    if refused is None:
        return batch
    offsets = refused.rows.column("__offset").to_numpy()
    beside = np.isin(batch.rows.column("__offset").to_numpy(), offsets)
    return rows_where(batch, ~beside) if beside.any() else batch


def _named(batch: ChangeBatch, target: Target) -> tuple[pa.Table, Moves]:
    names = lake_names([c.name for c in batch.schema.columns], batch.schema.source)
    rows = batch.rows.rename_columns([names.get(n, n) for n in batch.rows.column_names])
    rows = _partitioned(rows, target)
    if batch.before is None or not len(batch.before):
        return rows, None
    before = batch.before.rename_columns([names.get(n, n) for n in batch.before.column_names])
    return rows, (_partitioned(before, target), batch.before_at)


def _partitioned(rows: pa.Table, target: Target) -> pa.Table:
    rule = target.partition
    if rule is None or rule.transform == "identity":
        return rows
    at = len([n for n in rows.column_names if n not in META_NAMES])
    return rows.add_column(at, pa.field(rule.field, pa.string()), partition_values(rule, rows))


def fresh_rows(rows: pa.Table, applied_until: Mapping[int, int]) -> Mask:
    """A mask of the rows that the table has not applied; arguments as in ``route``."""
    fresh = np.ones(len(rows), dtype=bool)
    if applied_until:
        partitions, offsets = rows.column("__partition").to_numpy(), rows.column("__offset").to_numpy()
        for partition, until in applied_until.items():
            fresh &= (partitions != partition) | (offsets >= until)
    return fresh


def _keyed(rows: pa.Table, target: Target) -> tuple[pa.Table, pa.Array]:
    values = [n for n in rows.column_names if n not in META_NAMES]
    keys = record_keys(rows, target.key)
    keyed = rows.select([*values, *ORDER_COLUMNS]).add_column(0, pa.field(KEY, pa.string()), keys)
    return keyed, target.layout.paths(rows)


def _with_moves(
    keyed: pa.Table, paths: pa.Array, rows: pa.Table, moves: Moves, target: Target
) -> tuple[pa.Table, pa.Array]:
    """Add a delete at the previous place of every update that changed its key or its partition path."""
    if moves is None:
        return keyed, paths
    before, at = moves
    index = pa.array(at)
    old_keys, old_paths = record_keys(before, target.key), target.layout.paths(before)
    same = pc.and_(pc.equal(old_keys, keyed.column(KEY).take(index)), pc.equal(old_paths, paths.take(index)))
    changed = pc.and_(pc.invert(same), pc.is_valid(old_keys))
    if target.partition is not None:  # a row with an unusable path was quarantined, so there is nothing to delete
        changed = pc.and_(changed, target.usable_paths(old_paths))
    if not pc.any(changed).as_py():
        return keyed, paths
    where = index.filter(changed.combine_chunks() if isinstance(changed, pa.ChunkedArray) else changed)
    gone = keyed.take(where)
    gone = gone.set_column(0, KEY, old_keys.filter(changed).cast(pa.string()))
    if target.merging.by_writer:  # the row at the old place may live on, with its own key
        gone = _with_key_of(before.filter(changed), gone, target)
    gone = gone.set_column(
        gone.column_names.index("__op"), keyed.schema.field("__op"), _constant(MOVED_AWAY, len(gone))
    )
    both = pa.concat_arrays([paths, _flat(old_paths.filter(changed))])
    return pa.concat_tables([keyed, gone.cast(keyed.schema)]), both


def _with_key_of(before: pa.Table, gone: pa.Table, target: Target) -> pa.Table:
    """The deletes at previous places with the key and partition columns that they have there."""
    for name in dict.fromkeys((*target.key, *target.layout.fields)):
        at = gone.column_names.index(name)
        gone = gone.set_column(at, gone.schema.field(at), before.column(name).cast(gone.schema.field(at).type))
    return gone


def _constant(value: int, length: int) -> pa.Array:
    return pa.array(np.full(length, value, dtype=np.int8))


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def pack_by_place(keyed: pa.Table, paths: pa.Array, target: Target) -> Iterator[Parcel]:
    """One parcel per (partition path, bucket) with every one of n rows.

    Args:
        keyed: n rows with KEY.
        paths: the partition path of each.
        target: the lake table.
    """
    return cut(keyed, paths, np.arange(len(keyed)), target)


def cut(keyed: pa.Table, paths: pa.Array, keep: npt.NDArray[np.int64], target: Target) -> Iterator[Parcel]:
    """Parcels for each (partition path, bucket), or for each partition of a table whose index is looked up; rows of one
    keep their order.

    Args:
        keyed: n rows with KEY.
        paths: the partition path of each row, string array of n.
        keep: the numbers of the rows to take.
        target: the lake table.
    """
    kept = pa.array(keep)
    if target.kind.looks_up:
        groups = split_by_partition(paths.take(kept), LOOKED_UP_BUCKET)
    else:
        groups = split_by_bucket(target.bucketing, keyed.column(KEY).take(kept), target.hash_fields, paths.take(kept))
    ordered = keyed.take(pa.array(keep[groups.order])).combine_chunks()
    for path, bucket, rows in groups:
        yield from pack(target.path, path, bucket, ordered.slice(rows.start, rows.stop - rows.start))


def _keyless_events(rows: pa.Table, moves: Moves, target: Target) -> Iterator[Parcel]:
    """Whole-row events of a table without a key: an update removes the old row and adds the new row.

    ``__part`` orders the two halves of one update. The writer computes the partition path together with the key.
    """
    events = rows.append_column("__part", _constant(1, len(rows)))
    if moves is not None and len(moves[0]):
        before, at = moves
        gone = rows.take(pa.array(at))
        for name in before.column_names:
            gone = gone.set_column(gone.column_names.index(name), gone.schema.field(name), before.column(name))
        gone = gone.set_column(
            gone.column_names.index("__op"), gone.schema.field("__op"), _constant(MOVED_AWAY, len(gone))
        )
        gone = gone.append_column("__part", _constant(0, len(gone)))
        events = pa.concat_tables([events, gone.cast(events.schema)])
    yield from pack(target.path, "", KEYLESS_BUCKET, events)
