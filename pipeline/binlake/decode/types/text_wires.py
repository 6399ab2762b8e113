"""Conversions for values in the text that MySQL would print (Canal, partly Maxwell), a column at a time.

A conversion is exact or raises ``ValueError``, as everywhere in this package. Dates with a month or day of zero are
refused here; ``zero_dates`` applies the policy for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Column
from binlake.decode.types import encoded_bytes
from binlake.decode.types.mysql_types import UTC_MICROSECONDS, parse_type
from binlake.decode.types.wkt import ewkb_column

_INTEGER = r"^-?[0-9]+$"
_DIGITS = r"^[0-9]+$"
_FLOAT = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
_ISO_MOMENT = (
    r"^(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[T ](?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?:(?P<fraction>\.[0-9]{1,6})0{0,3})?(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?$"
)
_CLOCK = r"^(?P<sign>-?)(?P<h>[0-9]{2,3}):(?P<m>[0-5][0-9]):(?P<s>[0-5][0-9])(?:\.(?P<f>[0-9]{1,6}))?$"
_LARGEST_UNSIGNED = (1 << 64) - 1
_MICROSECONDS = pa.timestamp("us")


def _matching(array: pa.Array, pattern: str) -> pa.Array:
    if not pc.all(pc.match_substring_regex(array, pattern), min_count=0).as_py():
        raise ValueError("a text that is no value of its type")
    return array


def integers(array: pa.Array, column: Column) -> pa.Array:
    """Whole numbers. The pattern is necessary: the cast alone reads 0x10 as 16."""
    return _matching(array, _INTEGER).cast(pa.int64()).cast(column.lake_type)


def unsigned(array: pa.Array, column: Column) -> pa.Array:
    """BIGINT UNSIGNED as text or exact number -> decimal."""
    exact = (_matching(array, _DIGITS) if pa.types.is_string(array.type) else array).cast(pa.decimal128(20, 0))
    if len(exact.drop_null()) and not 0 <= pc.min(exact).as_py() <= pc.max(exact).as_py() <= _LARGEST_UNSIGNED:
        raise ValueError("a number beyond BIGINT UNSIGNED")
    return exact


def floats(array: pa.Array, column: Column) -> pa.Array:
    """FLOAT and DOUBLE as Java prints them."""
    numbers = _matching(array, _FLOAT).cast(column.lake_type)
    if pc.any(pc.invert(pc.is_finite(numbers))).as_py():
        raise ValueError("a number beyond the range of its column")
    return numbers


def dates(array: pa.Array, column: Column) -> pa.Array:
    """``2024-02-29``."""
    return _matching(array, _DATE).cast(pa.date32())


def moments(array: pa.Array, column: Column) -> pa.Array:
    """DATETIME, as if it were UTC."""
    return _matching(array, _MOMENT).cast(_MICROSECONDS).cast(UTC_MICROSECONDS)


def instants(array: pa.Array, column: Column) -> pa.Array:
    """TIMESTAMP in the column's zone. A time that is ambiguous because of a clock change is refused."""
    local = _matching(array, _MOMENT).cast(_MICROSECONDS)
    if column.zone in ("", "UTC"):
        return local.cast(UTC_MICROSECONDS)
    return pc.assume_timezone(local, column.zone, ambiguous="raise", nonexistent="raise").cast(UTC_MICROSECONDS)


def iso_moments(array: pa.Array, column: Column) -> pa.Array:
    """A time as ISO 8601 writes it, with T or a blank. One without a zone is in the column's."""
    parts = pc.extract_regex(array, _ISO_MOMENT)
    if parts.null_count != array.null_count:
        raise ValueError("a text that is no time")
    day, clock, fraction, zone = (pc.struct_field(parts, name) for name in ("day", "clock", "fraction", "zone"))
    local = pc.binary_join_element_wise(pc.binary_join_element_wise(day, clock, " "), fraction, "")
    zoned = pc.not_equal(zone, "")
    if not pc.any(zoned).as_py():
        return instants(local, column)
    with_zone = pc.binary_join_element_wise(local, zone, "").cast(UTC_MICROSECONDS) if pc.all(zoned).as_py() else None
    if with_zone is not None:
        return with_zone
    absent = pa.scalar(None, pa.string())
    elsewhere = pc.binary_join_element_wise(pc.if_else(zoned, local, absent), zone, "").cast(UTC_MICROSECONDS)
    return pc.coalesce(elsewhere, instants(pc.if_else(zoned, absent, local), column))


def numbers(array: pa.Array) -> pa.Array:
    """JSON values as they stand in the image: the digits of numbers, and of texts that hold a number."""
    quoted = pc.starts_with(array, '"')
    if pc.any(quoted).as_py():
        array = pc.if_else(quoted, pc.utf8_slice_codeunits(array, 1, -1), array)
    return _matching(array, _FLOAT)


