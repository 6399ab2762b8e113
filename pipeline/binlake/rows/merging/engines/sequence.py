"""Events of a file group in the order in which a merge engine takes them: by key, then as the source made them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Op
from binlake.rows.merging.columns import Flags, valid
from binlake.rows.upsert.collapse import Int64s, in_order
from binlake.rows.upsert.route import KEY


@dataclass(frozen=True, slots=True)
class Sequence:
    """n events of m keys.

    Args:
        rows: the n events as they came.
        positions: int64 of n, the row of each event. Events are by key, and of one key in the order of the source (see
            ``sequence``); everything below counts events, not rows.
        keys: the m distinct record keys, string, ascending.
        codes: int64 of n ascending, the index of each event's key.
        starts: int64 of m, the first event of each key.
        orders: int64 of n.
        upserts: bool of n; the others are deletes.
    """

    rows: pa.Table
    positions: Int64s
    keys: pa.Array
    codes: Int64s
    starts: Int64s
    orders: Int64s
    upserts: Flags

    def last(self, wanted: Flags) -> Int64s:
        """The last event of each key among those ``wanted`` (bool of n), int64 of m, -1 for none."""
        return np.asarray(np.maximum.reduceat(np.where(wanted, np.arange(len(wanted)), -1), self.starts))

    def first(self, wanted: Flags) -> Int64s:
        """Returns the first event of each key among those ``wanted`` (bool of n), int64 of m, -1 for none."""
        none = len(wanted)
        firsts = np.minimum.reduceat(np.where(wanted, np.arange(none), none), self.starts)
        return np.where(firsts == none, -1, firsts)

    def orders_at(self, events: Int64s, none: int) -> Int64s:
        """The orders of events by index, ``none`` for the index -1."""
        return np.where(events >= 0, self.orders[events], none)

    def rows_at(self, events: Int64s) -> Int64s:
        """The rows of events by index, -1 for the index -1."""
        return np.where(events >= 0, self.positions[events], -1)

    def valid(self, column: pa.ChunkedArray) -> Flags:
        """Which events, bool of n, have a value in a column of the rows."""
        return valid(column)[self.positions]


def sequence(rows: pa.Table) -> Sequence:
    """Events in the order of the source (``binlake.rows.upsert.collapse``): by order, Kafka offset, and row; where
    events of a key and an order are in several partitions, the row comes before the offset. Halves of one event are in
    the order in which they happened: first what it removes.

    ``rows``: n events as parcels hold them, n > 0.
    """
    encoded = rows.column(KEY).combine_chunks().dictionary_encode()
    ranked = np.asarray(pc.sort_indices(encoded.dictionary).to_numpy(), dtype=np.int64)
    rank = np.empty(len(ranked), dtype=np.int64)
    rank[ranked] = np.arange(len(ranked))
    codes = rank[np.asarray(encoded.indices.to_numpy(), dtype=np.int64)]
    orders, row, offset, partition = (_longs(rows, name) for name in ("__order", "__row", "__offset", "__partition"))
    upserts = np.asarray(rows.column("__op").to_numpy() == Op.UPSERT)
    major, minor = offset, row
    if (partition != partition[0]).any():
        rivals = _rivals(codes, orders, partition)
        major, minor = np.where(rivals, row, offset), np.where(rivals, offset, row)
    if in_order([orders, major, minor, upserts.astype(np.int64)]):  # as one partition has them
        ranked_events = np.argsort(codes.astype(np.min_scalar_type(len(ranked))), kind="stable")
    else:
        ranked_events = np.lexsort([upserts, minor, major, orders, codes])
    codes = codes[ranked_events]
    return Sequence(
        rows,
        ranked_events,
        encoded.dictionary.take(pa.array(ranked)).cast(pa.string()),
        codes,
        np.flatnonzero(np.diff(codes, prepend=-1)),
        orders[ranked_events],
        upserts[ranked_events],
    )


def _rivals(codes: Int64s, orders: Int64s, partitions: Int64s) -> Flags:
    """Events whose key and order occur in several partitions."""
    ranked = np.lexsort([partitions, orders, codes])
    code, order, partition = codes[ranked], orders[ranked], partitions[ranked]
    new = np.append(True, (code[1:] != code[:-1]) | (order[1:] != order[:-1]))
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(code)) - 1
    several = partition[starts] != partition[ends]
    rivals = np.zeros(len(codes), dtype=np.bool_)
    rivals[ranked] = several[np.cumsum(new) - 1]
    return rivals


def _longs(rows: pa.Table, name: str) -> Int64s:
    return np.asarray(rows.column(name).to_numpy(), dtype=np.int64)
