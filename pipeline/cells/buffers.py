"""The buffers of Arrow arrays as NumPy arrays, and back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def bytes_of(array: pa.Array) -> tuple[Bytes, Int64s]:
    """The bytes of a string or binary array of n, and the n + 1 bounds of its values; a null has none of them."""
    if array.null_count:
        array = array.fill_null("" if pa.types.is_string(array.type) else b"")
    if len(array) == 0:
        return np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    _, offsets, held = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32, count=len(array) + 1, offset=4 * array.offset).astype(np.int64)
    if held is None:
        return np.empty(0, dtype=np.uint8), bounds
    return np.frombuffer(held, dtype=np.uint8)[bounds[0] : bounds[-1]], bounds - bounds[0]


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
