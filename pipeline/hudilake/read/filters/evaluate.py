"""Filters on rows: exact, in whole columns."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.read.filters.expressions import (
    And,
    Compare,
    Constant,
    Filter,
    In,
    IsNull,
    Not,
    Op,
    Or,
    StartsWith,
    normalised,
    unknown_parts,
)
from hudilake.read.filters.literals import members, settled

Flags = npt.NDArray[np.bool_]
_FUNCTIONS = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}


def matches(part: Filter, rows: pa.Table | pa.RecordBatch) -> Flags:
    """The rows that pass, bool array of n. Every row passes an unsupported part.

    Args:
        part: normalised (``expressions.normalised``).
        rows: n rows with at least the columns that the filter names.

    Raises UnsupportedError for a literal that does not compare with its column.
    """
    if isinstance(part, And | Or):
        joined, start = (np.logical_and, True) if isinstance(part, And) else (np.logical_or, False)
        out = np.full(rows.num_rows, start, dtype=np.bool_)
        for inner in part.parts:
            joined(out, matches(inner, rows), out=out)
        return out
    if isinstance(part, Not):
        return matches(normalised(part), rows)
    if isinstance(part, Compare | In | IsNull | StartsWith):
        return _leaf(part, rows.column(part.column))
    return np.full(rows.num_rows, part.value if isinstance(part, Constant) else True, dtype=np.bool_)


def evaluate(part: Filter, rows: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """The filter's value for every row: true, false or null, as SQL has it.

    Raises UnsupportedError for a filter with unsupported parts, and as ``matches``.
    """
    if unknown := unknown_parts(part):
        raise UnsupportedError(
            f"parts of the filter are not supported: {', '.join(unknown)}", do_next="remove them from the filter"
        )
    holds, fails = matches(normalised(part), rows), matches(normalised(Not(part)), rows)
    return pa.array(holds, mask=~(holds | fails))


def _leaf(leaf: Compare | In | IsNull | StartsWith, column: pa.ChunkedArray | pa.Array) -> Flags:
    if isinstance(leaf, IsNull):
        return flags(column.is_valid() if leaf.negated else column.is_null())
    if isinstance(leaf, In):
        result = _is_in(column, members(column.type, leaf.distinct))
    elif isinstance(leaf, StartsWith):
        result = pc.starts_with(column, leaf.prefix)
    else:
        return _compare(leaf, column)
    return flags(pc.invert(result) if leaf.negated else result) & flags(column.is_valid())


def flags(result: pa.Array | pa.ChunkedArray, null: bool = False) -> Flags:
    """Arrow's booleans in numpy, ``null`` where they are null."""
    return np.asarray(pc.fill_null(result, null).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _compare(leaf: Compare, column: pa.ChunkedArray | pa.Array) -> Flags:
    result = settled(column.type, leaf.op, leaf.value)
    if isinstance(result, bool):
        return flags(column.is_valid()) & result
    op, value = result
    if pa.types.is_floating(column.type):
        return _compare_floats(op, column, value)
    return flags(_FUNCTIONS[op](column, value))


def _compare_floats(op: Op, column: pa.ChunkedArray | pa.Array, value: pa.Scalar) -> Flags:
    """NaN equals itself and is the greatest; Arrow's own comparisons with it are all false."""
    nan = flags(pc.is_nan(column))
    if not math.isnan(value.as_py()):
        result = flags(_FUNCTIONS[op](column, value))
        return result | nan if op in (Op.GT, Op.GE, Op.NE) else result
    if op in (Op.EQ, Op.GE):
        return nan
    if op is Op.GT:
        return np.zeros(len(column), dtype=np.bool_)
    return flags(column.is_valid()) & (True if op is Op.LE else ~nan)


def _is_in(column: pa.ChunkedArray | pa.Array, values: pa.Array) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_floating(column.type) and pc.any(pc.equal(values, 0)).as_py():
        zeros = pa.array([0.0, -0.0], values.type)  # Arrow's lookup tells them apart
        values = pa.concat_arrays([values, zeros])
    return pc.is_in(column, value_set=values)
