"""MySQL types: values of each, and how Debezium, Canal, Maxwell and the lake write one."""

from __future__ import annotations

import base64
import datetime as dt
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

#: The time zone of Canal's session, and that of Maxwell's.
CANAL_ZONE, MAXWELL_ZONE = "Asia/Shanghai", "UTC"
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a time of MySQL has no zone
_TEXTS = (
    "",
    "a",
    "A",
    "a,b:c",
    "null",
    "NULL",
    "é",
    "漢字",
    "🧪 x",
    'q"\\',
    "line\nend",
    "\x00",
    " ",
    "\u2028",
    "/",
    "%2F",
)
_BYTES = (b"", b"\x00", b"a", b"\xff\x00\x80", b"\xc3\xa9", b"ab\x00\x00", b'"\\')
#: Decimals of more digits than Python computes with by itself.
WIDE = Context(prec=80)
#: A date with zeros, which no calendar has.
ZERO = "zero"


@dataclass(frozen=True)
class Kind:
    """A type: its values in each form. ``named``: Maxwell's name and facts of it."""

    mysql: str
    draw: Callable[[random.Random], Any]
    debezium: Callable[[Any], Any]
    canal: Callable[[Any], str]
    maxwell: Callable[[Any], Any]
    lake: Callable[[Any], Any]
    named: dict[str, Any]


def _same(value: Any) -> Any:  # noqa: ANN401 - any value
    return value


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(str(value).encode())


def _b64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _unscaled(value: Decimal, scale: int) -> str:
    number = int(value.scaleb(scale, WIDE))
    return _b64(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True))


def _micros(value: dt.datetime) -> int:
    return (value - _EPOCH) // dt.timedelta(microseconds=1)


def _clock(micros: int) -> str:
    seconds, rest = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}"


def _moment(value: dt.datetime | str, digits: int) -> str:
    if isinstance(value, str):
        return "0000-00-00 00:00:00" + ("." + "0" * digits if digits else "")
    text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
    return text[: len(text) - (6 - digits)] if digits else text[:-7]


def _in(zone: str, value: dt.datetime | str, digits: int) -> str:
    if isinstance(value, str):
        return _moment(value, digits)
    return _moment(value.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)), digits)


def _iso(value: dt.datetime) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"


