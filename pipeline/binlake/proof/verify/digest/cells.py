"""Row packets of MySQL's text protocol -> Arrow columns of raw bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.proof.verify.digest import kernel
from hudilake.errors import CorruptDataError

_Longs = npt.NDArray[np.int64]


def columns_of_packets(packets: Sequence[bytes], columns: int) -> list[pa.Array]:
    """The cells of n rows, one binary array of n a column, null where the server sent null.

    Args:
        packets: the payload of each row's packet.
        columns: the number of columns of the result.

    Raises CorruptDataError for a packet that is not a row of so many columns.
    """
    data = np.frombuffer(b"".join(packets), dtype=np.uint8)
    bounds = bounds_of(np.fromiter(map(len, packets), np.int64, len(packets)))
    starts = np.empty((columns, len(packets)), dtype=np.int64)
    lengths = np.empty_like(starts)
    cut = kernel.cut_packets(data, bounds, starts, lengths)
    if cut < len(packets):
        raise CorruptDataError(
            "the server sent a row that does not have the columns of its result",
            do_next="run the command again; if it stays, report the server's version",
            row=cut,
        )
    return [_binary(data, s, n) for s, n in zip(starts, lengths, strict=True)]


def bounds_of(sizes: _Longs) -> _Longs:
    """Where n pieces of these sizes begin when they lie one after the other, and the end: int64 array of n + 1."""
    bounds = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=bounds[1:])
    return bounds


def _binary(data: npt.NDArray[np.uint8], starts: _Longs, lengths: _Longs) -> pa.Array:
    bounds = bounds_of(np.maximum(lengths, 0))
    out = np.empty(int(bounds[-1]), dtype=np.uint8)
    kernel.copy_cells(data, starts, lengths, out)
    valid = lengths >= 0
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    offsets = pa.py_buffer(bounds.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(starts), [bits, offsets, pa.py_buffer(out)])
