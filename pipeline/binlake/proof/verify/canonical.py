"""Canonical rows: the same digests for a row whichever side it was read from, and their sums by ranges of keys.

Both sides are brought to the same Arrow type a column (``column_types``), in an agreed order; the digests are those of
``hudilake.format.digest``. So -0.0 differs from 0.0, a trailing blank counts, and a decimal does not depend on how its
digits were written. The lower half of the digest of a row's key is the key's hash: it says in which range a row counts,
and which rows of both sides belong together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.compiled import LONGS, NOTHING, ULONGS, compiled
from hudilake.format.digest.rows import Digests, Ulongs, row_digests

_Flags = npt.NDArray[np.bool_]
_Longs = npt.NDArray[np.int64]


def digests(rows: pa.Table | pa.RecordBatch) -> Digests:
    """The digest of each of n canonical rows. ``rows``: columns in canonical types, in an agreed order."""
    return row_digests({str(place): column for place, column in enumerate(rows.columns)}, rows.num_rows)


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
        _add_to_ranges(ranges_of(keys, self.bits), rows.low, rows.high, self.counts, self.low, self.high)

    def differing(self, other: RangeSums) -> npt.NDArray[np.bool_]:
        """The ranges whose rows differ, bool array of 2**bits."""
        same = (self.counts == other.counts) & (self.low == other.low) & (self.high == other.high)
        return np.asarray(~same, dtype=np.bool_)


def ranges_of(keys: Ulongs, bits: int) -> _Longs:
    """The range of each key hash, int64 array."""
    return (keys >> np.uint64(64 - bits)).astype(np.int64)


def is_in(keys: Ulongs, wanted: Ulongs) -> _Flags:
    """Whether each key hash is one of ``wanted``, which is ascending; bool array of n."""
    if not len(wanted):
        return np.zeros(len(keys), dtype=np.bool_)
    positions = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    return np.asarray(wanted[positions] == keys, dtype=np.bool_)


@compiled(NOTHING(LONGS, ULONGS, ULONGS, LONGS, ULONGS, ULONGS))
def _add_to_ranges(place: _Longs, low: Ulongs, high: Ulongs, counts: _Longs, sums: Ulongs, high_sums: Ulongs) -> None:
    """Add n digests to the sums of their ranges (modulo 2**64 for each half): the order of rows does not matter.

    ``place``: int64 array of n, the range of each row.
    """
    for row in range(len(place)):
        range_index = place[row]
        counts[range_index] += 1
        sums[range_index] += low[row]
        high_sums[range_index] += high[row]
