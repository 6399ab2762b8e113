"""Canonical rows: the same bytes for a row whichever side it was read from, and their 128-bit digests.

Both sides are brought to the same Arrow type a column (``column_types``); then a cell is the bytes that Arrow keeps of
it. So -0.0 differs from 0.0, a trailing blank counts, and a decimal does not depend on how its digits were written. A
cell stands after its length, and null has a length that no cell has, so cells cannot run into each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.proof.verify.digest import kernel
from binlake.proof.verify.digest.cells import bounds_of

Ulongs = npt.NDArray[np.uint64]
_Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Digests:
    """128-bit digests of n byte strings: the lower and the upper 64 bits, uint64 arrays of n."""

    low: Ulongs
    high: Ulongs

    def take(self, chosen: npt.NDArray[np.bool_] | _Longs) -> Digests:
        """The digests of some rows."""
        return Digests(self.low[chosen], self.high[chosen])


def digests(rows: pa.Table | pa.RecordBatch) -> Digests:
    """The digest of each of n canonical rows. ``rows``: columns in canonical types, in an agreed order."""
    count = rows.num_rows
    cells = [_cells(column) for column in rows.columns]
    sizes = np.full(count, kernel.CELL_HEAD * len(cells), dtype=np.int64)
    for _, _, lengths in cells:
        sizes += np.maximum(lengths, 0)
    bounds = bounds_of(sizes)
    data, ends = np.empty(int(bounds[-1]), dtype=np.uint8), bounds[:-1].copy()
    for cell_data, starts, lengths in cells:
        kernel.append_cells(cell_data, starts, lengths, data, ends)
    row_digests = Digests(np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.uint64))
    kernel.hash_rows(data, bounds, row_digests.low, row_digests.high)
    return row_digests


def _cells(column: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[np.uint8], _Longs, _Longs]:
    """The bytes of a column, where each cell begins in them, and its length (-1 for null)."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    count, buffers = len(array), array.buffers()
    if not count:
        return np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        offsets = np.frombuffer(buffers[1], dtype=np.int32)[array.offset : array.offset + count + 1].astype(np.int64)
        starts, lengths = offsets[:-1].copy(), np.diff(offsets)
        data = buffers[2]
    else:
        width = array.type.bit_width // 8
        starts = (np.arange(count, dtype=np.int64) + array.offset) * width
        lengths = np.full(count, width, dtype=np.int64)
        data = buffers[1]
    if array.null_count:
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = -1
    held = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return held, starts, lengths


@dataclass(frozen=True, slots=True)
class RangeSums:
    """Order-independent digests of 2**bits ranges of keys: number of rows, and the sum of their digests.

    A key lies in the range of the upper ``bits`` of its hash: that needs no collation, which the lake does not know.
    """

    bits: int
    counts: _Longs
    low: Ulongs
    high: Ulongs

    @staticmethod
    def empty(bits: int) -> RangeSums:
        """Without rows. ``bits``: 1 to 32."""
        zeros = np.zeros(1 << bits, dtype=np.uint64)
        return RangeSums(bits, np.zeros(1 << bits, dtype=np.int64), zeros, zeros.copy())

    def add(self, keys: Ulongs, rows: Digests) -> None:
        """Add n rows. ``keys``: the hash of each key, uint64 array of n."""
        kernel.add_to_ranges(ranges_of(keys, self.bits), rows.low, rows.high, self.counts, self.low, self.high)

    def differing(self, other: RangeSums) -> npt.NDArray[np.bool_]:
        """The ranges whose rows differ, bool array of 2**bits."""
        same = (self.counts == other.counts) & (self.low == other.low) & (self.high == other.high)
        return np.asarray(~same, dtype=np.bool_)


def ranges_of(keys: Ulongs, bits: int) -> _Longs:
    """The range of each key hash, int64 array."""
    return (keys >> np.uint64(64 - bits)).astype(np.int64)
