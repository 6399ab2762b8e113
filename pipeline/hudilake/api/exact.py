"""Values in the type of a column: the same values, or an error.

Arrow itself cuts fractions and times of day, rounds, overflows and takes any number for true without an error
(measured, pyarrow 26.0). A number may become the nearest float: that is what a float is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, time
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: From these numbers on a float is several whole numbers, so that its shortest text need not be its value.
_WHOLE: Final = {pa.float16(): 1 << 11, pa.float32(): 1 << 24, pa.float64(): 1 << 53}


class UnfitError(ValueError):
    """A value that its column's type cannot hold."""

    def __init__(self, value: object, kind: pa.DataType) -> None:
        """``value``: as it was given. ``kind``: of the column, or inside of it."""
        super().__init__(f"{str(value)[:80]} is no {kind}")


def cast_exactly(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """n values in another type. Raises UnfitError, or pa.ArrowException, for one that it cannot hold."""
    if column.type == kind:
        return column
    given = _decoded(column)
    held = _cast(given, kind)
    _check(given, held)
    return held


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _cast(given: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A float becomes the decimal that it shows, a decimal the nearest float: Arrow's own casts miss both."""
    numbers = (pa.types.is_floating, pa.types.is_decimal)
    crossed = any(one(given.type) for one in numbers) and any(one(kind) for one in numbers)
    if crossed and pa.types.is_decimal(given.type) != pa.types.is_decimal(kind):
        return given.cast(pa.string()).cast(kind)
    return given.cast(kind)


def _check(given: pa.ChunkedArray, held: pa.ChunkedArray) -> None:
    """Raise UnfitError for the first of n values that Arrow's cast has changed."""
    old, new = given.type, held.type
    if old == new or pa.types.is_null(old):
        return
    if pa.types.is_dictionary(old):
        _check(_decoded(given), held)
    elif pa.types.is_struct(old) and pa.types.is_struct(new):
        for field in old:
            _check(pc.struct_field(given, field.name), pc.struct_field(held, field.name))
    elif pa.types.is_map(old) and pa.types.is_map(new):
        _check(_entries(given), _entries(held))
    elif pa.types.is_nested(old) and pa.types.is_nested(new):
        _check(pc.list_flatten(given), pc.list_flatten(held))
    elif (wrong := _changed(given, held)) is not None and (row := pc.index(wrong, True).as_py()) >= 0:
        raise UnfitError(given[row], new)


def _entries(maps: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = maps.type
    entry = pa.struct([pa.field("key", kind.key_type, nullable=False), kind.item_field.with_name("value")])
    return pc.list_flatten(maps.cast(pa.list_(entry)))


def _changed(given: pa.ChunkedArray, held: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Whether each of n values is another one now, null for null; None where Arrow's cast changes none."""
    old, new = given.type, held.type
    if pa.types.is_floating(new) and pa.types.is_floating(old):
        return pc.and_(pc.is_inf(held), pc.is_finite(given))
    if pa.types.is_floating(new) and (pa.types.is_string(old) or pa.types.is_large_string(old)):
        return pc.and_not(pc.is_inf(held), pc.match_substring(given, "inf", ignore_case=True))
    if pa.types.is_decimal(new) and pa.types.is_floating(old):
        many = pc.greater_equal(pc.abs(given), pa.scalar(_WHOLE[old], old))
        return pc.or_(many, pc.not_equal(held, _cast(given, new)))
    if pa.types.is_date(new) and pa.types.is_timestamp(old):
        moments = pc.local_timestamp(given) if old.tz else given
        return pc.not_equal(held.cast(moments.type), moments)
    if pa.types.is_boolean(new) and not pa.types.is_string(old) and not pa.types.is_large_string(old):
        return pc.not_equal(held.cast(old), given)
    return None


def check_value(value: Any, kind: pa.DataType) -> None:  # noqa: ANN401 - any Python value
    """Raise UnfitError for a value of Python that Arrow would make another one of in this type. Raises ValueError and
    TypeError for one that has another shape."""
    if value is None:
        return
    if pa.types.is_nested(kind):
        _check_inside(value, kind)
    elif pa.types.is_integer(kind):
        if isinstance(value, float | np.floating) and not float(value).is_integer():
            raise UnfitError(value, kind)
    elif pa.types.is_date(kind):
        if isinstance(value, datetime) and (value.time() != time() or _nanoseconds(value)):
            raise UnfitError(value, kind)
    elif pa.types.is_timestamp(kind):
        if kind.unit != "ns" and _nanoseconds(value):
            raise UnfitError(value, kind)
    elif pa.types.is_float32(kind) and isinstance(value, float | np.floating) and math.isfinite(value):
        with np.errstate(over="ignore"):
            if math.isinf(np.float32(value)):
                raise UnfitError(value, kind)


def _nanoseconds(value: object) -> int:
    """Of a Timestamp of pandas, beyond its microseconds."""
    return int(getattr(value, "nanosecond", None) or 0)


def _check_inside(value: Any, kind: pa.DataType) -> None:  # noqa: ANN401 - any Python value
    if pa.types.is_struct(kind):
        entries = dict(value)
        for field in kind:
            check_value(entries.get(field.name), field.type)
    elif pa.types.is_map(kind):
        for _, inner in value.items() if isinstance(value, Mapping) else value:
            check_value(inner, kind.item_type)
    elif isinstance(value, str | bytes):  # Arrow takes its characters
        raise UnfitError(value, kind)
    else:
        for inner in value:
            check_value(inner, kind.value_type)
