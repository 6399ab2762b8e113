"""Wires: the JSON forms of values, and their conversion to lake types, a column at a time.

A wire names the type that pyarrow's JSON reader expects and the conversion after it. A conversion takes the reader's
array and the column, and returns an array of ``column.lake_type``. It raises ``ValueError`` (pyarrow's ``ArrowInvalid``
is one) when any value cannot be converted exactly: nothing is rounded, and no machine's time zone is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Column
from binlake.decode.types import encoded_bytes, text_wires, zero_dates
from binlake.decode.types.mysql_types import UTC_MICROSECONDS, MysqlType, parse_type

Convert = Callable[[pa.Array, Column], pa.Array]

#: Wide enough for every MySQL DECIMAL however its digits are written, exponents included.
_ANY_DECIMAL = pa.decimal256(76, 30)
#: Represents a decimal of the column's own digits: MariaDB's have up to 38 after the point, and 65 before it.
_EXACT = pa.decimal256(65, 38)
#: JSON inside a row image; the row reader turns it into text first.
JSON_TEXT = "json_text"
#: The same, where text stays as it is and only objects and arrays become JSON text.
TEXT_OR_JSON = "text_or_json"
#: A decimal as a number or as text.
DECIMAL_PLAIN = "decimal_plain"
#: Nothing but null: of a learned column without a value so far.
NULL_ALONE = "null"
#: Wires whose values are read as the text that they have in the image.
DOCUMENTS = frozenset({JSON_TEXT, TEXT_OR_JSON, DECIMAL_PLAIN})
#: Wires of base64, whose values may also come as the bytes themselves.
ENCODED = frozenset(
    {"base64", "bits", "bits_big_endian", "bits_any_order", "decimal_base64", "decimal_variable", "geometry"}
)
_GEOMETRY = pa.struct([("x", pa.float64()), ("y", pa.float64()), ("wkb", pa.string()), ("srid", pa.int64())])
_SCALED = pa.struct([("scale", pa.int32()), ("value", pa.string())])
_MICROSECONDS = pa.timestamp("us")
_DAY_US = 86_400_000_000
#: 0000-01-01 and 10000-01-01, as days since 1970.
_FIRST_DAY, _END_DAY = -719_528, 2_932_897


@dataclass(frozen=True, slots=True)
class Wire:
    """``reads``: the type for the JSON reader. ``json``: the Python types of one such value, without None."""

    reads: pa.DataType
    json: tuple[type, ...]
    convert: Convert


def read_as(column: Column) -> pa.DataType:
    """The type for the JSON reader to read a column with."""
    reads = WIRES[column.wire].reads
    return pa.decimal256(max(column.length, column.scale), column.scale) if reads is _EXACT else reads


def to_lake(array: pa.Array, column: Column) -> pa.Array:
    """One column from the JSON reader -> its lake type. Raises ValueError if any value does not fit."""
    convert = WIRES[column.wire].convert
    return convert(array, column) if column.zero_dates is None else zero_dates.converted(array, column, convert)


def _as_is(array: pa.Array, column: Column) -> pa.Array:
    return array.cast(column.lake_type)


def _finite(array: pa.Array, column: Column) -> pa.Array:
    if pc.any(pc.invert(pc.is_finite(array))).as_py():
        raise ValueError("a number beyond the range of its column")
    return array


def _uint64_wrapped(array: pa.Array, column: Column) -> pa.Array:
    return encoded_bytes.decimals_from_uint64(array)


def _bytes(array: pa.Array) -> pa.Array:
    """The bytes of base64, or those that are there already."""
    return array if pa.types.is_binary(array.type) else encoded_bytes.decode_base64(array)


def _base64(array: pa.Array, column: Column) -> pa.Array:
    return _bytes(array)


def _base64_url_safe(array: pa.Array, column: Column) -> pa.Array:
    return encoded_bytes.decode_base64(array, url_safe=True)


def _hex(array: pa.Array, column: Column) -> pa.Array:
    return encoded_bytes.decode_hex(array)


def _bits(array: pa.Array, column: Column) -> pa.Array:
    return encoded_bytes.big_endian_bits(_bytes(array), column.length)


def _bits_big_endian(array: pa.Array, column: Column) -> pa.Array:
    turned = [value and value[::-1] for value in _bytes(array).to_pylist()]
    return encoded_bytes.big_endian_bits(pa.array(turned, pa.binary()), column.length)


def _bits_any_order(array: pa.Array, column: Column) -> pa.Array:
    """BIT whose order of bytes is not known: only what is the same in both."""
    if any(value != value[::-1] for value in _bytes(array).to_pylist() if value is not None):
        raise ValueError("the message does not say which bytes come first (add op and source.snapshot to add.fields)")
    return _bits(array, column)


def _decimal_base64(array: pa.Array, column: Column) -> pa.Array:
    numbers = _bytes(array)
    exact = encoded_bytes.decimals_from_twos_complement(numbers, column.length, column.scale)
    exact.validate(full=True)
    return _decimal_to_lake(exact, column)


def _decimal_cast(array: pa.Array, column: Column) -> pa.Array:
    wide = pa.decimal128 if column.length <= 38 else pa.decimal256
    return _decimal_to_lake(array.cast(wide(column.length, column.scale)), column)


def _decimal_plain(array: pa.Array, column: Column) -> pa.Array:
    return _decimal_cast(text_wires.numbers(array), column)


def _decimal_variable(array: pa.Array, column: Column) -> pa.Array:
    values = _bytes(pc.struct_field(array, "value")).to_pylist()
    scales = pc.struct_field(array, "scale").to_pylist()
    texts = [
        # from text: arithmetic on Decimals would round to 28 digits
        None if value is None else _plain(Decimal(f"{int.from_bytes(value, 'big', signed=True)}E{-(scale or 0)}"))
        for value, scale in zip(values, scales, strict=True)
    ]
    return pa.array(texts, pa.string()) if not column.length else _decimal_cast(pa.array(texts, pa.string()), column)


def _decimal_to_lake(exact: pa.Array, column: Column) -> pa.Array:
    if not pa.types.is_string(column.lake_type):
        return exact if exact.type == column.lake_type else exact.cast(column.lake_type)
    return _decimal_texts(exact, exact.type.scale)


def _decimal_texts(exact: pa.Array, scale: int) -> pa.Array:
    """Decimals as plain digits, without exponents."""
    kind = pa.decimal128 if pa.types.is_decimal128(exact.type) else pa.decimal256
    whole = pa.Array.from_buffers(kind(exact.type.precision, 0), len(exact), exact.buffers(), offset=exact.offset)
    texts = whole.cast(pa.string())
    if scale <= 0:
        return texts
    negative = pc.starts_with(texts, "-")
    digits = pc.utf8_lpad(pc.utf8_ltrim(texts, "-"), scale + 1, "0")
    before, behind = pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(
        pc.if_else(negative, "-", ""), before, pc.binary_join_element_wise(".", behind, ""), ""
    )


def _plain(value: Decimal) -> str:
    return format(value, "f")


def _date_days(array: pa.Array, column: Column) -> pa.Array:
    return _within(array, 1).cast(pa.int32()).cast(pa.date32())


def _date_iso(array: pa.Array, column: Column) -> pa.Array:
    return pc.utf8_rtrim(array, characters="Z").cast(pa.date32())


def _epoch_ms(array: pa.Array, column: Column) -> pa.Array:
    return pc.multiply_checked(_within(array, 86_400_000), 1000).cast(UTC_MICROSECONDS)


def _epoch_us(array: pa.Array, column: Column) -> pa.Array:
    return _within(array, _DAY_US).cast(UTC_MICROSECONDS)


def _epoch_ns(array: pa.Array, column: Column) -> pa.Array:
    return _within(_whole_microseconds(array), _DAY_US).cast(UTC_MICROSECONDS)


def _within(array: pa.Array, day: int) -> pa.Array:
    """The times if all are in the years 0000 to 9999, which MySQL's types have; ``day``: a day in their unit.

    Many readers stop at a later year, so one forged value would make the table unreadable. Raises ValueError.
    """
    span = pc.min_max(array).as_py()
    if span["min"] is not None and not _FIRST_DAY * day <= span["min"] <= span["max"] < _END_DAY * day:
        raise ValueError("a time outside of the years 0000 to 9999")
    return array


def _time_ms(array: pa.Array, column: Column) -> pa.Array:
    return pc.multiply_checked(array, 1000)


def _time_ns(array: pa.Array, column: Column) -> pa.Array:
    return _whole_microseconds(array)


def _whole_microseconds(nanoseconds: pa.Array) -> pa.Array:
    values = nanoseconds.fill_null(0).to_numpy(zero_copy_only=False)
    if np.any(values % 1000):
        raise ValueError("nanoseconds that are no whole microseconds")
    return pa.array(values // 1000, mask=nanoseconds.is_null().to_numpy(zero_copy_only=False))


def _time_iso(array: pa.Array, column: Column) -> pa.Array:
    clock = pc.binary_join_element_wise("1970-01-01T", pc.utf8_rtrim(array, characters="Z"), "")
    return clock.cast(_MICROSECONDS).cast(pa.int64())


def _geometry(array: pa.Array, column: Column) -> pa.Array:
    shapes = _bytes(pc.struct_field(array, "wkb"))
    if shapes.null_count != array.null_count:
        raise ValueError("a geometry without wkb")
    srids = pc.struct_field(array, "srid").fill_null(0).cast(pa.uint32()).to_numpy(zero_copy_only=False)
    prefixes = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(4), len(srids), [None, pa.py_buffer(srids.astype("<u4").tobytes())]
    )
    return pc.binary_join_element_wise(prefixes.cast(pa.binary()), shapes, b"")


def _options(array: pa.Array, column: Column) -> pa.Array:
    kind = parse_type(column.mysql_type)
    true_form = {option.replace(",", "\\,"): option for option in kind.options}
    true_form |= dict(zip(kind.streamed, kind.options, strict=True))
    return _replaced(array, kind, true_form)


def _replaced(array: pa.Array, kind: MysqlType, true_form: Mapping[str, str]) -> pa.Array:
    """Undo the connector's escapes: snapshots send the option itself, the binlog its escaped form."""
    coded = array.dictionary_encode()
    values = []
    for value in coded.dictionary.to_pylist():
        parts = value.split(",") if kind.base == "set" else [value]
        values.append(",".join(true_form.get(part, part) for part in parts))
    return pa.array(values, pa.string()).take(coded.indices)


