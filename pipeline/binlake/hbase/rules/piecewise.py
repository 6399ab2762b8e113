"""Conversions of whole columns that refuse a column for one value: the values that they refuse are found by halving."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from binlake.hbase.rules.buffers import Mask, mask_of


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
