"""What an engine must remember of a row besides its columns: named longs in one hidden column.

A value holds one entry for each name: an unsigned 64-bit hash of the name, then the long, both little-endian. Columns
may be added, renamed or reordered: an entry is found by its name. Rows of one file have the same names, so the hashes
cost next to nothing when compressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.rows.upsert.collapse import Int64s
from hudilake.errors import CorruptDataError
from hudilake.format.definition.merging import ROW_GROUP, STATE_FIELD

#: The order of a row that is one group, and its state in the type that ``unpack`` reads.
ROW_ORDER: Final = pa.field(ROW_GROUP.order_field, pa.int64())
STATE: Final = pa.field(STATE_FIELD, pa.large_binary())
_ENTRY: Final = np.dtype([("name", "<u8"), ("value", "<i8")])


def pack(names: Sequence[str], values: Int64s) -> pa.Array:
    """The named longs of n rows as a binary array.

    Args:
        names: c names.
        values: int64 (n, c).
    """
    entries = np.empty(values.shape, dtype=_ENTRY)
    entries["name"], entries["value"] = _hashes(names), values
    ends = np.arange(len(values) + 1, dtype=np.int64) * len(names) * _ENTRY.itemsize
    if ends[-1] <= np.iinfo(np.int32).max:
        buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(entries.tobytes())]
        return pa.Array.from_buffers(pa.binary(), len(values), buffers)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(entries.tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def unpack(column: pa.ChunkedArray, names: Sequence[str], none: int) -> Int64s:
    """The named longs of n rows, int64 (n, c); ``none`` for a name that a row's value lacks, or a null value.

    Raises CorruptDataError.
    """
    named_longs = np.full((len(column), len(names)), none, dtype=np.int64)
    array = column.combine_chunks().cast(pa.large_binary())
    sizes = np.asarray(pa.compute.binary_length(array).fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    wanted = _hashes(names)
    for size in np.unique(sizes[sizes > 0]).tolist():
        if size % _ENTRY.itemsize:
            raise CorruptDataError(
                f"a row has {size} bytes in {STATE_FIELD}, which binlake cannot have written",
                do_next="restore the table to a savepoint, or load it again",
            )
        positions = np.flatnonzero(sizes == size)
        _take_in(named_longs, positions, _entries(array, positions, size), wanted)
    return named_longs


def _entries(array: pa.Array, at: Int64s, size: int) -> npt.NDArray[np.void]:
    data = array if len(at) == len(array) else array.take(pa.array(at))
    begin, end = data.offset, data.offset + len(data)
    marks = np.frombuffer(data.buffers()[1], dtype=np.int64)[begin : end + 1]
    body = np.frombuffer(data.buffers()[2], dtype=np.uint8)[marks[0] : marks[-1]]
    return np.asarray(body.view(_ENTRY).reshape(len(at), size // _ENTRY.itemsize))


def _take_in(found: Int64s, at: Int64s, entries: npt.NDArray[np.void], wanted: npt.NDArray[np.uint64]) -> None:
    """Fill in the entries of rows that have equally many."""
    heads, longs = entries["name"], entries["value"]
    if (heads == heads[0]).all() and len(at) == len(found):
        place = {int(name): entry for entry, name in enumerate(heads[0])}
        known = [column for column, name in enumerate(wanted.tolist()) if name in place]
        found[:, known] = longs[:, [place[name] for name in wanted[known].tolist()]]
        return
    if (heads == heads[0]).all():
        groups = [(heads[0], np.arange(len(at)))]
    else:
        distinct, which = np.unique(heads, axis=0, return_inverse=True)
        groups = [(head, np.flatnonzero(which.ravel() == number)) for number, head in enumerate(distinct)]
    for head, rows in groups:
        place = {int(name): column for column, name in enumerate(head)}
        for column, name in enumerate(wanted.tolist()):
            if name in place:
                found[at[rows], column] = longs[rows, place[name]]


def _hashes(names: Sequence[str]) -> npt.NDArray[np.uint64]:
    return np.array([mmh3.hash64(name.encode(), signed=False)[0] for name in names], dtype=np.uint64)
