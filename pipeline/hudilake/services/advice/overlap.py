"""How far the ranges of files overlap, column by column, by the metadata table alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.schema import META_FIELDS
from hudilake.format.files.column_stats import ColumnRange
from hudilake.read import TableReader
from hudilake.read.filters.bounds import ColumnBounds, column_bounds
from hudilake.read.index import INDEX_FAILURES, TableIndex
from hudilake.read.slice_files import SliceFiles

Longs = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
_FARTHEST: Final = 1e300


@dataclass(frozen=True, slots=True)
class ColumnOverlap:
    """The ranges of one column.

    Args:
        column: its name.
        files: the table's files, log files included.
        ranged: files whose range of the column is known.
        depth: the files that may hold a value of the column, on average over its values; between 0 and ``files``.
        nulls: the share of its rows that are null, 0 to 1.
    """

    column: str
    files: int
    ranged: int
    depth: float
    nulls: float


def overlaps(reader: TableReader, files: SliceFiles) -> tuple[list[ColumnOverlap], str | None]:
    """The overlap of every column with ranges, the largest first, and why there are none if so.

    Args:
        reader: the table.
        files: its file slices.

    Reads the metadata table only. Raises no error of a damaged metadata table: it is the reason that is returned.
    """
    table = reader.table
    listed = table.config.metadata_partitions
    if MetadataPartition.COLUMN_STATS.value not in listed:
        return [], "the table keeps no column ranges (metadata.column_stats)"
    kinds = {field.name: field.type for field in reader.schema if field.name not in META_FIELDS}
    try:
        index = TableIndex(table.storage, listed, table.timeline).lookups(MetadataPartition.COLUMN_STATS)
        known = index.column_ranges(list(kinds), files.files)
    except INDEX_FAILURES as error:
        return [], f"the column ranges cannot be read: {error}"
    in_log = files.in_log.tolist()
    measured = []
    for column, kind in kinds.items():
        ranges = [known.get(file, {}).get(column) for file in files.files]
        if any(one is not None for one in ranges):
            measured.append(_overlap(column, column_bounds(kind, ranges, in_log), ranges))
    return sorted(measured, key=lambda one: -one.depth), None


def _overlap(column: str, bounds: ColumnBounds, ranges: Sequence[ColumnRange | None]) -> ColumnOverlap:
    rows = np.array([0 if one is None else one.value_count for one in ranges], dtype=np.int64)
    nulls = np.array([0 if one is None else one.null_count for one in ranges], dtype=np.int64)
    share = float(nulls.sum() / rows.sum()) if rows.sum() else 0.0
    ranged = int(sum(one is not None for one in ranges))
    return ColumnOverlap(column, len(ranges), ranged, depth_of(bounds, rows - nulls), share)


def depth_of(bounds: ColumnBounds, values: Longs) -> float:
    """How many of n files may hold a value of a column, on average over the values of all files.

    Args:
        bounds: of the column over the files.
        values: how many values each file has, int64 array of n.

    A file's values are taken to be spread evenly over its range, for the metadata table says no more. Files without
    known bounds may hold every value.
    """
    bounded = np.asarray(pc.and_(bounds.low.is_valid(), bounds.high.is_valid()).to_numpy(zero_copy_only=False))
    bounded &= bounds.has_values
    unbounded = int((bounds.has_values & ~bounded).sum())
    if not bounded.any():
        return float(unbounded)
    chosen = pa.array(bounded)
    both = _on_a_line(pa.concat_arrays([bounds.low.filter(chosen), bounds.high.filter(chosen)]))
    low, high = both[: len(both) // 2], both[len(both) // 2 :]
    high = np.maximum(low, high)
    met = np.where(high > low, _met_on_average(low, high), _met_at(low, low, high))
    return float(np.average(met, weights=np.maximum(values[bounded], 1))) + unbounded


def _met_at(points: Doubles, low: Doubles, high: Doubles) -> Doubles:
    """The number of ranges that each point is in."""
    begun = np.searchsorted(np.sort(low), points, side="right")
    ended = np.searchsorted(np.sort(high), points, side="left")
    return (begun - ended).astype(np.float64)


def _met_on_average(low: Doubles, high: Doubles) -> Doubles:
    """For each range the number of ranges that a point of it is in, on average; nothing of use for a single point."""
    edges = np.unique(np.concatenate([low, high]))
    between = _met_at(edges[:-1] + np.diff(edges) / 2, low, high)
    area = np.concatenate(([0.0], np.cumsum(between * np.diff(edges))))
    places = np.searchsorted(edges, low), np.searchsorted(edges, high)
    return (area[places[1]] - area[places[0]]) / np.where(high > low, high - low, 1)


def _on_a_line(values: pa.Array) -> Doubles:
    """Values as numbers between 0 and 1, in the same order, though close ones may become equal: texts and bytes by
    eight bytes behind what all of them begin with."""
    kind = values.type
    if not _is_number(kind):
        texts = [bytes(one) for one in values.cast(pa.binary()).to_pylist()]
        start = _shared(min(texts), max(texts))
        numbers = np.array([int.from_bytes(one[start : start + 8].ljust(8, b"\0")) for one in texts], dtype=np.float64)
    elif pa.types.is_temporal(kind):
        numbers = values.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_numpy().astype(np.float64)
    else:
        numbers = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    numbers = np.clip(np.nan_to_num(numbers, nan=np.inf), -_FARTHEST, _FARTHEST)
    least, greatest = float(numbers.min()), float(numbers.max())
    return (numbers - least) / (greatest - least) if greatest > least else np.zeros(len(numbers))


def _shared(least: bytes, greatest: bytes) -> int:
    """How many bytes all values between two have in common at their beginning."""
    pairs = enumerate(zip(least, greatest, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(least), len(greatest)))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_temporal(kind)
    )
