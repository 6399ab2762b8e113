"""Rows that are counted without being read: the metadata table knows how many rows each file has.

A file slice can be counted if its files have nothing but rows that live: a base file alone, or the files of an append
table (``files.append.rows_never_merge``). With a condition, all of its rows must pass: its column ranges must say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hudilake.format.definition.config import TableConfig
from hudilake.format.files.append import rows_never_merge
from hudilake.format.files.view import FileSlice
from hudilake.read.filters.bounds import ColumnBounds, may_match
from hudilake.read.filters.evaluate import Flags
from hudilake.read.filters.expressions import Filter, Not
from hudilake.read.index import FileLookups
from hudilake.read.slice_files import SliceFiles
from hudilake.read.window import COMMIT_TIME_FIELD


def all_rows_pass(part: Filter, columns: Mapping[str, ColumnBounds], count: int) -> Flags:
    """The files of which every row passes a filter for certain, bool array of ``count``.

    Args:
        part: normalised, without unknown parts.
        columns: the bounds of all of its columns over the files.

    A comparison with null is not true, so a file with a null in one of the columns is not among them.
    """
    whole = ~may_match(Not(part), columns, count)
    for bounds in columns.values():
        whole &= ~bounds.has_nulls
    return whole


def has_live_rows_only(piece: FileSlice, config: TableConfig) -> bool:
    """Whether every row in the files of a slice is a row of the table."""
    if not piece.log_files:
        return True
    return rows_never_merge(config.kind, (str(log.name) for log in piece.log_files))


@dataclass(frozen=True, slots=True)
class CountRequest:
    """What a reader needs of rows that it only counts.

    Args:
        columns: the columns that it needs of them; other columns of counted rows are null.
        condition: the rows to count, normalised; None for the question's own condition.
    """

    columns: tuple[str, ...]
    condition: Filter | None = None


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Rows of one file slice that were counted. ``values``: the columns that all of them have in common."""

    partition_path: str
    file_id: str
    rows: int
    values: Mapping[str, object] = field(default_factory=dict)

    def batches(self, schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Gives the counted number of rows in the columns of ``schema``, in batches of at most ``batch_rows``."""
        scalars = [pa.scalar(self.values.get(column.name), column.type) for column in schema]
        for start in range(0, self.rows, batch_rows):
            count = min(batch_rows, self.rows - start)
            yield pa.record_batch([pa.repeat(scalar, count) for scalar in scalars], schema=schema)


def common_values(
    columns: Collection[str], bounds: Mapping[str, ColumnBounds], number: int
) -> dict[str, object] | None:
    """The values of columns in all rows of a partition; None if the partition does not say one of them.

    Args:
        columns: their names.
        bounds: of the partition columns over partitions (``partition_values.partition_bounds``).
        number: the partition's.
    """
    values: dict[str, object] = {}
    for name in columns:
        known = bounds.get(name)
        if known is None or known.has_nulls[number] or not known.low[number].is_valid:
            return None
        if known.low[number] != known.high[number]:
            return None
        values[name] = known.low[number].as_py()
    return values


def row_counts(reader: FileLookups, files: SliceFiles, config: TableConfig, passing: Flags) -> dict[int, int]:
    """The number of rows of slices that can be counted, by the slices' numbers.

    Args:
        reader: of column_stats.
        files: the slices.
        config: the table's.
        passing: the slices to count, all rows of which pass; bool array of n.

    A slice with a file that the index does not know is left out. Raises as ``FileLookups``.
    """
    live = [has_live_rows_only(piece, config) for piece in files.slices]
    wanted = passing & np.array(live, dtype=np.bool_)
    chosen = np.flatnonzero(files.files_of(wanted)).tolist()
    ranges = reader.column_ranges([COMMIT_TIME_FIELD], [files.files[i] for i in chosen])
    counts = dict.fromkeys(np.flatnonzero(wanted).tolist(), 0)
    for i in chosen:
        known, owner = ranges.get(files.files[i], {}).get(COMMIT_TIME_FIELD), int(files.owner[i])
        if known is None:
            counts.pop(owner, None)
        elif owner in counts:
            counts[owner] += known.value_count
    return counts
