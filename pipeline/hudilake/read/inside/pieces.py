"""The pieces of a base file: runs of rows that are read or left out as a whole.

At first a piece is a row group. Where pages can be left out, the edges of the pages of all columns that matter cut it
into smaller pieces, each of which lies within one page of every such column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.log_rows import Longs
from hudilake.format.files.pages.chunks import ChunkedFile
from hudilake.format.files.pages.page_index import RowRanges
from hudilake.read.filters.bounds import ColumnBounds, column_bounds
from hudilake.read.filters.evaluate import Flags

#: Writers leave NaN out of the bounds of floats.
_FLOATS_MAY_BE_NAN = True


@dataclass(frozen=True, eq=False)
class RowGroupPieces:
    """n pieces, row group after row group.

    Args:
        group, start, stop: int64 arrays of n: the row group, the first row in it, the row after the last one.
        bounds: of some columns over the pieces.
    """

    group: Longs
    start: Longs
    stop: Longs
    bounds: dict[str, ColumnBounds]

    def chosen(self, wanted: Flags, group_rows: Sequence[int]) -> dict[int, RowRanges | None]:
        """The rows of the wanted pieces: row group -> ranges, None for all of its rows."""
        row_ranges: dict[int, RowRanges | None] = {}
        for group in np.unique(self.group[wanted]).tolist():
            mine = np.flatnonzero(wanted & (self.group == group))
            ranges: RowRanges = []
            for start, stop in zip(self.start[mine].tolist(), self.stop[mine].tolist(), strict=True):
                if ranges and ranges[-1][1] == start:
                    ranges[-1] = ranges[-1][0], stop
                else:
                    ranges.append((start, stop))
            row_ranges[group] = None if ranges == [(0, group_rows[group])] else ranges
        return row_ranges


def row_groups(file: ChunkedFile, schema: pa.Schema, columns: Iterable[str]) -> RowGroupPieces:
    """A piece for each row group.

    Args:
        file: open.
        schema: the columns in the types in which they are read.
        columns: those that matter.

    Raises CorruptDataError.
    """
    rows = file.group_rows
    held = set(file.held(columns))
    bounds = {name: _bounds(schema.field(name).type, file.group_ranges(name), name in held) for name in columns}
    count = len(rows)
    return RowGroupPieces(np.arange(count), np.zeros(count, dtype=np.int64), np.array(rows, dtype=np.int64), bounds)


def pages(file: ChunkedFile, schema: pa.Schema, columns: Sequence[str], groups: Sequence[int]) -> RowGroupPieces:
    """The pieces of some row groups, cut at the edges of pages. Arguments and errors as ``row_groups``; the columns
    that the file has can be left out page by page (``ChunkedFile.can_pick_pages``)."""
    held = file.held(columns)
    file.fetch_index(groups, held)
    edges = {group: _edges(file, group, held) for group in groups}
    bounds = {name: _cut(file, schema.field(name).type, name, edges, name in held) for name in columns}
    group = np.repeat(np.array(groups, dtype=np.int64), [len(edges[one]) - 1 for one in groups])
    start = np.concatenate([edges[one][:-1] for one in groups])
    stop = np.concatenate([edges[one][1:] for one in groups])
    return RowGroupPieces(group, start, stop, bounds)


def _edges(file: ChunkedFile, group: int, columns: Iterable[str]) -> Longs:
    rows = file.group_rows[group]
    firsts = [file.pages(group, name).first_row for name in columns]
    return np.unique(np.concatenate([np.array([0, rows], dtype=np.int64), *firsts]))


def _cut(file: ChunkedFile, kind: pa.DataType, name: str, edges: dict[int, Longs], is_held: bool) -> ColumnBounds:
    """The bounds of a column over the pieces between the edges."""
    ranges: list[ColumnRange | None] = []
    places: list[Longs] = []
    of_groups = file.group_ranges(name)
    for group, cuts in edges.items():
        of_pages = file.page_ranges(group, name) if is_held else None
        page = np.zeros(len(cuts) - 1, dtype=np.int64)
        if of_pages is not None:
            page = np.searchsorted(file.pages(group, name).first_row, cuts[:-1], "right") - 1
        places.append(len(ranges) + page)
        ranges += [of_groups[group]] if of_pages is None else of_pages
    return _bounds(kind, ranges, is_held).take(np.concatenate(places))


def _bounds(kind: pa.DataType, ranges: Sequence[ColumnRange | None], is_held: bool) -> ColumnBounds:
    """A column that the file lacks reads as null in all of its rows."""
    if not is_held:
        none = np.zeros(len(ranges), dtype=np.bool_)
        unknown = column_bounds(kind, ranges)
        return ColumnBounds(kind, unknown.low, unknown.high, none, ~none)
    bounds = column_bounds(kind, ranges)
    unsaid = _FLOATS_MAY_BE_NAN and pa.types.is_floating(kind)
    return ColumnBounds(kind, bounds.low, bounds.high, bounds.has_values, bounds.has_nulls, unsaid)
