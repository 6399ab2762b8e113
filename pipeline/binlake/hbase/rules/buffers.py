"""The buffers of Arrow arrays as NumPy arrays, and back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def binary_array(data: Bytes, lengths: Int64s, valid: Mask) -> pa.Array:
    """A binary array of n values that stand behind each other in ``data``; where ``valid`` is false a null."""
    bounds = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=bounds[1:])
    buffers = [validity(valid), pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def validity(valid: Mask) -> pa.Buffer | None:
    """The validity bitmap of n values; None if all are valid."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def mask_of(array: pa.Array) -> Mask:
    """A boolean array as a NumPy mask; null counts as false."""
    mask: Mask = array.fill_null(False).to_numpy(zero_copy_only=False)
    return mask
