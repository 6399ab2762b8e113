"""The valid forms of a MySQL value, by format: ``bench.forms`` measures them and the tests guard them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench import form_values as make
from bench.form_values import Value

ABSENT = object()

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_NAME = "io.debezium.time."


@dataclass(frozen=True)
class Case:
    """One form of one type.

    Attributes:
        kind: the MySQL type.
        form: the form of the value.
        value: makes a JSON value from random numbers; ABSENT: the row lacks the column.
        connect: the field's Connect schema; None: the form does not occur with a schema.
        options: DecodeOptions that the form needs.
        update: the message is an update with a before image (Debezium) or with old values.
    """

    kind: str
    form: str
    value: Value
    connect: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    update: bool = False

    @property
    def name(self) -> str:
        """The type and the form."""
        return f"{self.kind}: {self.form}"

    @property
    def whole(self) -> bool:
        """Whether every column has a value in every row."""
        return not any(word in self.form for word in ("null", "absent", "noblob", "minimal"))


_INT: Mapping[str, Any] = {"type": "int32"}
_LONG: Mapping[str, Any] = {"type": "int64"}
_STRING: Mapping[str, Any] = {"type": "string"}
_BYTES: Mapping[str, Any] = {"type": "bytes"}
_DOUBLE: Mapping[str, Any] = {"type": "double"}
_BOOLEAN: Mapping[str, Any] = {"type": "boolean"}


def _logical(kind: str, name: str, **parameters: str) -> Mapping[str, Any]:
    return {"type": kind, "name": name, "parameters": parameters}


def _decimals(digits: int, scale: int) -> list[Case]:
    kind = f"decimal({digits},{scale})"
    schema = _logical("bytes", _DECIMAL, scale=str(scale), **{"connect.decimal.precision": str(digits)})
    whole = make.number(-(10 ** (digits - 1)), 10 ** (digits - 1))
    mode = "decimal_handling_mode"
    return [
        Case(kind, "base64", lambda dice: make.unscaled(whole(dice)), schema),
        Case(kind, "text", make.decimal_text(digits, scale), _STRING, {mode: "string"}),
        Case(kind, "double", make.hundredths, _DOUBLE, {mode: "double"}),
    ]


def _times(mode: str, kind: str, schema: str, value: Value, json_type: str = "int64") -> Case:
    return Case(kind, mode, value, _logical(json_type, schema), {"time_precision_mode": mode})


_ADAPTIVE, _MICRO, _CONNECT, _ISO = "adaptive", "adaptive_time_microseconds", "connect", "isostring"
_EXACT_MICRO, _NANO = "microseconds", "nanoseconds"
_KAFKA = "org.apache.kafka.connect.data."
_TIMES = [
    _times(_MICRO, "date", f"{_NAME}Date", make.number(0, 30_000), "int32"),
    _times(_CONNECT, "date", f"{_KAFKA}Date", make.number(0, 30_000), "int32"),
    _times(_ISO, "date", f"{_NAME}IsoDate", lambda dice: f"2026-11-{dice.randrange(1, 29):02d}Z", "string"),
    _times(_MICRO, "time(6)", f"{_NAME}MicroTime", make.number(0, 86_400_000_000)),
    _times(_ADAPTIVE, "time(3)", f"{_NAME}Time", make.number(0, 86_400_000), "int32"),
    _times(_CONNECT, "time(3)", f"{_KAFKA}Time", make.number(0, 86_400_000), "int32"),
    _times(_ISO, "time(6)", f"{_NAME}IsoTime", make.clock(6, "Z"), "string"),
    _times(_NANO, "time(6)", f"{_NAME}NanoTime", lambda dice: dice.randrange(86_400_000_000) * 1000),
    _times(_MICRO, "datetime(6)", f"{_NAME}MicroTimestamp", make.moment(10**6)),
    _times(_ADAPTIVE, "datetime(3)", f"{_NAME}Timestamp", make.moment(10**3)),
    _times(_CONNECT, "datetime(6)", f"{_KAFKA}Timestamp", make.moment(10**3)),
    _times(_EXACT_MICRO, "datetime(3)", f"{_NAME}MicroTimestamp", make.moment(10**6)),
    _times(_NANO, "datetime(6)", f"{_NAME}NanoTimestamp", lambda dice: make.moment(10**6)(dice) * 1000),
    _times(_ISO, "datetime(6)", f"{_NAME}IsoTimestamp", make.iso_moment(6), "string"),
    _times(_MICRO, "timestamp(6)", f"{_NAME}ZonedTimestamp", make.iso_moment(6), "string"),
    Case("timestamp", "with an offset", make.iso_moment(0, "+02:00"), _logical("string", f"{_NAME}ZonedTimestamp")),
    Case("year", "number", make.number(1970, 2100), _logical("int32", f"{_NAME}Year")),
]

_BINARY = "binary_handling_mode"
_OPTIONS = "enum('new','paid','a,b')"

DEBEZIUM: list[Case] = [
    Case("int", "number", make.number(0, 10**6), _INT),
    Case("int", "half are null", make.sometimes(make.number(0, 10**6), None), _INT),
    Case("int", "all are null", lambda dice: None, _INT),
    Case("int", "all are absent", lambda dice: ABSENT),
    Case("int", "half are absent", make.sometimes(make.number(0, 10**6), ABSENT)),
    Case("tinyint(1)", "number", make.number(0, 2), {"type": "int16"}),
    Case("tinyint(1)", "boolean", make.flag, _BOOLEAN),
    Case("tinyint(1)", "boolean or null", make.sometimes(make.flag, None), _BOOLEAN),
    Case("tinyint(1)", "number or boolean", make.one_of(0, 1, False, True)),
    Case("tinyint(1)", "one boolean in a thousand", make.sometimes(make.number(0, 2), True, 0.001)),
    Case("boolean", "number", make.number(0, 2), {"type": "int16"}),
    Case("boolean", "boolean", make.flag, _BOOLEAN),
    Case("bigint", "number", make.number(0, 10**15), _LONG),
    Case("bigint", "19 digits", make.number(10**18, 9 * 10**18), _LONG),
    Case(
        "bigint",
        "one of 19 digits in a thousand",
        make.sometimes(make.number(0, 10**15), 10**18, 0.001),
        _LONG,
    ),
    Case("bigint unsigned", "long", make.number(0, 10**15), _LONG),
    Case("bigint unsigned", "long, wrapped", make.number(-(10**15), 0), _LONG),
    Case("bigint unsigned", "long, wrapped, 19 digits", make.number(-(9 * 10**18), -(10**18)), _LONG),
    Case(
        "bigint unsigned",
        "precise",
        lambda dice: make.unscaled(dice.randrange(1 << 64)),
        _logical("bytes", _DECIMAL, scale="0", **{"connect.decimal.precision": "20"}),
        {"bigint_unsigned_handling_mode": "precise"},
    ),
    Case("serial", "long in precise", make.number(0, 10**9), None, {"bigint_unsigned_handling_mode": "precise"}),
    *_decimals(12, 2),
    *_decimals(38, 10),
    *_decimals(65, 30),
    Case("float", "number", make.eighths, {"type": "float"}),
    Case("double", "number", lambda dice: dice.random(), _DOUBLE),
    Case("double", "whole number", lambda dice: float(dice.randrange(10**6)), _DOUBLE),
    *_TIMES,
    Case("varchar(40)", "plain", make.note, _STRING),
    Case("varchar(40)", "beyond ASCII", lambda dice: f"nöté {dice.randrange(10**9)}", _STRING),
    Case("varchar(40)", "escaped", lambda dice: f'say "{dice.randrange(10**9)}"\n', _STRING),
    Case("json", "text", lambda dice: json.dumps(make.document(dice)), _logical("string", "io.debezium.data.Json")),
    Case(
        _OPTIONS,
        "text",
        make.one_of("new", "paid"),
        _logical("string", "io.debezium.data.Enum", allowed="new,paid"),
    ),
    Case(
        _OPTIONS,
        "with a comma",
        make.one_of("new", "paid", "a\\,b"),
        _logical("string", "io.debezium.data.Enum", allowed="new,paid,a\\,b"),
    ),
    Case(
        "set('a','b')",
        "text",
        make.one_of("", "a", "a,b"),
        _logical("string", "io.debezium.data.EnumSet", allowed="a,b"),
    ),
    Case("bit(1)", "boolean", make.flag, _BOOLEAN),
    Case(
        "bit(12)",
        "base64",
        lambda dice: base64.b64encode(dice.randrange(1 << 12).to_bytes(2, "little")).decode(),
        _logical("bytes", "io.debezium.data.Bits", length="12"),
    ),
    Case("varbinary(16)", "base64", make.base64_bytes, _BYTES, {_BINARY: "base64"}),
    Case(
        "varbinary(16)",
        "base64, url-safe",
        lambda dice: base64.urlsafe_b64encode(make.some_bytes(dice)).decode(),
        _STRING,
        {_BINARY: "base64-url-safe"},
    ),
    Case("varbinary(16)", "hex", lambda dice: make.some_bytes(dice).hex(), _STRING, {_BINARY: "hex"}),
    Case("point", "object", make.point, _logical("struct", "io.debezium.data.geometry.Point")),
    Case("blob", "noblob: one in ten there", make.sometimes(make.base64_bytes, ABSENT, 0.9), update=True),
    Case("int", "minimal: what changed", make.sometimes(make.number(0, 10**6), ABSENT, 0.75), update=True),
    Case("tinyint(1)", "minimal: booleans", make.sometimes(make.flag, ABSENT, 0.75), update=True),
]


def _as_text(value: Value) -> Value:
    return lambda dice: str(value(dice))


CANAL: list[Case] = [
    Case("int(11)", "text", _as_text(make.number(0, 10**6))),
    Case("int(11)", "half are null", make.sometimes(_as_text(make.number(0, 10**6)), None)),
    Case("int(11)", "half are absent", make.sometimes(_as_text(make.number(0, 10**6)), ABSENT)),
    Case("int(11)", "update", _as_text(make.number(0, 10**6)), update=True),
    Case("tinyint(1)", "text", make.one_of("0", "1")),
    Case("bigint(20)", "19 digits", _as_text(make.number(10**18, 9 * 10**18))),
    Case("bigint(20) unsigned", "text", _as_text(make.number(0, 1 << 64))),
    Case("decimal(12,2)", "text", make.decimal_text(12, 2)),
    Case("decimal(38,10)", "text", make.decimal_text(38, 10)),
    Case("decimal(65,30)", "text", make.decimal_text(65, 30)),
    Case("double", "text", lambda dice: repr(dice.random())),
    Case("date", "text", lambda dice: f"2026-11-{dice.randrange(1, 29):02d}"),
    Case("date", "half are zeros", make.sometimes(lambda dice: "2026-11-01", "0000-00-00")),
    Case("time(3)", "text", make.clock(3)),
    Case("datetime(6)", "text", make.spaced_moment(6)),
    Case("timestamp(6)", "text", make.spaced_moment(6)),
    Case("timestamp(6)", "text in a zone", make.spaced_moment(6), None, {"time_zone": "Europe/Berlin"}),
    Case("year(4)", "text", _as_text(make.number(1970, 2100))),
    Case("varchar(40)", "plain", make.note),
    Case("varchar(40)", "escaped", lambda dice: f'say "{dice.randrange(10**9)}"\n'),
    Case("json", "text", lambda dice: json.dumps(make.document(dice))),
    Case(_OPTIONS, "place", make.one_of("1", "2", "3")),
    Case(_OPTIONS, "text", make.one_of("new", "paid", "a,b")),
    Case("set('a','b')", "bits", make.one_of("0", "1", "3")),
    Case("set('a','b')", "text", make.one_of("a", "b", "a,b")),
    Case("bit(12)", "text", _as_text(make.number(0, 1 << 12))),
    Case("bit(1)", "text", make.one_of("0", "1")),
    Case("varbinary(16)", "ISO-8859-1", lambda dice: make.some_bytes(dice).decode("latin-1")),
    Case("binary(16)", "cut off at its zeros", lambda dice: dice.randbytes(12).decode("latin-1")),
    Case(
        "blob",
        "noblob: one in ten there",
        make.sometimes(lambda dice: make.some_bytes(dice).decode("latin-1"), ABSENT, 0.9),
    ),
    Case("point", "ISO-8859-1", lambda dice: (bytes(5) + dice.randbytes(20)).decode("latin-1")),
]

MAXWELL: list[Case] = [
    Case("int", "number", make.number(0, 10**6)),
    Case("int", "half are null", make.sometimes(make.number(0, 10**6), None)),
    Case("int", "half are absent", make.sometimes(make.number(0, 10**6), ABSENT)),
    Case("int", "update", make.number(0, 10**6), update=True),
    Case("tinyint(1)", "number", make.number(0, 2)),
    Case("tinyint(1)", "boolean", make.flag),
    Case("tinyint(1)", "number or boolean", make.one_of(0, 1, False, True)),
    Case("bigint", "19 digits", make.number(10**18, 9 * 10**18)),
    Case("bigint unsigned", "number", make.number(0, 1 << 64)),
    Case("decimal(12,2)", "number", make.hundredths),
    Case("decimal(65,30)", "number", make.hundredths),
    Case("float", "number", make.eighths),
    Case("double", "number", lambda dice: dice.random()),
    Case("date", "text", lambda dice: f"2026-11-{dice.randrange(1, 29):02d}"),
    Case("time(3)", "text", make.clock(3)),
    Case("datetime(6)", "text", make.spaced_moment(6)),
    Case("timestamp(6)", "text", make.spaced_moment(6)),
    Case("year", "number", make.number(1970, 2100)),
    Case("varchar(40)", "plain", make.note),
    Case("varchar(40)", "escaped", lambda dice: f'say "{dice.randrange(10**9)}"\n'),
    Case("json", "document", make.document),
    Case(_OPTIONS, "text", make.one_of("new", "paid", "a,b")),
    Case("set('a','b')", "list", make.one_of([], ["a"], ["a", "b"])),
    Case("bit(12)", "number", make.number(0, 1 << 12)),
    Case("bit(1)", "number", make.number(0, 2)),
    Case("bit(1)", "boolean", make.flag),
    Case("bit(1)", "number or boolean", make.one_of(0, 1, False, True)),
    Case("varbinary(16)", "base64", make.base64_bytes),
    Case("binary(16)", "cut off at its zeros", lambda dice: base64.b64encode(dice.randbytes(12)).decode()),
    Case("blob", "noblob: one in ten there", make.sometimes(make.base64_bytes, ABSENT, 0.9)),
    Case("point", "WKT", lambda dice: f"POINT ({dice.random()} {dice.random()})"),
    Case("linestring", "WKT", lambda dice: f"LINESTRING ({', '.join(['1.5 2'] * dice.randrange(2, 9))})"),
]
