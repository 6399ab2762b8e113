"""Each MySQL type in each way the connector writes it: the exact value or quarantine."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import DecodedRecords
from binlake.decode.schemas.schemas import NoSchemas, SchemaHistory, SchemaVersion
from binlake.decode.types.mysql_types import parse_type
from tests.binlake.decode.events import T, cells, declared, decoded, framed, raw_envelope, reasons

UTC = dt.UTC


def of_column(kind: str, *values: str, **options: Any) -> DecodedRecords:  # noqa: ANN401 - those of DecodeOptions
    """The values (JSON text) as a column ``v`` of the type, each in a message of its own."""
    messages: list[bytes | None] = [raw_envelope(b'{"id":1,"v":%s}' % value.encode()) for value in values]
    return decoded(messages, declared({"id": "int", "v": kind}, ("id",)), **options)


def unscaled(number: int) -> str:
    """As Connect writes a Decimal."""
    size = (number.bit_length() + 8) // 8
    return f'"{base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()}"'


EXACT: list[tuple[str, str, Any]] = [
    ("tinyint", "-128", -128),
    ("tinyint unsigned", "255", 255),
    ("tinyint(1)", "1", 1),
    ("tinyint(1)", "127", 127),
    ("smallint unsigned zerofill", "65535", 65535),
    ("mediumint", "-8388608", -8388608),
    ("int", "2147483647", 2147483647),
    ("int unsigned", "4294967295", 4294967295),
    ("bigint", "-9223372036854775808", -(2**63)),
    ("bigint", "9007199254740993", 2**53 + 1),
    ("bigint unsigned", "9223372036854775807", Decimal(2**63 - 1)),
    ("bigint unsigned", "-9223372036854775808", Decimal(2**63)),
    ("bigint unsigned", "-1", Decimal(2**64 - 1)),
    ("serial", "-1", Decimal(2**64 - 1)),
    ("bool", "true", 1),
    ("bool", "0", 0),
    ("tinyint(1)", "true", 1),
    ("tinyint(1)", "false", 0),
    ("bit(1)", "true", True),
    ("bit", "false", False),
    ("bit(10)", '"AQI="', b"\x02\x01"),
    ("bit(10)", '"AQ=="', b"\x00\x01"),
    ("bit(8)", '"/w=="', b"\xff"),
    ("bit(64)", '"AQIDBAUGB4A="', b"\x80\x07\x06\x05\x04\x03\x02\x01"),
    ("year", "2155", 2155),
    ("float", "3.4028235E38", 3.4028234663852886e38),
    ("float", "0.1", 0.10000000149011612),
    ("float", "16777217", 16777216.0),
    ("double", "1.7976931348623157E308", 1.7976931348623157e308),
    ("double", "5E-324", 5e-324),
    ("double", "3", 3.0),
    ("date", "0", dt.date(1970, 1, 1)),
    ("date", "-719162", dt.date(1, 1, 1)),
    ("date", "2932896", dt.date(9999, 12, 31)),
    ("datetime", "1709208000000", dt.datetime(2024, 2, 29, 12, tzinfo=UTC)),
    ("datetime(3)", "-62135596800000", dt.datetime(1, 1, 1, tzinfo=UTC)),
    ("datetime(4)", "1709208000123400", dt.datetime(2024, 2, 29, 12, 0, 0, 123400, tzinfo=UTC)),
    ("datetime(6)", "253402300799999999", dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ("timestamp", '"2024-03-31T01:30:00Z"', dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC)),
    ("timestamp(6)", '"2024-11-03T05:59:59.999999Z"', dt.datetime(2024, 11, 3, 5, 59, 59, 999999, tzinfo=UTC)),
    ("timestamp(3)", '"2024-11-03T06:00:00.1Z"', dt.datetime(2024, 11, 3, 6, 0, 0, 100000, tzinfo=UTC)),
    ("timestamp", '"2024-02-29T12:00:00+02:00"', dt.datetime(2024, 2, 29, 10, tzinfo=UTC)),
    ("time", "-3020399000000", -3020399000000),
    ("time(6)", "3020399999999", 3020399999999),
    ("char(3)", '""', ""),
    ("varchar(9)", '"\\u0000\\ud83e\\uddea\\"\\\\"', '\x00🧪"\\'),
    ("longtext", '"null"', "null"),
    ("json", '"{\\"a\\": [1, \\"\\\\\\"\\"]}"', '{"a": [1, "\\""]}'),
    ("enum('a','b,c')", '"b,c"', "b,c"),
    ("enum('a','b,c')", '"b\\\\,c"', "b,c"),
    ("enum('it''s','x')", '"it\'s"', "it's"),
    ("set('a','b')", '"a,b"', "a,b"),
    ("set('a','b\\\\c')", '"a,b\\\\\\\\c"', "a,b\\c"),
    ("binary(4)", '"AAAAAA=="', b"\0\0\0\0"),
    ("varbinary(4)", '""', b""),
    ("blob", '"//79/A=="', b"\xff\xfe\xfd\xfc"),
    ("char(4) character set binary", '"AAE="', b"\x00\x01"),
    ("point", '{"x":1.0,"y":2.0,"wkb":"AQEC","srid":null}', b"\0\0\0\0\x01\x01\x02"),
    ("geometry", '{"wkb":"AQEC","srid":4326}', b"\xe6\x10\0\0\x01\x01\x02"),
    ("decimal(10,2)", '"AZA="', Decimal("4.00")),
    ("decimal(10,2)", '"/w=="', Decimal("-0.01")),
    ("decimal(10,0)", '"AA=="', Decimal(0)),
    ("decimal(38,10)", unscaled(10**38 - 1), Decimal(f"{10**38 - 1}E-10")),
    ("decimal(38,0)", unscaled(-(10**38) + 1), Decimal(-(10**38) + 1)),
    ("decimal(19,4)", unscaled(-(2**63)), Decimal(f"{-(2**63)}E-4")),
    ("decimal(20,4)", unscaled(2**63), Decimal(f"{2**63}E-4")),
    ("numeric", unscaled(-9999999999), Decimal(-9999999999)),
    ("decimal(65,30)", unscaled(10**65 - 1), "9" * 35 + "." + "9" * 30),
    ("decimal(65,30)", unscaled(-1), "-0." + "0" * 29 + "1"),
    ("decimal(65,0)", unscaled(-(10**65) + 1), "-" + "9" * 65),
    ("decimal(40,2)", unscaled(100), "1.00"),
    ("uuid", '"123e4567-e89b-12d3-a456-426655440000"', "123e4567-e89b-12d3-a456-426655440000"),
    ("inet6", '"::1"', "::1"),
]


@pytest.mark.parametrize(("kind", "text", "value"), EXACT, ids=lambda x: str(x)[:40])
def test_exact(kind: str, text: str, value: object) -> None:
    found = of_column(kind, "null", text, "null", text)
    assert not found.quarantined
    assert cells(found, "v") == [None, value, None, value]


@pytest.mark.first(66)
@pytest.mark.parametrize(("kind", "text", "value"), EXACT, ids=lambda x: str(x)[:40])
def test_one_bad_value_leaves_its_neighbours(kind: str, text: str, value: object) -> None:
    found = of_column(kind, text, '{"no":1}', text)
    assert reasons(found) == {1: "bad_value"}
    assert cells(found, "v") == [value, value]


IN_MODES: list[tuple[dict[str, str], str, str, Any]] = [
    ({"decimal_handling_mode": "string"}, "decimal(10,2)", '"-12.50"', Decimal("-12.50")),
    ({"decimal_handling_mode": "string"}, "decimal(10,2)", '"12"', Decimal("12.00")),
    ({"decimal_handling_mode": "string"}, "decimal(10,6)", '"0E-6"', Decimal("0.000000")),
    ({"decimal_handling_mode": "string"}, "decimal(65,30)", f'"{"9" * 35}.{"9" * 30}"', "9" * 35 + "." + "9" * 30),
    ({"decimal_handling_mode": "double"}, "decimal(10,2)", "-12.5", Decimal("-12.50")),
    ({"decimal_handling_mode": "double"}, "decimal(10,0)", "100.0", Decimal(100)),
    ({"decimal_handling_mode": "double"}, "decimal(12,2)", "1.2345678E7", Decimal("12345678.00")),
    ({"decimal_handling_mode": "double"}, "decimal(10,8)", "1.0E-7", Decimal("0.00000010")),
    ({"decimal_handling_mode": "double"}, "decimal(10,2)", "-0.0", Decimal("0.00")),
    ({"decimal_handling_mode": "double"}, "decimal(50,20)", "1.0E25", "1" + "0" * 25 + "." + "0" * 20),
    ({"bigint_unsigned_handling_mode": "precise"}, "bigint unsigned", unscaled(2**64 - 1), Decimal(2**64 - 1)),
    ({"bigint_unsigned_handling_mode": "precise"}, "bigint unsigned", "-1", Decimal(2**64 - 1)),
    ({"binary_handling_mode": "base64"}, "blob", '"+/8="', b"\xfb\xff"),
    ({"binary_handling_mode": "base64-url-safe"}, "blob", '"-_8="', b"\xfb\xff"),
    ({"binary_handling_mode": "hex"}, "blob", '"00fBff"', b"\x00\xfb\xff"),
    ({"time_precision_mode": "adaptive"}, "time(3)", "-1500", -1_500_000),
    ({"time_precision_mode": "adaptive"}, "time(6)", "-1500", -1500),
    ({"time_precision_mode": "connect"}, "time", "86399999", 86_399_999_000),
    ({"time_precision_mode": "connect"}, "datetime(6)", "1", dt.datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)),
    ({"time_precision_mode": "connect"}, "date", "1", dt.date(1970, 1, 2)),
    ({"time_precision_mode": "isostring"}, "date", '"2024-02-29Z"', dt.date(2024, 2, 29)),
    ({"time_precision_mode": "isostring"}, "time(3)", '"23:59:59.123Z"', 86_399_123_000),
    ({"time_precision_mode": "isostring"}, "time", '"00:00:01Z"', 1_000_000),
    ({"time_precision_mode": "isostring"}, "datetime", '"0001-01-01T00:00:00Z"', dt.datetime(1, 1, 1, tzinfo=UTC)),
    ({"time_precision_mode": "microseconds"}, "datetime", "1", dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
    ({"time_precision_mode": "nanoseconds"}, "datetime", "-1000", dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
    ({"time_precision_mode": "nanoseconds"}, "time", "-1000", -1),
]


@pytest.mark.parametrize(("mode", "kind", "text", "value"), IN_MODES, ids=lambda x: str(x)[:40])
def test_exact_in_other_modes(mode: dict[str, str], kind: str, text: str, value: object) -> None:
    found = of_column(kind, text, "null", text, **mode)
    assert not found.quarantined
    assert cells(found, "v") == [value, None, value]


NOT_EXACT: list[tuple[dict[str, str], str, str]] = [
    ({}, "decimal(5,2)", unscaled(100_000)),
    ({}, "decimal(65,30)", unscaled(10**65)),
    ({}, "decimal(10,2)", "12.5"),
    ({"decimal_handling_mode": "string"}, "decimal(10,2)", '"1.005"'),
    ({"decimal_handling_mode": "string"}, "decimal(5,2)", '"1000.00"'),
    ({"decimal_handling_mode": "string"}, "decimal(5,2)", '"NaN"'),
    ({"decimal_handling_mode": "string"}, "decimal(5,2)", '" 1"'),
    ({"decimal_handling_mode": "double"}, "decimal(10,2)", "0.30000000000000004"),
    ({"decimal_handling_mode": "double"}, "decimal(5,2)", "1.0E3"),
    ({"bigint_unsigned_handling_mode": "precise"}, "bigint unsigned", unscaled(10**20)),
    ({}, "bigint unsigned", '"AQ=="'),
    ({}, "bigint unsigned", "18446744073709551615"),
    ({}, "float", "1e39"),
    ({}, "bit(10)", '"AQQ="'),
    ({}, "bit(10)", '"AQEB"'),
    ({}, "datetime", "9223372036854775807"),
    ({}, "date", "99999999999"),
    ({}, "timestamp", '"0000-00-00T00:00:00Z"'),
    ({}, "timestamp", '"2024-02-30T00:00:00Z"'),
    ({}, "timestamp", '"2024-02-29T00:00:00"'),
    ({}, "timestamp", '"2024-02-29T00:00:00.1234567Z"'),
    ({"time_precision_mode": "nanoseconds"}, "time", "1"),
    ({"time_precision_mode": "isostring"}, "time", '"24:00:00Z"'),
    ({"time_precision_mode": "isostring"}, "date", '"2023-02-29Z"'),
    ({"binary_handling_mode": "hex"}, "blob", '"0g"'),
    ({"binary_handling_mode": "hex"}, "blob", '"000"'),
    ({}, "geometry", '{"wkb":"AQEC","srid":-1}'),
    ({}, "year", "2147483648"),
]


@pytest.mark.parametrize(("mode", "kind", "text"), NOT_EXACT, ids=lambda x: str(x)[:40])
def test_what_cannot_be_exact_is_quarantined(mode: dict[str, str], kind: str, text: str) -> None:
    found = of_column(kind, "null", text, "null", **mode)
    assert reasons(found) == {1: "bad_value"}
    assert cells(found, "v") == [None, None]


def test_booleans_and_numbers_mixed_in_one_chunk() -> None:
    found = of_column("tinyint(1)", "1", "true", "null", "5", "false")
    assert cells(found, "v") == [1, 1, None, 5, 0]


@pytest.mark.parametrize("length", range(1, 17))
def test_decimals_of_every_byte_length(length: int) -> None:
    ends = [2 ** (8 * length - 1) - 1, -(2 ** (8 * length - 1)), 2 ** (8 * length - 9) if length > 1 else 1, 0, -1]
    fitting = [n for n in ends if abs(n) < 10**38]
    found = of_column("decimal(38,3)", *map(unscaled, fitting))
    assert cells(found, "v") == [Decimal(f"{n}E-3") for n in fitting]


def test_sign_bytes_more_than_needed_are_no_error() -> None:
    wide = '"{}"'.format(base64.b64encode((-5).to_bytes(16, "big", signed=True)).decode())
    assert cells(of_column("decimal(5,1)", wide, wide.replace("/", "/")), "v") == [Decimal("-0.5")] * 2


CONNECT: list[tuple[dict[str, Any], str, Any, pa.DataType]] = [
    ({"type": "int8"}, "-1", -1, pa.int32()),
    ({"type": "int16"}, "-1", -1, pa.int32()),
    ({"type": "int32"}, "-1", -1, pa.int32()),
    ({"type": "int64"}, "-1", -1, pa.int64()),
    ({"type": "float"}, "0.5", 0.5, pa.float32()),
    ({"type": "double"}, "0.1", 0.1, pa.float64()),
    ({"type": "boolean"}, "true", True, pa.bool_()),
    ({"type": "string"}, '"x"', "x", pa.string()),
    ({"type": "bytes"}, '"AQ=="', b"\x01", pa.binary()),
    (
        {
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2", "connect.decimal.precision": "12"},
        },
        '"AZA="',
        Decimal("4.00"),
        pa.decimal128(12, 2),
    ),
    (
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
        '"AZA="',
        Decimal("4.00"),
        pa.decimal128(38, 2),
    ),
    (
        {
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "0", "connect.decimal.precision": "65"},
        },
        unscaled(10**64),
        "1" + "0" * 64,
        pa.string(),
    ),
    (
        {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
        '{"scale":3,"value":"AZA="}',
        "0.400",
        pa.string(),
    ),
    (
        {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
        f'{{"scale":-2,"value":{unscaled(-(10**40) - 7)}}}',
        f"-1{'0' * 39}700",
        pa.string(),
    ),
    (
        {"type": "bytes", "name": "io.debezium.data.Bits", "parameters": {"length": "10"}},
        '"AQI="',
        b"\2\1",
        pa.binary(),
    ),
    (
        {"type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "a,b\\,c"}},
        '"b\\\\,c"',
        "b,c",
        pa.string(),
    ),
    (
        {"type": "string", "name": "io.debezium.data.EnumSet", "parameters": {"allowed": "a,b"}},
        '"a,b"',
        "a,b",
        pa.string(),
    ),
    ({"type": "string", "name": "io.debezium.data.Json"}, '"{}"', "{}", pa.string()),
    (
        {"type": "struct", "name": "io.debezium.data.geometry.Geometry"},
        '{"wkb":"AQ==","srid":1}',
        b"\1\0\0\0\1",
        pa.binary(),
    ),
    ({"type": "int32", "name": "io.debezium.time.Year"}, "2024", 2024, pa.int32()),
    ({"type": "int32", "name": "io.debezium.time.Date"}, "1", dt.date(1970, 1, 2), pa.date32()),
    ({"type": "string", "name": "io.debezium.time.IsoDate"}, '"1970-01-02Z"', dt.date(1970, 1, 2), pa.date32()),
    ({"type": "int32", "name": "org.apache.kafka.connect.data.Date"}, "1", dt.date(1970, 1, 2), pa.date32()),
    ({"type": "int32", "name": "io.debezium.time.Time"}, "1", 1000, pa.int64()),
    ({"type": "int64", "name": "io.debezium.time.MicroTime"}, "1", 1, pa.int64()),
    ({"type": "int64", "name": "io.debezium.time.NanoTime"}, "1000", 1, pa.int64()),
    ({"type": "string", "name": "io.debezium.time.IsoTime"}, '"00:00:00.5Z"', 500_000, pa.int64()),
    (
        {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        '"1970-01-01T00:00:00Z"',
        dt.datetime(1970, 1, 1, tzinfo=UTC),
        pa.timestamp("us", tz="UTC"),
    ),
    (
        {"type": "int64", "name": "io.debezium.time.NanoTimestamp"},
        "1000",
        dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        pa.timestamp("us", tz="UTC"),
    ),
    (
        {"type": "int64", "parameters": {"__debezium.source.column.type": "BIGINT UNSIGNED"}},
        "-1",
        Decimal(2**64 - 1),
        pa.decimal128(20, 0),
    ),
    (
        {
            "type": "string",
            "parameters": {
                "__debezium.source.column.type": "DECIMAL",
                "__debezium.source.column.length": "5",
                "__debezium.source.column.scale": "2",
            },
        },
        '"1.5"',
        Decimal("1.50"),
        pa.decimal128(5, 2),
    ),
]


def connect_schema(field: dict[str, Any]) -> dict[str, Any]:
    fields = [{"type": "int32", "field": "id"}, {"field": "v", "optional": True} | field]
    row = {"type": "struct", "fields": fields, "optional": True}
    return {"type": "struct", "fields": [row | {"field": "after"}, {"type": "string", "field": "op"}]}


@pytest.mark.parametrize(("field", "text", "value", "lake_type"), CONNECT, ids=lambda x: str(x)[:60])
def test_by_the_embedded_schema(field: dict[str, Any], text: str, value: object, lake_type: pa.DataType) -> None:
    message = framed(raw_envelope(b'{"id":1,"v":%s}' % text.encode()), connect_schema(field))
    null = framed(raw_envelope(b'{"id":1,"v":null}'), connect_schema(field))
    found = decoded([message, null], NoSchemas())
    assert not found.quarantined
    assert cells(found, "v") == [value, None]
    assert found.changes[0].rows.schema.field("v").type == lake_type


def test_mysql_types_refine_the_embedded_schema() -> None:
    hints = declared({"id": "int", "v": "bigint unsigned"})
    message = framed(raw_envelope(b'{"id":1,"v":-1}'), connect_schema({"type": "int64"}))
    assert cells(decoded([message], hints), "v") == [Decimal(2**64 - 1)]


def test_hints_hold_where_no_version_is_in_force() -> None:
    """A table's types must not change because its DDL record is younger than its rows."""
    history = SchemaHistory(
        {T: [SchemaVersion(1 << 40, (("v", parse_type(kind)),)) for kind in ("bigint unsigned", "int")]}
    )
    message = framed(raw_envelope(b'{"id":1,"v":-1}'), connect_schema({"type": "int64"}))
    assert cells(decoded([message], history), "v") == [Decimal(2**64 - 1)]


