"""The live generator's forms of a column: in Debezium's JSON, and as the server's text."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from demo.truth import Cell, TruthColumn

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - DATETIME has no zone; its digits are taken as they stand


#: MySQL's widest DECIMAL; Python's default context would round at 28 digits.
WIDE = Context(prec=65)


@dataclass(frozen=True)
class LiveColumn:
    """A column: its MySQL type, its form in Debezium's JSON (default settings), and its form in ``SELECT *``."""

    name: str
    type: str
    wire: Callable[[Any], Any]
    text: Callable[[Any], Cell]

    def truth(self) -> TruthColumn:
        """The column for the verdict."""
        return TruthColumn(self.name, self.type)


def bigint_unsigned(name: str) -> LiveColumn:
    """int; sent as a signed 64-bit number that wraps."""
    return LiveColumn(name, "bigint(20) unsigned", lambda v: v - (1 << 64) if v >= 1 << 63 else v, str)


def integer(name: str) -> LiveColumn:
    """int."""
    return LiveColumn(name, "int(11)", int, str)


def decimal(name: str, precision: int, scale: int) -> LiveColumn:
    """Decimal; sent as base64 of the unscaled number."""
    return LiveColumn(name, f"decimal({precision},{scale})", lambda v: _unscaled(v, scale), lambda v: f"{v:.{scale}f}")


def _unscaled(value: Decimal, scale: int) -> str:
    number = int(value.scaleb(scale, WIDE))
    length = (number + (number < 0)).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(length, "big", signed=True)).decode()


def text(name: str, kind: str) -> LiveColumn:
    """str."""
    return LiveColumn(name, kind, str, str)


def document(name: str) -> LiveColumn:
    """A JSON column: any JSON value, stored in MySQL's output form."""
    return LiveColumn(name, "json", _print_json, _print_json)


def _print_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return json.dumps(value, ensure_ascii=False)


def double(name: str) -> LiveColumn:
    """float."""
    return LiveColumn(name, "double", float, repr)


def bit(name: str) -> LiveColumn:
    """bool, as BIT(1)."""
    return LiveColumn(name, "bit(1)", bool, lambda v: b"\x01" if v else b"\x00")


def blob(name: str) -> LiveColumn:
    """bytes; sent as base64."""
    return LiveColumn(name, "blob", lambda v: base64.b64encode(v).decode(), bytes)


def day(name: str) -> LiveColumn:
    """date; sent as days since the epoch."""
    return LiveColumn(name, "date", lambda v: v.toordinal() - date(1970, 1, 1).toordinal(), lambda v: v.isoformat())


def datetime6(name: str) -> LiveColumn:
    """Naive datetime; sent as microseconds since the epoch as if UTC."""
    return LiveColumn(name, "datetime(6)", lambda v: (v - _EPOCH) // timedelta(microseconds=1), _moment)


def timestamp6(name: str) -> LiveColumn:
    """Naive datetime in UTC; sent as ISO text without a fraction of zero."""
    return LiveColumn(name, "timestamp(6)", lambda v: v.isoformat().rstrip("0" if v.microsecond else "") + "Z", _moment)


def _moment(value: datetime) -> str:
    return value.isoformat(sep=" ", timespec="microseconds")


def time3(name: str) -> LiveColumn:
    """timedelta in whole milliseconds, also negative and beyond a day; sent as microseconds."""
    return LiveColumn(name, "time(3)", lambda v: v // timedelta(microseconds=1), _clock_time)


def _clock_time(value: timedelta) -> str:
    millis = abs(value) // timedelta(milliseconds=1)
    seconds, rest = divmod(millis, 1000)
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{'-' if value < timedelta(0) else ''}{hours:02}:{minutes:02}:{seconds % 60:02}.{rest:03}"
