"""Values of any type as text, and text as MySQL stores it: in the column's character set, cut to its length."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from binlake.decode.types.mysql_types import MysqlType
from binlake.schema.rules.conversion.declared import (
    TypeGroup,
    codec_of,
    kind_of,
    known_codec_of,
    size_in_bytes,
    zerofill_width,
)
from binlake.schema.rules.conversion.moments import DAY, SECOND, ymd

#: Digits of a number before or after the point up to which it is printed without an exponent.
_PLAIN_DIGITS = 15
_FLOAT_DIGITS = 6
#: A byte that is no part of a character, as Python's ``surrogateescape`` shows it.
_NO_CHARACTER = re.compile("[\udc80-\udcff]")
_INTEGER = re.compile(r"\s*([+-]?\d+)", re.ASCII)


def text_of(kind: MysqlType, value: Any) -> str:  # noqa: ANN401 - any lake value
    """A value as the server prints it. Not for BINARY and BLOB."""
    group = kind_of(kind)
    if group in (TypeGroup.TEXT, TypeGroup.CHOICE, TypeGroup.OTHER):
        return str(value)
    if group is TypeGroup.REAL:
        return real_text(value, _FLOAT_DIGITS if kind.base == "float" else None, kind.scale)
    if group is TypeGroup.MOMENT:
        return moment_text(kind, value)
    if kind.base == "bit":
        return str(int(value) if isinstance(value, bool) else int.from_bytes(value, "big"))
    if kind.base == "year":
        return f"{value:04d}"
    text = f"{value:f}" if kind.base == "decimal" and not isinstance(value, str) else str(value)
    text = text if kind.base == "decimal" else str(int(value))
    width = zerofill_width(kind)
    return text.zfill(width) if width is not None else text


def real_text(value: float, digits: int | None, scale: int | None = None) -> str:
    """A FLOAT (6 significant digits) or DOUBLE (all digits); FLOAT(m,d) with d digits after the point."""
    if value == 0 or not math.isfinite(value):
        return "-0" if math.copysign(1, value) < 0 else "0"
    if scale is not None:
        return f"{value:.{scale}f}"
    precise = f"{value:.{digits - 1}e}" if digits is not None else repr(float(value))
    sign, mantissa, point = _taken_apart(precise)
    if -_PLAIN_DIGITS + 1 <= point <= _PLAIN_DIGITS:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{mantissa}"
        whole, rest = mantissa[:point].ljust(point, "0"), mantissa[point:]
        return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"
    rest = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
    return f"{sign}{mantissa[0]}{rest}e{point - 1}"


def _taken_apart(text: str) -> tuple[str, str, int]:
    """Sign, significant digits, and the place of the point before them."""
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    number, _, exponent = text.partition("e")
    whole, _, behind = number.partition(".")
    digits = (whole + behind).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + behind) - len(digits))
    return sign, digits.rstrip("0"), point


def moment_text(kind: MysqlType, value: int) -> str:
    """DATE, DATETIME, TIMESTAMP or TIME with the digits of the column."""
    if kind.base == "date":
        return "{:04d}-{:02d}-{:02d}".format(*ymd(value))
    if kind.base == "time":
        return ("-" if value < 0 else "") + _clock(abs(value), kind.length or 0)
    days, rest = divmod(value, DAY)
    return "{:04d}-{:02d}-{:02d} ".format(*ymd(days)) + _clock(rest, kind.length or 0)


def _clock(size: int, digits: int) -> str:
    seconds, fraction = divmod(size, SECOND)
    tail = f".{fraction:06d}"[: digits + 1] if digits else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"


def to_text(new: MysqlType, old: MysqlType) -> Callable[[Any], str]:
    """Stores values as CHAR, VARCHAR, TEXT or JSON. A character that the column's set lacks becomes ``?``; what is too
    long is cut off; CHAR loses its trailing blanks."""
    fit = fitting(new)

    def store(value: Any) -> str:  # noqa: ANN401 - any lake value
        if old.base == "bit":
            raw = new.base == "text"
            return fit(characters(_raw(old, value), codec_of(new)) if raw else text_of(old, value))
        return fit(characters(value, codec_of(new)) if isinstance(value, bytes) else text_of(old, value))

    return store


def characters(data: bytes, codec: str | None) -> str:
    """Bytes as text of a character set; bytes that are none of its characters become ``?``."""
    if codec is None or codec == "ucs2":
        return _NO_CHARACTER.sub("?", data.decode("utf8", "surrogateescape"))
    if codec == "cp1252":  # MySQL's latin1 gives a meaning to the bytes that Windows-1252 leaves free
        return "".join(bytes([b]).decode(codec, "ignore") or chr(b) for b in data)
    return data.decode(codec, "replace").replace("\ufffd", "?")


def fitting(new: MysqlType) -> Callable[[str], str]:
    """Cuts a text to a column's character set and length."""
    encoded = known_codec_of(new)
    length = (new.length or (1 if new.base == "char" else None)) if new.base in ("char", "varchar") else None
    size = size_in_bytes(new) if new.base == "text" else None

    def fit(text: str) -> str:
        if encoded == "ucs2":
            text = "".join(c if c <= "\uffff" else "?" for c in text)
        elif encoded is not None:
            text = text.encode(encoded, "replace").decode(encoded)
        if length is not None:
            text = text[:length]
        if size is not None and len(text) * 4 > size:
            unit = encoded if encoded not in (None, "ucs2") else "utf8"
            text = text.encode(unit)[:size].decode(unit, "ignore")
        return text.rstrip(" ") if new.base == "char" else text

    return fit


