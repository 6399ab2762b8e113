"""The files that may hold a row that passes a filter: column statistics of many files are compared as Arrow columns.

A bound may be wider than the values, never tighter. A file stays a candidate if its bounds are unknown (a file or
column that is not indexed, a type that changed, a bound that may come from another order):

* Hudi's JVM writers order text in log files by UTF-16 units (``String.compareTo``), which differs from the order of
  code points only between U+E000-U+FFFF and the characters above: a bound with one of those is ignored.
* They order bytes in log files as signed: such bounds are not used.
* They read the footer of a base file, which has no bounds for a column of floats with NaN, as bounds of 0.0 and 0.0
  (measured); another row group with wider bounds hides this. So bounds of floats from a footer are not used. Entries
  from a footer have the column's size.
* A column that an indexed file lacks may have been indexed later, so it is treated as unknown.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.files.column_stats import ColumnRange, ValueType, value_type
from hudilake.read.filters.evaluate import Flags, flags, matches
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
)
from hudilake.read.filters.literals import members, settled

Longs = npt.NDArray[np.int64]
_ABOVE_SURROGATES = r"[\x{E000}-\x{FFFF}]"
_SUPPLEMENTARY = r"[\x{10000}-\x{10FFFF}]"
_BYTES = (ValueType.BYTES, ValueType.FIXED)
_FLOATS = (ValueType.FLOAT, ValueType.DOUBLE)


@dataclass(frozen=True)
class ColumnBounds:
    """One column over n files.

    ``kind``: its type in the table. ``low``, ``high``: arrays of n in ``comparison_type(kind)``, null where unbounded.
    ``has_values``, ``has_nulls``: bool arrays of n, False only where the file certainly holds none.
    ``nan_unsaid``: whether a file may hold NaN although its bounds are numbers.
    """

    kind: pa.DataType
    low: pa.Array
    high: pa.Array
    has_values: Flags
    has_nulls: Flags
    nan_unsaid: bool = False

    def take(self, places: Longs) -> ColumnBounds:
        """The bounds of the files at these places, in that order."""
        chosen = pa.array(places)
        values, nulls = self.has_values[places], self.has_nulls[places]
        return ColumnBounds(self.kind, self.low.take(chosen), self.high.take(chosen), values, nulls, self.nan_unsaid)


def comparison_type(kind: pa.DataType) -> pa.DataType:
    """The type in which bounds are compared: the widest for decimals, else the type itself."""
    return pa.decimal256(76, kind.scale) if pa.types.is_decimal(kind) else kind


def column_bounds(
    kind: pa.DataType, ranges: Sequence[ColumnRange | None], in_log: Sequence[bool] | None = None
) -> ColumnBounds:
    """The bounds of a column over n files.

    Args:
        kind: the type in which the column is read.
        ranges: per file its statistics, or None.
        in_log: per file whether it is a log file; None if none is.

    Measured: about 1 microsecond a file.
    """
    count = len(ranges)
    values, nulls = np.ones(count, dtype=np.bool_), np.ones(count, dtype=np.bool_)
    groups: dict[tuple[ValueType, str | None], list[int]] = defaultdict(list)
    for i, item in enumerate(ranges):
        if item is None or not 0 <= item.null_count <= item.value_count:
            continue
        if item.min is not None and item.max is not None:
            nulls[i] = item.null_count > 0
            if _in_known_order(item, in_log is not None and in_log[i]):
                groups[item.value_type, item.info].append(i)
        elif item.min is item.max is None and item.null_count == item.value_count:
            values[i], nulls[i] = False, item.null_count > 0
    low, high = _laid_out(kind, ranges, groups)
    return ColumnBounds(kind, low, high, values, nulls)


def _in_known_order(item: ColumnRange, in_log: bool) -> bool:
    if item.value_type in _FLOATS:
        return item.sizes == (0, 0)
    return not (item.value_type in _BYTES and in_log)


def _laid_out(
    kind: pa.DataType,
    ranges: Sequence[ColumnRange | None],
    groups: Mapping[tuple[ValueType, str | None], list[int]],
) -> tuple[pa.Array, pa.Array]:
    """The bounds in the files' order, group by group converted."""
    kept = comparison_type(kind)
    order = np.full(len(ranges), -1, dtype=np.int64)
    lows, highs, placed = [pa.nulls(1, kept)], [pa.nulls(1, kept)], 1
    for (stored_type, info), rows in groups.items():
        items = [item for item in (ranges[i] for i in rows) if item is not None]
        pair = [_converted(kind, stored_type, info, [getattr(i, side) for i in items]) for side in ("min", "max")]
        if pair[0] is None or pair[1] is None:
            continue
        lows.append(pair[0])
        highs.append(pair[1])
        order[rows] = np.arange(placed, placed + len(rows))
        placed += len(rows)
    indexes = pa.array(np.where(order < 0, 0, order))
    return _trusted_low(pa.concat_arrays(lows).take(indexes)), _trusted_high(pa.concat_arrays(highs).take(indexes))


