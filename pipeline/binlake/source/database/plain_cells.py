"""Cells of MySQL's text protocol in their plain form -> numbers, by compiled loops.

A cell that is not in the plain form of its type is *odd*: null, empty, with more digits than a loop takes, a zero
date, or no value at all. Odd cells are left to the conversions of ``binlake.decode.types.text_wires``, so a loop never
decides what is wrong.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import Column
from hudilake.compiled import BYTES, IN_INTS, LONG, LONGS, NOTHING, OUT_BYTES, OUT_INTS, compiled

_Bytes = npt.NDArray[np.uint8]
_Ints = npt.NDArray[np.int32]
_Longs = npt.NDArray[np.int64]
#: Any so many digits fit into 64 bits.
_MOST_DIGITS = 18
_MINUS, _POINT, _ZERO, _DASH, _BLANK, _COLON, _QUOTE, _BACKSLASH = b'-.0- :"\\'
_TAB, _LINE_FEED, _RETURN = b"\t\n\r"
_SECOND = 1_000_000
_DATE_SIZE, _MOMENT_SIZE, _MOST_FRACTION = 10, 19, 6


def plain_values(cells: pa.Array, column: Column) -> tuple[pa.Array, npt.NDArray[np.bool_]] | None:
    """The values of n cells in the column's lake type, null where a cell is, and which others are odd: there the value
    means nothing, bool array of n. None for a column that no loop reads.

    ``cells``: binary array without offset.
    """
    kind, count = column.lake_type, len(cells)
    if cells.offset or not count:
        return None
    valid, ends, text = cells.buffers()
    data = np.frombuffer(text, np.uint8) if text is not None and text.size else np.zeros(1, np.uint8)
    offsets = np.frombuffer(ends, np.int32)[: count + 1]
    odd, values = np.zeros(count, np.uint8), np.zeros(count, np.int64)
    if column.wire == "int_text" or (column.wire == "decimal_text" and pa.types.is_decimal128(kind)):
        least, most = _limits(column)
        _fixed_points(data, offsets, column.scale, least, most, values, odd)
    elif column.wire == "date_text" and pa.types.is_date32(kind):
        _days(data, offsets, values, odd)
    elif pa.types.is_timestamp(kind) and (column.wire == "datetime_text" or _in_utc(column)):
        _moments(data, offsets, values, odd)
    elif column.wire == "time_text":
        _clocks(data, offsets, values, odd)
    else:
        return None
    out = _as_decimals(values) if pa.types.is_decimal128(kind) else values.astype(_stored(kind), copy=False)
    strange = odd.view(np.bool_)
    if cells.null_count:
        strange &= ~cells.is_null().to_numpy(zero_copy_only=False)
    return pa.Array.from_buffers(kind, count, [valid, pa.py_buffer(out)]), strange


def compact_json(texts: pa.Array) -> pa.Array:
    """JSON texts without blanks between their parts, members and numbers as they are: so a connector writes them.

    ``texts``: string array without offset.
    """
    valid, ends, text = texts.buffers()
    if text is None or not text.size:
        return texts
    data, offsets = np.frombuffer(text, np.uint8), np.frombuffer(ends, np.int32)[: len(texts) + 1]
    out, out_offsets = np.empty(len(data), np.uint8), np.zeros(len(offsets), np.int32)
    _without_blanks(data, offsets, out, out_offsets)
    kept = pa.py_buffer(out[: out_offsets[-1]].copy())
    return pa.Array.from_buffers(pa.string(), len(texts), [valid, pa.py_buffer(out_offsets), kept])


def _limits(column: Column) -> tuple[int, int]:
    """The least and the greatest value, in units of the last digit."""
    if column.wire == "decimal_text":
        most = 10 ** min(column.length, _MOST_DIGITS) - 1
        return -most, most
    info = np.iinfo(_stored(column.lake_type))
    return int(info.min), int(info.max)


def _stored(kind: pa.DataType) -> type[np.int32 | np.int64]:
    return np.int32 if kind.bit_width == np.iinfo(np.int32).bits else np.int64


def _in_utc(column: Column) -> bool:
    return column.wire == "timestamp_text" and column.zone in ("", "UTC")


def _as_decimals(values: _Longs) -> _Longs:
    """Whole numbers in 16 bytes each."""
    wide = np.empty((len(values), 2), np.int64)
    wide[:, 0], wide[:, 1] = values, values >> 63
    return wide


@compiled(LONG(BYTES, LONG, LONG))
def _number(data: _Bytes, begin: int, count: int) -> int:
    """A number of ``count`` digits; -1 if one of the bytes is no digit."""
    number = 0
    for i in range(np.uint64(begin), np.uint64(begin + count)):
        digit = int(data[i]) - _ZERO
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


@compiled(LONG(BYTES, LONG, LONG))
def _fraction(data: _Bytes, begin: int, end: int) -> int:
    """Microseconds of a fraction of a second, with the point before it; 0 for none, -1 for anything else."""
    digits = end - begin - 1
    if digits < 0:
        return 0
    if digits == 0 or digits > _MOST_FRACTION or data[begin] != _POINT:
        return -1
    number = _number(data, begin + 1, digits)
    if number < 0:
        return -1
    for _ in range(_MOST_FRACTION - digits):
        number *= 10
    return number


@compiled(LONG(BYTES, LONG))
def _day(data: _Bytes, begin: int) -> int:
    """Days since 0000-03-01 of a date in the calendar; -1 for anything else. Ten bytes are there."""
    year, month, day = _number(data, begin, 4), _number(data, begin + 5, 2), _number(data, begin + 8, 2)
    if data[begin + 4] != _DASH or data[begin + 7] != _DASH or year < 1 or month < 1 or month > 12 or day < 1:
        return -1
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 31
    if month == 2:
        longest = 29 if leap else 28
    elif month in (4, 6, 9, 11):
        longest = 30
    if day > longest:
        return -1
    past = year if month > 2 else year - 1  # years begin in March, so that the leap day is the last one
    months = month - 3 if month > 2 else month + 9
    return past * 365 + past // 4 - past // 100 + past // 400 + (153 * months + 2) // 5 + day - 1


#: 1970-01-01, as ``_day`` counts.
_EPOCH_DAY = 719_468


@compiled(NOTHING(BYTES, IN_INTS, LONG, LONG, LONG, LONGS, OUT_BYTES))
def _fixed_points(data: _Bytes, offsets: _Ints, scale: int, least: int, most: int, values: _Longs, odd: _Bytes) -> None:
    """Numbers of at most ``scale`` digits after the point, in units of the last, from ``least`` to ``most``."""
    for row in range(len(values)):
        place, end = int(offsets[row]), int(offsets[row + 1])
        negative = place < end and int(data[place]) == _MINUS
        if negative:
            place += 1
        number, behind, before = 0, -1, 0
        plain = end - place <= _MOST_DIGITS
        while plain and place < end:
            digit = int(data[place]) - _ZERO
            if 0 <= digit <= 9:
                number = number * 10 + digit
                if behind >= 0:
                    behind += 1
                else:
                    before += 1
            elif data[place] == _POINT and behind < 0:
                behind = 0
            else:
                plain = False
            place += 1
        missing = scale - max(behind, 0)
        if not plain or not before or behind == 0 or missing < 0 or before + scale > _MOST_DIGITS:
            odd[row] = 1
            continue
        for _ in range(missing):
            number *= 10
        if negative:
            number = -number
        values[row] = number
        if number < least or number > most:
            odd[row] = 1


@compiled(NOTHING(BYTES, IN_INTS, LONGS, OUT_BYTES))
def _days(data: _Bytes, offsets: _Ints, values: _Longs, odd: _Bytes) -> None:
    """DATE: days since 1970."""
    for row in range(len(values)):
        begin = int(offsets[row])
        day = _day(data, begin) if offsets[row + 1] - begin == _DATE_SIZE else -1
        if day < 0:
            odd[row] = 1
        else:
            values[row] = day - _EPOCH_DAY


@compiled(NOTHING(BYTES, IN_INTS, LONGS, OUT_BYTES))
def _moments(data: _Bytes, offsets: _Ints, values: _Longs, odd: _Bytes) -> None:
    """DATETIME and TIMESTAMP in UTC: microseconds since 1970."""
    for row in range(len(values)):
        begin, end = int(offsets[row]), int(offsets[row + 1])
        clock, odd[row] = begin + _DATE_SIZE + 1, 1
        if end - begin < _MOMENT_SIZE:
            continue
        day, fraction = _day(data, begin), _fraction(data, begin + _MOMENT_SIZE, end)
        hour, minute, second = _number(data, clock, 2), _number(data, clock + 3, 2), _number(data, clock + 6, 2)
        if day < 0 or fraction < 0 or hour < 0 or minute < 0 or second < 0 or hour > 23 or minute > 59 or second > 59:
            continue
        if data[clock - 1] == _BLANK and data[clock + 2] == _COLON and data[clock + 5] == _COLON:
            odd[row] = 0
            seconds = ((day - _EPOCH_DAY) * 24 + hour) * 3600 + minute * 60 + second
            values[row] = seconds * _SECOND + fraction


@compiled(NOTHING(BYTES, IN_INTS, LONGS, OUT_BYTES))
def _clocks(data: _Bytes, offsets: _Ints, values: _Longs, odd: _Bytes) -> None:
    """TIME, of two or three digits of hours: microseconds."""
    for row in range(len(values)):
        begin, end = int(offsets[row]), int(offsets[row + 1])
        odd[row] = 1
        negative = begin < end and int(data[begin]) == _MINUS
        if negative:
            begin += 1
        if end - begin < 8:
            continue
        digits = 2 if data[begin + 2] == _COLON else 3
        clock = begin + digits + 1
        if end < clock + 5 or data[clock - 1] != _COLON or data[clock + 2] != _COLON:
            continue
        hour, minute, second = _number(data, begin, digits), _number(data, clock, 2), _number(data, clock + 3, 2)
        fraction = _fraction(data, clock + 5, end)
        if hour < 0 or fraction < 0 or minute < 0 or second < 0 or minute > 59 or second > 59:
            continue
        size = ((hour * 60 + minute) * 60 + second) * _SECOND + fraction
        odd[row] = 0
        values[row] = -size if negative else size


@compiled(NOTHING(BYTES, IN_INTS, OUT_BYTES, OUT_INTS))
def _without_blanks(data: _Bytes, offsets: _Ints, out: _Bytes, out_offsets: _Ints) -> None:
    """Copy JSON texts without what is blank outside of strings."""
    target = np.uint64(0)
    for row in range(len(offsets) - 1):
        quoted = escaped = False
        for place in range(np.uint64(offsets[row]), np.uint64(offsets[row + 1])):
            byte = data[place]
            if not quoted and byte in (_BLANK, _TAB, _LINE_FEED, _RETURN):
                continue
            out[target] = byte
            target += np.uint64(1)
            if escaped:
                escaped = False
            elif byte == _BACKSLASH:
                escaped = quoted
            elif byte == _QUOTE:
                quoted = not quoted
        out_offsets[row + 1] = target
