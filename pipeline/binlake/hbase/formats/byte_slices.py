"""Slices of one byte array as an Arrow column.

It stands alone: ``hbase_avro`` and ``hbase_result`` both cut slices, and neither imports the other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.compiled import BYTES, LONGS, NOTHING, OUT_BYTES, compiled

_Bytes = npt.NDArray[np.uint8]
_Longs = npt.NDArray[np.int64]


def sliced(data: _Bytes, starts: _Longs, sizes: _Longs) -> pa.Array:
    """n slices of ``data`` as a binary array of n. Raises ValueError beyond 2 GiB."""
    bounds = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=bounds[1:])
    if bounds[-1] > np.iinfo(np.int32).max:
        raise ValueError("values of more than 2 GiB in one array")
    out = np.empty(int(bounds[-1]), dtype=np.uint8)
    _copy(data, np.ascontiguousarray(starts), np.ascontiguousarray(sizes), bounds, out)
    buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


@compiled(NOTHING(BYTES, LONGS, LONGS, LONGS, OUT_BYTES))
def _copy(data: _Bytes, starts: _Longs, sizes: _Longs, bounds: _Longs, out: _Bytes) -> None:
    for i in range(len(starts)):
        for k in range(sizes[i]):
            out[bounds[i] + k] = data[starts[i] + k]