#: How a value type's numbers are stored.
_STORAGE = {
    ValueType.BOOLEAN: pa.bool_(),
    ValueType.INT: pa.int64(),
    ValueType.LONG: pa.int64(),
    ValueType.FLOAT: pa.float64(),
    ValueType.DOUBLE: pa.float64(),
    ValueType.STRING: pa.string(),
    ValueType.BYTES: pa.binary(),
    ValueType.FIXED: pa.binary(),
    ValueType.DATE: pa.int32(),
    ValueType.TIME_MILLIS: pa.int32(),
}
_WIDENS = {(ValueType.INT, ValueType.LONG), (ValueType.FLOAT, ValueType.DOUBLE)}
_WIDENS_MILLIS = (ValueType.TIMESTAMP_MILLIS, ValueType.TIMESTAMP_MICROS)


def _converted(kind: pa.DataType, stored_type: ValueType, info: str | None, values: list[Any]) -> pa.Array | None:
    """Bounds of one value type in the column's comparison type; None if they do not bound it."""
    target = value_type(kind)
    if target is None:
        return None
    if stored_type is target[0] is ValueType.DECIMAL:
        return None if info is None else _decimals(kind, info, values)
    if stored_type is not target[0] and (stored_type, target[0]) not in (*_WIDENS, _WIDENS_MILLIS):
        return None
    if (stored_type, target[0]) == _WIDENS_MILLIS:
        values = [value * 1000 for value in values]
    array = pa.array(values, _STORAGE.get(stored_type, pa.int64()))
    return array.view(kind) if pa.types.is_temporal(kind) else array.cast(kind)


def _decimals(kind: pa.DataType, info: str, values: list[int]) -> pa.Array | None:
    """Unscaled numbers of ``info`` ("precision,scale") as decimals of the column's scale."""
    scale = int(info.split(",")[1])
    if scale > kind.scale:
        return None
    whole = pa.array(values, pa.decimal256(76, 0))
    return pa.Array.from_buffers(pa.decimal256(76, scale), len(whole), whole.buffers()).cast(comparison_type(kind))


def _trusted_low(low: pa.Array) -> pa.Array:
    if pa.types.is_string(low.type):
        return _without(low, pc.match_substring_regex(low, _SUPPLEMENTARY))
    if pa.types.is_floating(low.type):  # NaN is the greatest: all values are NaN
        return pc.if_else(pc.is_nan(low), pa.scalar(math.inf, low.type), low)
    return low


def _trusted_high(high: pa.Array) -> pa.Array:
    if pa.types.is_string(high.type):
        return _without(high, pc.match_substring_regex(high, _ABOVE_SURROGATES))
    if pa.types.is_floating(high.type):
        return _without(high, pc.is_nan(high))
    return high


def _without(bounds: pa.Array, where: pa.Array) -> pa.Array:
    return pc.if_else(where, pa.scalar(None, bounds.type), bounds)


def may_match(part: Filter, columns: Mapping[str, ColumnBounds], count: int) -> Flags:
    """The files that may hold a row that passes, bool array of ``count``.

    Args:
        part: normalised (``expressions.normalised``).
        columns: bounds over ``count`` files by column; the bounds of all other columns are unknown.

    Raises UnsupportedError for a literal that does not compare with its column.
    """
    if isinstance(part, And | Or):
        joined, start = (np.logical_and, True) if isinstance(part, And) else (np.logical_or, False)
        out = np.full(count, start, dtype=np.bool_)
        for inner in part.parts:
            joined(out, may_match(inner, columns, count), out=out)
        return out
    if isinstance(part, Not):
        return may_match(normalised(part), columns, count)
    if isinstance(part, Compare | In | IsNull | StartsWith):
        bounds = columns.get(part.column)
        return np.ones(count, dtype=np.bool_) if bounds is None else _leaf(part, bounds)
    return np.full(count, part.value if isinstance(part, Constant) else True, dtype=np.bool_)