def text_or_json(array: pa.Array, column: Column) -> pa.Array:
    """JSON values as they stand in the image: objects and arrays stay, strings lose their quotes and escapes."""
    first = pc.utf8_slice_codeunits(array, 0, 1)
    if not pc.all(pc.is_in(first, pa.array(['"', "{", "[", None])), min_count=0).as_py():
        raise ValueError("a value that is neither text nor an object nor an array")
    quoted = pc.equal(first, '"')
    if not pc.any(quoted).as_py():
        return array
    bare = pc.utf8_slice_codeunits(array, 1, -1)
    escaped = pc.and_(quoted, pc.match_substring(array, "\\"))
    if not pc.any(escaped).as_py():
        return pc.if_else(quoted, bare, array)
    texts = pa.array([json.loads(text) for text in array.filter(escaped).to_pylist()], pa.string())
    return pc.replace_with_mask(pc.if_else(quoted, bare, array), escaped.fill_null(False), texts)


def clocks(array: pa.Array, column: Column) -> pa.Array:
    """TIME, up to 838 hours, positive or negative -> microseconds."""
    parts = pc.extract_regex(array, _CLOCK)
    if parts.null_count != array.null_count:
        raise ValueError("a text that is no TIME")

    def number(name: str) -> pa.Array:
        return pc.struct_field(parts, name).cast(pa.int64())

    fraction = pc.utf8_rpad(pc.struct_field(parts, "f"), 6, "0").cast(pa.int64())
    seconds = pc.add(pc.multiply(pc.add(pc.multiply(number("h"), 60), number("m")), 60), number("s"))
    size = pc.add(pc.multiply(seconds, 1_000_000), fraction)
    return pc.if_else(pc.equal(pc.struct_field(parts, "sign"), "-"), pc.negate(size), size)


def _mapped(array: pa.Array, values: Mapping[str, str]) -> pa.Array:
    coded = array.dictionary_encode()
    known = [None if value is None else values[value] for value in coded.dictionary.to_pylist()]
    return pa.array(known, pa.string()).take(coded.indices)


def enum_options(array: pa.Array, column: Column) -> pa.Array:
    """ENUM by its 1-based index in the list (0 is MySQL's error value), or by its own text."""
    options = parse_type(column.mysql_type).options
    places = {str(place): option for place, option in enumerate(options, 1)} | {"0": ""}
    texts = {option: option for option in options if not option.isdigit()}
    try:
        return _mapped(array, texts | places)
    except KeyError as error:
        raise ValueError("no option of the column") from error


def set_options(array: pa.Array, column: Column) -> pa.Array:
    """SET by its bits -> its members joined by commas, in the order of the column's list."""
    options = parse_type(column.mysql_type).options

    def text(value: str) -> str:
        if not (value.isascii() and value.isdigit()):
            if set(value.split(",")) <= set(options):
                return value
            raise ValueError("no member of the column")
        if int(value) >> len(options):
            raise ValueError("more bits than the column has members")
        return ",".join(option for place, option in enumerate(options) if int(value) >> place & 1)

    return _mapped(array, {value: text(value) for value in array.unique().to_pylist() if value is not None})


def set_members(array: pa.Array, column: Column) -> pa.Array:
    """SET as a list of its members."""
    if array.flatten().null_count:
        raise ValueError("a SET with a null member")
    return pc.binary_join(array, ",")


def bits(array: pa.Array, column: Column) -> pa.Array:
    """BIT(n) as a number -> big-endian bytes; BIT(1) -> bool."""
    if pa.types.is_string(array.type):
        array = _matching(array, _DIGITS).cast(pa.uint64())
    numbers = array.fill_null(0).to_numpy(zero_copy_only=False).astype(">u8")
    if column.length < 64 and (numbers >> np.uint64(column.length)).any():
        raise ValueError(f"more than {column.length} bits")
    absent = array.is_null().to_numpy(zero_copy_only=False)
    if column.length == 1:
        return pa.array(numbers.astype(bool), mask=absent)
    size = (column.length + 7) // 8
    tails = numbers.view(np.uint8).reshape(-1, 8)[:, 8 - size :]
    whole = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(size), len(array), [None, pa.py_buffer(np.ascontiguousarray(tails))]
    )
    return pc.if_else(pa.array(~absent), whole.cast(pa.binary()), pa.scalar(None, pa.binary()))


def latin1(array: pa.Array, column: Column) -> pa.Array:
    """Bytes as characters of ISO-8859-1. BINARY(n) is padded with the zeros that were cut off."""
    return _filled(encoded_bytes.decode_latin1(array), column)


def filled_base64(array: pa.Array, column: Column) -> pa.Array:
    """Bytes as base64; BINARY(n) is padded as above."""
    return _filled(encoded_bytes.decode_base64(array), column)


def _filled(array: pa.Array, column: Column) -> pa.Array:
    if not column.length:
        return array
    size = column.length
    lengths = pc.binary_length(array)
    if pc.any(pc.greater(lengths, size)).as_py():
        raise ValueError(f"more than {size} bytes")
    if pc.all(pc.equal(lengths, size), min_count=0).as_py():
        return array
    zeros = pa.array([bytes(size - length) for length in range(size + 1)], pa.binary())
    return pc.binary_join_element_wise(array, zeros.take(lengths), b"")


def shapes(array: pa.Array, column: Column) -> pa.Array:
    """Well-known text -> SRID 0 in 4 bytes, followed by well-known binary."""
    return ewkb_column(array)
