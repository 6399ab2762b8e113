"""Dates that no calendar has because their month or day is zero: ``0000-00-00``, ``2024-00-10``, ``2024-02-00``.

MySQL stores such dates unless ``sql_mode`` forbids it. One policy holds for all formats (``ZeroDates``). Canal and
Maxwell carry the text of the date. Debezium sends null for it, and the start of 1970 where the column is NOT NULL
(recorded), so that only the form of the column in the lake follows the policy there.

Columns without such a date pay nothing: they are looked for only after a conversion has failed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Column, ZeroDates
from binlake.decode.types.mysql_types import UTC_MICROSECONDS, MysqlType

_ZERO_PART = r"^[0-9]{4}-(00-[0-9]{2}|[0-9]{2}-00)( [0-9]{2}:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?)?$"
_SPARE_ZEROS = r"\.?0+$"
_KINDS = (pa.date32(), UTC_MICROSECONDS)


def lake_form(kind: MysqlType, policy: ZeroDates) -> MysqlType:
    """The type whose ``lake_type`` is that of the policy, as ``with_policy`` gives it to a column of rows."""
    return replace(kind, dates_as_text=True) if policy is ZeroDates.TEXT and kind.lake_type in _KINDS else kind


def with_policy(column: Column, policy: ZeroDates, *, in_key: bool) -> Column:
    """The column with the policy, if it is a DATE, DATETIME or TIMESTAMP; any other column unchanged.

    ``in_key``: whether the column is part of the table's key. Two keys must not become one, so a zero date in a key is
    quarantined, except as text.
    """
    if column.lake_type not in _KINDS:
        return column
    if policy is ZeroDates.TEXT:
        return replace(column, lake_type=pa.string(), zero_dates=policy)
    return replace(column, zero_dates=ZeroDates.QUARANTINE if in_key else policy)


def converted(array: pa.Array, column: Column, convert: Callable[[pa.Array, Column], pa.Array]) -> pa.Array:
    """A column of dates under its policy -> its lake type.

    Args:
        array: n values as the JSON reader gives them.
        column: with ``zero_dates``.
        convert: the conversion of the column's wire, to date32 or to microseconds in UTC.

    Raises ValueError if a value is no date, or a zero date that the policy quarantines.
    """
    as_dates = replace(column, lake_type=UTC_MICROSECONDS) if column.zero_dates is ZeroDates.TEXT else column
    try:
        dates, zeros = convert(array, as_dates), None
    except ValueError:
        zeros = zeros_in(array)
        if zeros is None or column.zero_dates is ZeroDates.QUARANTINE:
            raise
        dates = convert(pc.if_else(zeros, pa.scalar(None, pa.string()), array), as_dates)
    if column.zero_dates is ZeroDates.TEXT:
        texts = texts_of(dates)
        return texts if zeros is None else pc.if_else(zeros, bare(array), texts)
    if zeros is not None and column.zero_dates is ZeroDates.EPOCH:
        return pc.if_else(zeros, pa.scalar(0, dates.type), dates)
    return dates


def zeros_in(array: pa.Array) -> pa.Array | None:
    """Which texts are zero dates; None if there are none."""
    if not pa.types.is_string(array.type):
        return None
    zero_mask = pc.fill_null(pc.match_substring_regex(array, _ZERO_PART), False)
    return zero_mask if pc.any(zero_mask).as_py() else None


def texts_of(dates: pa.Array) -> pa.Array:
    """Dates as MySQL prints them. Of a fraction of a second the last zeros are left out, because not every format says
    how many digits the column has."""
    if pa.types.is_date32(dates.type):
        return dates.cast(pa.string())
    return bare(dates.cast(pa.timestamp("us")).cast(pa.string()))


def bare(texts: pa.Array) -> pa.Array:
    """The texts without the last zeros of a fraction."""
    with_fraction = pc.match_substring(texts, ".")
    return pc.if_else(with_fraction, pc.replace_substring_regex(texts, _SPARE_ZEROS, ""), texts)