def _leaf(leaf: Compare | In | IsNull | StartsWith, bounds: ColumnBounds) -> Flags:
    if isinstance(leaf, IsNull):
        return bounds.has_values if leaf.negated else bounds.has_nulls
    if bounds.nan_unsaid and matches(leaf, pa.table({leaf.column: pa.array([math.nan], bounds.kind)}))[0]:
        return bounds.has_values
    if isinstance(leaf, Compare):
        comparison = settled(bounds.kind, leaf.op, leaf.value)
        inside = np.bool_(comparison) if isinstance(comparison, bool) else _compare(bounds, *comparison)
    elif isinstance(leaf, In):
        inside = _in(bounds, members(bounds.kind, leaf.distinct), leaf.negated)
    else:
        inside = _starts_with(bounds, leaf)
    return bounds.has_values & inside


def _compare(bounds: ColumnBounds, op: Op, value: pa.Scalar) -> Flags:
    if pa.types.is_floating(bounds.kind) and math.isnan(value.as_py()):
        unbounded = np.asarray(bounds.high.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
        return unbounded if op in (Op.EQ, Op.GE) else np.full(len(unbounded), op is not Op.GT)
    value = value.cast(bounds.low.type)
    if op is Op.LT:
        return flags(pc.less(bounds.low, value), null=True)
    if op is Op.LE:
        return flags(pc.less_equal(bounds.low, value), null=True)
    if op is Op.GT:
        return flags(pc.greater(bounds.high, value), null=True)
    if op is Op.GE:
        return flags(pc.greater_equal(bounds.high, value), null=True)
    if op is Op.EQ:
        return flags(pc.less_equal(bounds.low, value), null=True) & flags(
            pc.greater_equal(bounds.high, value), null=True
        )
    return ~_only(bounds, value)


def _only(bounds: ColumnBounds, value: pa.Scalar) -> Flags:
    """Files whose values are all ``value``."""
    return flags(pc.equal(bounds.low, value)) & flags(pc.equal(bounds.high, value))


def _in(bounds: ColumnBounds, values: pa.Array, negated: bool) -> Flags:
    if negated:
        same = flags(pc.equal(bounds.low, bounds.high))
        return ~(same & flags(pc.is_in(bounds.low, value_set=values.cast(bounds.low.type))))
    if pa.types.is_floating(bounds.kind):
        nan = pc.is_nan(values)
        out = np.zeros(len(bounds.low), dtype=np.bool_)
        if pc.any(nan).as_py():
            out |= _compare(bounds, Op.EQ, pa.scalar(math.nan, bounds.kind))
        return out | _some_between(bounds, values.filter(pc.invert(nan)))
    return _some_between(bounds, values)


def _some_between(bounds: ColumnBounds, values: pa.Array) -> Flags:
    first, last = span(bounds, values.cast(bounds.low.type).take(pc.array_sort_indices(values)))
    return first < last


def span(bounds: ColumnBounds, ordered: pa.Array) -> tuple[Longs, Longs]:
    """The ascending values inside each file's bounds: those from ``first`` to ``last`` (exclusive).

    ``ordered``: in ``comparison_type``, ascending, without nulls and NaN. Returns two int64 arrays of n.
    """
    return _position(ordered, bounds.low, "left", 0), _position(ordered, bounds.high, "right", len(ordered))


def _position(ordered: pa.Array, sides: pa.Array, side: Literal["left", "right"], unbounded: int) -> Longs:
    """``numpy.searchsorted`` for any type that Arrow can rank."""
    bounded = np.flatnonzero(sides.is_valid().to_numpy(zero_copy_only=False))
    both = pa.concat_arrays([sides.drop_null(), ordered])
    ranks = np.asarray(pc.rank(both, "ascending", tiebreaker="min").to_numpy())
    out = np.full(len(sides), unbounded, dtype=np.int64)
    out[bounded] = np.searchsorted(ranks[len(bounded) :], ranks[: len(bounded)], side=side)
    return out


def _starts_with(bounds: ColumnBounds, leaf: StartsWith) -> Flags:
    prefix = pa.scalar(leaf.prefix, bounds.kind)
    if leaf.negated:
        begins = [flags(pc.starts_with(side, leaf.prefix)) for side in (bounds.low, bounds.high)]
        return ~(begins[0] & begins[1])
    cut = pc.utf8_slice_codeunits if pa.types.is_string(bounds.kind) else pc.binary_slice
    length = len(leaf.prefix)
    if not length:
        return np.ones(len(bounds.low), dtype=np.bool_)
    below = flags(pc.less_equal(cut(bounds.low, 0, length), prefix), null=True)
    return below & flags(pc.greater_equal(cut(bounds.high, 0, length), prefix), null=True)
