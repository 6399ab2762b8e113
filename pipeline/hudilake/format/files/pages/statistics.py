"""Bounds in the metadata of a Parquet file as column statistics.

Bounds may be cut (strings to 64 bytes by parquet-mr): then the lower one is smaller and the upper one greater than
every value, so they are bounds all the same. They are not known

* where the writer is known for wrong ones, or the order is not that of the type: pyarrow knows these cases and gives
  none for a column chunk (``Statistics.has_min_max``). Pages are believed only where their column chunk is;
* for types whose values the column statistics do not have (times in nanoseconds, INT96, nested columns);
* where a bound of floats is NaN. Writers leave NaN out of bounds, so a column of floats may hold it besides.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

from hudilake.format.files.column_stats import ColumnRange, Value, value_type

#: The values of Parquet's physical types in the metadata.
Stored = bool | int | float | bytes | str | Decimal


def chunk_range(name: str, kind: pa.DataType, chunk: pq.ColumnChunkMetaData, rows: int) -> ColumnRange | None:
    """The statistics of a column chunk.

    Args:
        name, kind: of the column, as the file has it.
        chunk: of pyarrow's metadata.
        rows: of its row group.
    """
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None:
        return None
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max:
        return all_null(name, kind, rows) if nulls == rows else None
    return known_range(name, kind, (statistics.min_raw, statistics.max_raw), nulls, rows)


def page_ranges(
    name: str,
    kind: pa.DataType,
    physical: str,
    pages: Sequence[tuple[bool, bytes, bytes, int | None, int]],
) -> list[ColumnRange | None]:
    """The statistics of a column's pages.

    Args:
        name, kind, physical: of the column; its physical type by pyarrow's name.
        pages: for each page whether all is null, its bounds, its nulls (None if not known) and its rows.
    """
    ranges: list[ColumnRange | None] = []
    for only_nulls, low, high, nulls, rows in pages:
        if only_nulls:
            ranges.append(all_null(name, kind, rows))
            continue
        bounds = _plain(physical, low), _plain(physical, high)
        known = bounds[0] is not None and bounds[1] is not None
        ranges.append(known_range(name, kind, bounds, nulls, rows) if known else None)
    return ranges


def all_null(name: str, kind: pa.DataType, rows: int) -> ColumnRange | None:
    """The statistics of a column without a value."""
    known = value_type(kind)
    return None if known is None else ColumnRange(name, known[0], None, None, rows, rows, known[1])


def known_range(
    name: str, kind: pa.DataType, bounds: tuple[Stored | None, Stored | None], nulls: int | None, rows: int
) -> ColumnRange | None:
    """The statistics of a column with these bounds; None if they are not those of its type."""
    known = value_type(kind)
    low, high = (_value(kind, bound) for bound in bounds)
    if known is None or low is None or high is None:
        return None
    if nulls is None:
        nulls = min(1, rows - 1)  # it has a value; the rest may be null
    return ColumnRange(name, known[0], low, high, nulls, rows, known[1])


_PLAIN = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}


def _plain(physical: str, data: bytes) -> Stored | None:
    """A value in plain encoding; None where the bytes are none."""
    if physical in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"):
        return data
    if physical == "BOOLEAN":
        return bool(data[0]) if len(data) == 1 else None
    form = _PLAIN.get(physical)
    if form is None or struct.calcsize(form) != len(data):
        return None
    number: int | float = struct.unpack(form, data)[0]
    return number


def _value(kind: pa.DataType, stored: Stored | None) -> Value | None:
    """Returns the bound in the form that column statistics have; None if it is no value of the type."""
    if pa.types.is_floating(kind):
        return stored if isinstance(stored, float) and not math.isnan(stored) else None
    if pa.types.is_decimal(kind):
        if isinstance(stored, bytes):
            return int.from_bytes(stored, "big", signed=True) if stored else None
        return stored if isinstance(stored, int) and not isinstance(stored, bool) else None
    if pa.types.is_boolean(kind):
        return stored if isinstance(stored, bool) else None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text(stored)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return stored if isinstance(stored, bytes) else None
    if pa.types.is_unsigned_integer(kind):
        return None  # bounds are stored as signed numbers; Hudi's tables have no such columns
    return stored if isinstance(stored, int) and not isinstance(stored, bool) else None


def _text(stored: Stored | None) -> str | None:
    if isinstance(stored, str):
        return stored
    try:
        return stored.decode("utf-8") if isinstance(stored, bytes) else None
    except UnicodeDecodeError:  # cut inside a character
        return None
