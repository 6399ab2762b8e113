"""Placed rows -> parcels, which a task sends to the writers of file groups.

The newest change of each key goes on, with a delete at the previous place of a row that moved, and the rows are cut by
file group. No row becomes a Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import META_NAMES, Mask
from binlake.rows.upsert.collapse import Int64s, codes_of, newest
from binlake.rows.upsert.parcel import APPEND_BUCKET, KEYLESS_BUCKET, Parcel, pack
from binlake.rows.upsert.place import Images, PlacedRows
from binlake.rows.upsert.target import Target
from binlake.rows.upsert.truncates import as_deletes
from binlake.source.offsets import NO_RANGES, Ranges

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
class RoutedRows:
    """Parcels of one change batch, and the outcomes of its records so far."""

    parcels: list[Parcel] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)


def route(
    rows: PlacedRows,
    applied: AppliedRecords,
    truncated_order: int | Int64s,
    group: int | None = None,
    kept: Callable[[pa.Table, Int64s, int], Int64s] | None = newest,
) -> RoutedRows:
    """Route placed rows to the file groups of their table.

    Args:
        rows: n rows, without null in the key (see ``null_keys``).
        applied: the records that this table has applied.
        truncated_order: ordering value of this table's newest TRUNCATE, or -1 (one value for each row, if an array):
            rows up to it are superseded, or deletes of a column group whose deletes delete the row.
        group: the index of the rows' column group in a stitched table; None for any other table.
        kept: which events of each key go on, as ``newest`` says it; None for every event.
    """
    fresh, target = applied.fresh(rows.rows), rows.target
    if group is not None and target.merging.groups[group].on_delete == "row":
        rows = rows.with_rows(as_deletes(rows.rows, rows.orders <= truncated_order, truncated_order))
        truncated_order = -1
    alive = fresh & (rows.orders > truncated_order)
    counts = counted(fresh, alive)
    if not alive.any():
        return RoutedRows([], counts)
    rows = rows.where(alive)
    if not target.config.record_key_fields:
        return RoutedRows(list(_appended(rows)), counts)
    if not target.key:
        return RoutedRows(list(_keyless_events(rows)), counts)
    keyed, paths = _with_moves(rows)
    if group is not None:
        keyed = keyed.append_column(pa.field(GROUP, pa.int8(), nullable=False), _constant(group, len(keyed)))
    if kept is None:
        return RoutedRows(list(pack_by_place(keyed, paths, target)), counts)
    keep = kept(keyed, *codes_of(keyed.column(KEY).combine_chunks(), paths if target.partition else None))
    counts.superseded += len(rows) - int((keep < len(rows)).sum())
    return RoutedRows(list(cut(keyed, paths, keep, target)), counts)


@dataclass(frozen=True, slots=True)
class AppliedRecords:
    """The records of one topic that a table has applied.

    Args:
        until: partition -> offset below which it has all.
        delivered: what it has besides: ranges of the topic, those of a partition ascending and apart.
    """

    until: Mapping[int, int] = field(default_factory=dict)
    delivered: Ranges = NO_RANGES

    def fresh(self, rows: pa.Table) -> Mask:
        """A mask of the rows that the table has not applied."""
        fresh = np.ones(len(rows), dtype=bool)
        if not (self.until or self.delivered):
            return fresh
        partitions, offsets = rows.column("__partition").to_numpy(), rows.column("__offset").to_numpy()
        for partition, until in self.until.items():
            fresh &= (partitions != partition) | (offsets >= until)
        for partition in {one.partition for one in self.delivered}:
            mine = [one for one in self.delivered if one.partition == partition]
            number = np.searchsorted(np.array([one.start for one in mine]), offsets, side="right") - 1
            ends = np.array([one.end for one in mine])
            fresh &= (partitions != partition) | (number < 0) | (offsets >= ends[np.maximum(number, 0)])
        return fresh


def counted(fresh: Mask, alive: Mask) -> Counts:
    """The counts of n rows: bool of n each, those that the table has not applied, and those of them that go on."""
    read = int(fresh.sum())
    return Counts(read, superseded=read - int(alive.sum()), already_applied=len(fresh) - read)


def _with_moves(rows: PlacedRows) -> tuple[pa.Table, pa.Array]:
    """The rows as parcels hold them, and their partition paths; then a delete at the previous place of every update
    that changed its key or its partition path."""
    target, paths = rows.target, rows.paths
    values = [n for n in rows.rows.column_names if n not in META_NAMES]
    keyed = rows.rows.select([*values, *ORDER_COLUMNS]).add_column(0, pa.field(KEY, pa.string()), rows.keys)
    if rows.before is None:
        return keyed, paths
    old, index = rows.before, pa.array(rows.before_at)
    assert old.keys is not None  # the table has a key
    same = pc.and_(pc.equal(old.keys, rows.keys.take(index)), pc.equal(old.paths, paths.take(index)))
    changed = pc.and_(pc.invert(same), pc.is_valid(old.keys))
    if target.partition is not None:  # a row with an unusable path was quarantined, so there is nothing to delete
        changed = pc.and_(changed, target.usable_paths(old.paths))
    if not pc.any(changed).as_py():
        return keyed, paths
    gone = keyed.take(index.filter(changed))
    gone = gone.set_column(0, KEY, old.keys.filter(changed).cast(pa.string()))
    if target.merging.by_writer:  # the row at the old place may live on, with its own key
        gone = _with_key_of(old.rows.filter(changed), gone, target)
    gone = with_op(gone, MOVED_AWAY)
    return pa.concat_tables([keyed, gone.cast(keyed.schema)]), pa.concat_arrays([paths, old.paths.filter(changed)])


def _with_key_of(before: pa.Table, gone: pa.Table, target: Target) -> pa.Table:
    """The deletes at previous places with the key and partition columns that they have there; of a history table with
    all that the row was."""
    own = dict.fromkeys((*target.key, *target.config.partition_fields))
    for name in before.column_names if target.merging.keeps_versions else own:
        number = gone.column_names.index(name)
        field = gone.schema.field(number)
        gone = gone.set_column(number, field, before.column(name).cast(field.type))
    return gone


def with_op(rows: pa.Table, op: int) -> pa.Table:
    """The rows with one and the same ``__op``."""
    return rows.set_column(rows.column_names.index("__op"), rows.schema.field("__op"), _constant(op, len(rows)))


def former(rows: PlacedRows, before: Images) -> pa.Table:
    """The m rows of the before images with the content that they had, as deletes at the previous places of rows."""
    gone = rows.rows.take(pa.array(rows.before_at))
    for name in before.rows.column_names:
        gone = gone.set_column(gone.column_names.index(name), gone.schema.field(name), before.rows.column(name))
    return with_op(gone, MOVED_AWAY)


def _constant(value: int, length: int) -> pa.Array:
    return pa.array(np.full(length, value, dtype=np.int8))


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
    config, keys = target.config, keyed.column(KEY).take(kept)
    groups = target.kind.placement.split(keys, paths.take(kept), config.bucketing, config.hash_fields)
    ordered = keyed.take(pa.array(keep[groups.order])).combine_chunks()
    for path, bucket, rows in groups:
        yield from pack(target.path, path, bucket, ordered.slice(rows.start, rows.stop - rows.start))


def _appended(rows: PlacedRows) -> Iterator[Parcel]:
    """The value columns of n > 0 rows of an append table: one parcel or several for each partition path; rows of one
    path keep their order."""
    paths = rows.paths.dictionary_encode()
    values = rows.rows.select([name for name in rows.rows.column_names if name not in META_NAMES])
    if len(paths.dictionary) == 1:
        yield from pack(rows.target.path, paths.dictionary[0].as_py(), APPEND_BUCKET, values)
        return
    codes = paths.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ordered = values.take(pa.array(order)).combine_chunks()
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        path = paths.dictionary[int(codes[order[start]])].as_py()
        yield from pack(rows.target.path, path, APPEND_BUCKET, ordered.slice(start, end - start))


def _keyless_events(rows: PlacedRows) -> Iterator[Parcel]:
    """Whole-row events of a table without a key: an update removes the old row and adds the new row.

    ``__part`` orders the two halves of one update. The writer computes the partition path together with the key.
    """
    events = rows.rows.append_column("__part", _constant(1, len(rows)))
    if rows.before is not None and len(rows.before_at):
        gone = former(rows, rows.before)
        gone = gone.append_column("__part", _constant(0, len(gone)))
        events = pa.concat_tables([events, gone.cast(events.schema)])
    yield from pack(rows.target.path, "", KEYLESS_BUCKET, events)