def to_bytes(new: MysqlType, old: MysqlType) -> Callable[[Any], bytes]:
    """Stores values as BINARY, VARBINARY or BLOB: the bytes in the old column's character set. BINARY is filled with
    zero bytes."""
    length = new.length or 1
    encoded = codec_of(old) if kind_of(old) in (TypeGroup.TEXT, TypeGroup.CHOICE) else None
    encoded = "utf8" if encoded is None or encoded == "ucs2" else encoded

    def store(value: Any) -> bytes:  # noqa: ANN401 - any lake value
        raw = isinstance(value, bytes | bool) and not (old.base == "bit" and new.base != "blob")
        data = _raw(old, value) if raw else text_of(old, value).encode(encoded, "replace")
        if new.base == "blob":
            return data[: size_in_bytes(new)]
        return data[:length].ljust(length, b"\0") if new.base == "binary" else data[:length]

    return store


def _raw(old: MysqlType, value: bytes | bool) -> bytes:
    return bytes([value]) if isinstance(value, bool) else value


def to_choice(new: MysqlType, old: MysqlType, number: Callable[[Any], Any]) -> Callable[[Any], str]:
    """Stores values as ENUM or SET: text by the options, numbers by their place or bits."""
    if kind_of(old) in (TypeGroup.TEXT, TypeGroup.BYTES, TypeGroup.CHOICE, TypeGroup.OTHER, TypeGroup.MOMENT):
        by_text = _option(new) if new.base == "enum" else _members(new)
        return lambda value: by_text(value.decode("latin1") if isinstance(value, bytes) else text_of(old, value))

    def store(value: Any) -> str:  # noqa: ANN401 - any lake value
        place = int(number(value))
        if new.base == "enum":
            return new.options[place - 1] if 1 <= place <= len(new.options) else ""
        place = place & ((1 << len(new.options)) - 1)
        return ",".join(option for bit, option in enumerate(new.options) if place >> bit & 1)

    return store


def _option(new: MysqlType) -> Callable[[str], str]:
    by_text = {option.lower(): option for option in reversed(new.options)}

    def store(text: str) -> str:
        option = by_text.get(text.rstrip(" ").lower())
        if option is not None:
            return option
        place = int(Decimal(text)) if text.isascii() and text.isdigit() else 0
        return new.options[place - 1] if 1 <= place <= len(new.options) else ""

    return store


def _members(new: MysqlType) -> Callable[[str], str]:
    by_text = {option.lower(): bit for bit, option in reversed(list(enumerate(new.options)))}

    def store(text: str) -> str:
        bits = {by_text[part.lower()] for part in text.rstrip(" ").split(",") if part.lower() in by_text}
        number = _INTEGER.fullmatch(text)
        if not bits and number is not None and abs(int(number[1])) < 1 << 64:
            bits = {bit for bit in range(len(new.options)) if int(number[1]) >> bit & 1}
        return ",".join(new.options[bit] for bit in sorted(bits))

    return store
