"""Keeps the newest change of each key: the last one in the order of the source.

The order is (ordering value, Kafka offset, row inside the message), compared as numbers. The row inside the binlog
event is not enough: MariaDB 11.4 gives all events of a transaction one position by default
(``binlog_legacy_event_pos``), and rows count from 0 in each (measured). Offsets of different partitions cannot be
compared: where changes of one key with one ordering value are in several partitions, the row decides before the offset.
Only a primary-key change can produce a delete and an upsert with equal values, and these are changes of different keys.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import Mask, Op

Int64s = npt.NDArray[np.int64]


def _numbers(table: pa.Table, name: str) -> Int64s:
    return np.asarray(table.column(name).to_numpy(), dtype=np.int64)


def in_order(columns: list[Int64s]) -> bool:
    """Whether the rows are in ascending lexicographic order of the columns."""
    greater = np.zeros(max(len(columns[0]) - 1, 0), dtype=bool)
    equal = ~greater
    for column in columns:
        step = np.diff(column)
        greater |= equal & (step > 0)
        equal &= step == 0
    return bool((greater | equal).all())


def codes_of(keys: pa.Array, paths: pa.Array | None = None) -> tuple[Int64s, int]:
    """A dense code for every distinct (partition path, record key), int64 of n, and an upper bound of their number."""
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    size = len(encoded.dictionary)
    if paths is not None:
        places = paths.dictionary_encode()
        codes = codes * len(places.dictionary) + places.indices.to_numpy()
        distinct, codes = np.unique(codes, return_inverse=True)
        size = len(distinct)
    return codes, size


def newest(table: pa.Table, codes: Int64s, size: int) -> Int64s:
    """Indices of the newest row of every code, int64 ascending.

    Args:
        table: n rows with ``__order`` (int64), ``__row`` (int32), ``__offset`` (int64), ``__partition`` (int32).
        codes: int64 of n in ``[0, size)``.
        size: upper bound of the codes.
    """
    orders, rows, offsets = (_numbers(table, name) for name in ("__order", "__row", "__offset"))
    last = _last([orders, offsets, rows], codes, size)
    partitions = _numbers(table, "__partition")
    rivals = (orders == orders[last[codes]]) & (partitions != partitions[last[codes]])
    if rivals.any():
        spread = codes[rivals]
        last[spread] = _last([orders, rows, offsets], codes, size)[spread]
    kept = last[last >= 0]
    kept.sort()
    return kept


def setting(table: pa.Table, codes: Int64s, size: int) -> Int64s:
    """Indices of the rows that say what the columns of every code are, where a null leaves a column as it is, int64
    ascending: the newest delete, and of the upserts that are not before it the newest one and the newest with a value
    for each column. Rows of equal ordering values stay together: other tasks may have more of them.

    Args:
        table: n rows as for ``newest``, with ``__op`` and the columns.
        codes, size: as for ``newest``.
    """
    orders, deletes = _numbers(table, "__order"), np.asarray(table.column("__op").to_numpy() != Op.UPSERT)

    def newest_of(wanted: Mask) -> Mask:
        highest = np.full(size, -1, dtype=np.int64)
        np.maximum.at(highest, codes[wanted], orders[wanted])
        return np.asarray(wanted & (orders == highest[codes]))

    kept = newest_of(deletes) if deletes.any() else deletes
    floor = np.full(size, -1, dtype=np.int64)
    floor[codes[kept]] = orders[kept]
    alive = ~deletes & (orders >= floor[codes])
    kept = kept | newest_of(alive)
    for column in table.columns:
        if column.null_count:
            kept |= newest_of(alive & column.is_valid().to_numpy())
    return np.flatnonzero(kept)


def _last(columns: list[Int64s], codes: Int64s, size: int) -> Int64s:
    """The index of the last row of every code in the lexicographic order of the columns; -1 for a code without rows."""
    last = np.full(size, -1, dtype=np.int64)
    if in_order(columns):
        last[codes] = np.arange(len(codes))  # for repeated codes numpy keeps the last assignment
    else:
        ranked = np.lexsort(columns[::-1])
        last[codes[ranked]] = ranked
    return last