WIRES: Mapping[str, Wire] = MappingProxyType(
    {
        "int": Wire(pa.int64(), (int,), _as_is),
        "uint64_wrapped": Wire(pa.int64(), (int,), _uint64_wrapped),
        "bool": Wire(pa.bool_(), (bool,), _as_is),
        "float32": Wire(pa.float32(), (int, float), _finite),
        "float64": Wire(pa.float64(), (int, float), _finite),
        "string": Wire(pa.string(), (str,), _as_is),
        "options": Wire(pa.string(), (str,), _options),
        "base64": Wire(pa.string(), (str,), _base64),
        "base64_url_safe": Wire(pa.string(), (str,), _base64_url_safe),
        "hex": Wire(pa.string(), (str,), _hex),
        "bits": Wire(pa.string(), (str,), _bits),
        "bits_big_endian": Wire(pa.string(), (str,), _bits_big_endian),
        "bits_any_order": Wire(pa.string(), (str,), _bits_any_order),
        "decimal_base64": Wire(pa.string(), (str,), _decimal_base64),
        "decimal_text": Wire(pa.string(), (str,), _decimal_cast),
        "decimal_number": Wire(_ANY_DECIMAL, (int, float), _decimal_cast),
        "decimal_variable": Wire(_SCALED, (dict,), _decimal_variable),
        "date_days": Wire(pa.int64(), (int,), _date_days),
        "date_iso": Wire(pa.string(), (str,), _date_iso),
        "epoch_ms": Wire(pa.int64(), (int,), _epoch_ms),
        "epoch_us": Wire(pa.int64(), (int,), _epoch_us),
        "epoch_ns": Wire(pa.int64(), (int,), _epoch_ns),
        "instant_iso": Wire(pa.string(), (str,), _as_is),
        "time_us": Wire(pa.int64(), (int,), _as_is),
        "time_ms": Wire(pa.int64(), (int,), _time_ms),
        "time_ns": Wire(pa.int64(), (int,), _time_ns),
        "time_iso": Wire(pa.string(), (str,), _time_iso),
        "geometry": Wire(_GEOMETRY, (dict,), _geometry),
        "int_text": Wire(pa.string(), (str,), text_wires.integers),
        "uint64_text": Wire(pa.string(), (str,), text_wires.unsigned),
        "uint64_number": Wire(pa.decimal128(20, 0), (int,), text_wires.unsigned),
        "decimal_exact": Wire(_EXACT, (int, float), _decimal_cast),
        DECIMAL_PLAIN: Wire(pa.string(), (str,), _decimal_plain),
        "float_text": Wire(pa.string(), (str,), text_wires.floats),
        "date_text": Wire(pa.string(), (str,), text_wires.dates),
        "datetime_text": Wire(pa.string(), (str,), text_wires.moments),
        "timestamp_text": Wire(pa.string(), (str,), text_wires.instants),
        "time_text": Wire(pa.string(), (str,), text_wires.clocks),
        "enum_place": Wire(pa.string(), (str,), text_wires.enum_options),
        "set_bits": Wire(pa.string(), (str,), text_wires.set_options),
        "set_list": Wire(pa.list_(pa.string()), (list,), text_wires.set_members),
        "bits_text": Wire(pa.string(), (str,), text_wires.bits),
        "bits_number": Wire(pa.uint64(), (int,), text_wires.bits),
        "latin1": Wire(pa.string(), (str,), text_wires.latin1),
        "base64_filled": Wire(pa.string(), (str,), text_wires.filled_base64),
        "wkt": Wire(pa.string(), (str,), text_wires.shapes),
        NULL_ALONE: Wire(pa.null(), (), _as_is),
        "moment_iso": Wire(pa.string(), (str,), text_wires.iso_moments),
        JSON_TEXT: Wire(pa.string(), (str,), _as_is),
        TEXT_OR_JSON: Wire(pa.string(), (str,), text_wires.text_or_json),
    }
)
