"""Conversions of whole columns that refuse a column for one value: the values that they refuse are found by halving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# The buffers of Arrow arrays as NumPy arrays, and back.

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


@dataclass(frozen=True, slots=True)
class Converted:
    """n converted values.

    Args:
        values: array of n; null where ``bad``.
        bad: which values are none of the type, bool array of n.
    """

    values: pa.Array
    bad: Mask


def piecewise(convert: Callable[[pa.Array], pa.Array], values: pa.Array, kind: pa.DataType) -> Converted:
    """Every value of n converted, or null.

    Args:
        convert: a whole array; gives null for a value that it refuses, or raises ValueError (as pyarrow's errors are).
        values: array of n without nulls.
        kind: the type of the result.
    """
    parts: list[pa.Array] = []
    waiting = [(0, len(values))]
    while waiting:
        start, end = waiting.pop()
        try:
            parts.append(convert(values.slice(start, end - start)))
        except ValueError:
            if end - start > 1:
                middle = (start + end) // 2
                waiting += [(middle, end), (start, middle)]
            else:
                parts.append(pa.nulls(1, kind))
    made = pa.concat_arrays(parts) if len(parts) > 1 else parts[0]
    return Converted(made, ~mask_of(made.is_valid()))