def _unless_zero(form: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value == ZERO else form(value)


def _time(digits: int) -> Callable[[random.Random], dt.datetime]:
    def draw(dice: random.Random) -> dt.datetime:
        fraction = dice.choice([0, 0, 1, 10**digits - 1]) * 10 ** (6 - digits) if digits else 0
        day = dt.timedelta(days=dice.choice([10_594, 19_783, 25_000]), hours=dice.randrange(24), seconds=306)
        return _EPOCH + day + dt.timedelta(microseconds=fraction)

    return draw


def _with_zero(draw: Callable[[random.Random], Any]) -> Callable[[random.Random], Any]:
    return lambda dice: ZERO if dice.random() < 0.15 else draw(dice)


def _utc(value: dt.datetime) -> dt.datetime:
    return value.replace(tzinfo=dt.UTC)


_DAYS = (dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(9999, 12, 31))
_ENUM, _SET = ("new", "it's", "é"), ("a", "b", "c")
_JSON = ('{"a": 1}', "[]", '"text"', "1.10", '{"k": [null, "é"]}')


def _decimal(digits: int, scale: int) -> Kind:
    def draw(dice: random.Random) -> Decimal:
        whole = dice.choice([0, 1, -1, 10**digits - 1, 1 - 10**digits, dice.randrange(10**digits)])
        return Decimal(whole).scaleb(-scale, WIDE)

    mysql = f"decimal({digits},{scale})"
    return Kind(mysql, draw, lambda v: _unscaled(v, scale), lambda v: f"{v:f}", _raw, _same, {"type": "decimal"})


KINDS: dict[str, Kind] = {
    kind.mysql: kind
    for kind in (
        Kind("int", lambda d: d.randrange(-5, 5), _same, str, _same, _same, {"type": "int", "signed": True}),
        Kind("tinyint(1)", lambda d: d.randrange(2), _same, str, _same, _same, {"type": "tinyint", "signed": True}),
        Kind(
            "bigint unsigned",
            lambda d: d.choice([0, 1, 2**63 - 1, 2**63, 2**64 - 1]),
            lambda v: v - 2**64 if v >= 2**63 else v,
            str,
            _same,
            Decimal,
            {"type": "bigint", "signed": False},
        ),
        _decimal(12, 3),
        _decimal(38, 10),
        Kind("double", lambda d: d.choice([0.0, 0.1, -1.5, 1e300]), _same, repr, _same, _same, {"type": "double"}),
        Kind(
            "varchar(40)",
            lambda d: d.choice(_TEXTS),
            _same,
            _same,
            _same,
            _same,
            {"type": "varchar", "charset": "utf8mb4"},
        ),
        Kind("text", lambda d: d.choice(_TEXTS), _same, _same, _same, _same, {"type": "text", "charset": "utf8mb4"}),
        Kind(
            "varbinary(9)",
            lambda d: d.choice(_BYTES),
            _b64,
            lambda v: v.decode("latin-1"),
            _b64,
            _same,
            {"type": "varbinary"},
        ),
        Kind(
            "binary(4)",
            lambda d: d.choice(_BYTES)[:4],
            lambda v: _b64(v.ljust(4, b"\0")),
            lambda v: v.rstrip(b"\0").decode("latin-1"),
            lambda v: _b64(v.rstrip(b"\0")),
            lambda v: v.ljust(4, b"\0"),
            {"type": "binary"},
        ),
        Kind(
            "date",
            _with_zero(lambda d: d.choice(_DAYS)),
            _unless_zero(lambda v: (v - dt.date(1970, 1, 1)).days),
            lambda v: "0000-00-00" if v == ZERO else str(v),
            lambda v: "0000-00-00" if v == ZERO else str(v),
            _unless_zero(_same),
            {"type": "date"},
        ),
        Kind(
            "datetime(3)",
            _with_zero(_time(3)),
            _unless_zero(lambda v: _micros(v) // 1000),
            lambda v: _moment(v, 3),
            lambda v: _moment(v, 3),
            _unless_zero(_utc),
            {"type": "datetime", "column-length": 3},
        ),
        Kind(
            "timestamp(6)",
            _with_zero(_time(6)),
            _unless_zero(_iso),
            lambda v: _in(CANAL_ZONE, v, 6),
            lambda v: _in(MAXWELL_ZONE, v, 6),
            _unless_zero(_utc),
            {"type": "timestamp", "column-length": 6},
        ),
        Kind(
            "time(6)",
            lambda d: d.choice([0, 1, 86_399_999_999, d.randrange(86_400_000_000)]),
            _same,
            _clock,
            _clock,
            _same,
            {"type": "time", "column-length": 6},
        ),
        Kind("year", lambda d: d.choice([1901, 2024, 2155]), _same, str, _same, _same, {"type": "year"}),
        Kind("json", lambda d: d.choice(_JSON), _same, _same, _raw, _same, {"type": "json"}),
        Kind(
            "enum('new','it''s','é')",
            lambda d: d.choice(_ENUM),
            _same,
            lambda v: str(_ENUM.index(v) + 1),
            _same,
            _same,
            {"type": "enum", "enum-values": list(_ENUM)},
        ),
        Kind(
            "set('a','b','c')",
            lambda d: tuple(sorted(d.sample(_SET, d.randrange(4)))),
            ",".join,
            lambda v: str(sum(1 << _SET.index(one) for one in v)),
            list,
            ",".join,
            {"type": "set", "enum-values": list(_SET)},
        ),
        Kind("bit(1)", lambda d: d.randrange(2), bool, str, _same, bool, {"type": "bit"}),
        Kind(
            "bit(9)",
            lambda d: d.choice([0, 1, 256, 511]),
            lambda v: _b64(v.to_bytes(2, "little")),
            str,
            _same,
            lambda v: v.to_bytes(2, "big"),
            {"type": "bit"},
        ),
    )
}


def typed_json(value: object) -> bytes:
    """JSON with raw values as they are."""
    return msgspec.json.encode(value)


def escaped(value: object) -> bytes:
    """JSON with every character beyond ASCII escaped."""
    return json.dumps(json.loads(msgspec.json.encode(value)), separators=(",", ":")).encode()
