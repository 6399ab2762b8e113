"""Random values in JSON form, for the forms of ``bench.form_cases``."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from typing import Any

Value = Callable[[random.Random], Any]


def unscaled(number: int) -> str:
    """A number as Connect writes a Decimal: base64 of its big-endian bytes."""
    size = (number.bit_length() + 8) // 8
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


def some_bytes(dice: random.Random) -> bytes:
    return dice.randbytes(16)


def sometimes(value: Value, other: Any, share: float = 0.5) -> Value:  # noqa: ANN401 - any JSON value
    return lambda dice: other if dice.random() < share else value(dice)


def moment(unit: int) -> Value:
    return lambda dice: 1_700_000_000 * unit + dice.randrange(10**6 * unit)


def iso_moment(fraction: int = 0, end: str = "Z") -> Value:
    def text(dice: random.Random) -> str:
        tail = f".{dice.randrange(1, 10**fraction):0{fraction}d}" if fraction else ""
        return f"2026-11-{dice.randrange(1, 29):02d}T06:31:{dice.randrange(60):02d}{tail}{end}"

    return text


def clock(fraction: int, end: str = "") -> Value:
    def text(dice: random.Random) -> str:
        tail = f".{dice.randrange(10**fraction):0{fraction}d}" if fraction else ""
        return f"06:31:{dice.randrange(60):02d}{tail}{end}"

    return text


def spaced_moment(fraction: int) -> Value:
    return lambda dice: iso_moment(fraction, "")(dice).replace("T", " ")


def decimal_text(digits: int, scale: int) -> Value:
    def text(dice: random.Random) -> str:
        number = str(dice.randrange(10 ** (digits - 2), 10 ** (digits - 1)))
        return f"{number[:-scale]}.{number[-scale:]}"

    return text


def hundredths(dice: random.Random) -> float:
    return dice.randrange(10**6) / 100


def eighths(dice: random.Random) -> float:
    return dice.randrange(10**5) / 8


def point(dice: random.Random) -> dict[str, Any]:
    return {"x": dice.random(), "y": dice.random(), "wkb": base64.b64encode(dice.randbytes(21)).decode(), "srid": None}


def base64_bytes(dice: random.Random) -> str:
    return base64.b64encode(some_bytes(dice)).decode()


def number(least: int, most: int) -> Value:
    return lambda dice: dice.randrange(least, most)


def note(dice: random.Random) -> str:
    return f"note {dice.randrange(10**9)}"


def document(dice: random.Random) -> dict[str, Any]:
    return {"a": dice.randrange(100), "b": ["x", dice.randrange(9)]}


def flag(dice: random.Random) -> bool:
    return dice.random() < 0.5


def one_of(*values: Any) -> Value:  # noqa: ANN401 - any JSON value
    return lambda dice: dice.choice(values)