def test_an_unknown_connect_type_is_named() -> None:
    message = framed(raw_envelope(b'{"id":1,"v":[1]}'), connect_schema({"type": "array", "items": {"type": "int32"}}))
    found = decoded([message], NoSchemas())
    assert reasons(found) == {0: "unsupported_type"}
    assert "'v'" in found.quarantined[0].detail


def test_the_schema_may_change_within_a_chunk() -> None:
    values: list[bytes | None] = []
    for i in range(6):
        field = {"type": "int64"} if i % 2 else {"type": "string"}
        text = str(i) if i % 2 else f'"{i}"'
        values.append(framed(raw_envelope(b'{"id":1,"v":%s}' % text.encode()), connect_schema(field)))
    found = decoded(values, NoSchemas())
    assert len(found.changes) == 2
    assert cells(found, "v") == ["0", 1, "2", 3, "4", 5]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_frame_in_another_layout(indent: int | None) -> None:
    payload = json.loads(raw_envelope(b'{"id":1,"v":7}'))
    message = json.dumps({"payload": payload, "schema": connect_schema({"type": "int32"})}, indent=indent).encode()
    ordinary = framed(raw_envelope(b'{"id":1,"v":8}'), connect_schema({"type": "int32"}))
    assert cells(decoded([ordinary, message, ordinary], NoSchemas()), "v") == [8, 7, 8]


def test_a_frame_with_a_default_that_looks_like_its_end() -> None:
    field = {"type": "string", "default": '"},"payload":{"op":"d"'}
    message = framed(raw_envelope(b'{"id":1,"v":"x"}'), connect_schema(field))
    assert cells(decoded([message, message], NoSchemas()), "v") == ["x", "x"]
