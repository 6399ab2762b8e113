"""Rows in a form in which the judges' answers can be compared: plain values, in one order.

Exact: a decimal keeps its scale, a float all its bits, a timestamp its microsecond; -0.0 is not 0.0. The fields of
a struct (a dict) and the entries of a map (pairs from Arrow, a dict from Spark) have no order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa

Value: TypeAlias = bool | int | str | None
Row: TypeAlias = dict[str, Value]

META_PREFIX = "_hoodie_"


def canonical_value(value: object) -> Value:
    """One cell. Raises TypeError for a value that no lake type gives."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | Decimal):
        return f"{type(value).__name__} {value!r}" if isinstance(value, float) else f"decimal {value}"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"0x{bytes(value).hex()}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return canonical_value(list(value.items()))
    if isinstance(value, list) and all(isinstance(entry, tuple) for entry in value):
        return f"map {sorted((key, repr(canonical_value(item))) for key, item in value)}"
    if isinstance(value, list):
        return f"list {[canonical_value(item) for item in value]}"
    raise TypeError(f"{type(value).__name__} is no value of a lake table")


def canonical(rows: pa.Table | Iterable[Mapping[str, object]], columns: Sequence[str] | None = None) -> list[Row]:
    """Rows in canonical values and in one order.

    Args:
        rows: naive datetimes are not allowed among them.
        columns: to keep, all of which must be there; None keeps every column but Hudi's meta fields.
    """
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else list(rows)
    if columns is None:
        kept = [{k: v for k, v in row.items() if not k.startswith(META_PREFIX)} for row in listed]
    else:
        kept = [{name: row[name] for name in columns} for row in listed]
    return sorted(({k: canonical_value(v) for k, v in sorted(row.items())} for row in kept), key=_rank)


def _rank(row: Row) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, type(value).__name__, str(value)) for name, value in row.items())
