"""The page index of a column chunk: where its data pages are and which rows they hold, and their bounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.pages.compact import Items, Struct, read_struct
from hudilake.format.files.pages.statistics import page_ranges

if TYPE_CHECKING:
    from hudilake.format.files.pages.skim import Longs

#: Rows of a row group, from (inclusive) and to (exclusive), ascending and apart.
RowRanges = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class DataPages:
    """n data pages of a column chunk of ``rows`` rows: offset in the file, bytes with the header, first row; int64."""

    offset: Longs
    size: Longs
    first_row: Longs
    rows: int

    @cached_property
    def ends(self) -> Longs:
        """For each page the row after its last one."""
        return np.append(self.first_row[1:], self.rows)

    def runs(self, ranges: RowRanges) -> list[tuple[int, int]]:
        """The pages, from (inclusive) and to (exclusive), that hold some of these rows; the runs are apart."""
        wanted = np.zeros(len(self.offset), dtype=np.bool_)
        for start, stop in ranges:
            first = np.searchsorted(self.ends, start, "right")
            wanted[first : np.searchsorted(self.first_row, stop, "left")] = True
        edges = np.flatnonzero(np.diff(np.concatenate(([0], wanted.astype(np.int8), [0]))))
        return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]

    def place(self, first: int, last: int) -> tuple[int, int]:
        """The bytes of the pages from ``first`` to ``last`` (exclusive): start and end in the file."""
        return int(self.offset[first]), int(self.offset[last - 1] + self.size[last - 1])


def read_offset_index(data: bytes, begin: int, end: int, rows: int) -> DataPages:
    """An OffsetIndex.

    Args:
        data: its bytes.
        begin, end: the range of the column chunk's data pages in the file.
        rows: of the row group.

    Raises ValueError, IndexError if it contradicts itself or the footer.
    """
    locations = _list(read_struct(data, 0)[0], 1).values
    table = [[location[field][1] for field in (1, 2, 3)] for location in locations if len(location) >= 3]
    numbers = np.array(table, dtype=np.int64).reshape(-1, 3)
    pages = DataPages(numbers[:, 0].copy(), numbers[:, 1].copy(), numbers[:, 2].copy(), rows)
    stops = pages.offset + pages.size
    if (
        len(table) != len(locations)
        or not len(table)
        or pages.first_row[0] != 0
        or (np.diff(pages.first_row) <= 0).any()
        or pages.first_row[-1] >= rows
        or (pages.size <= 0).any()
        or pages.offset[0] < begin
        or stops[-1] > end
        or (pages.offset[1:] < stops[:-1]).any()
    ):
        raise ValueError("its page index contradicts its footer")
    return pages


def read_column_index(
    data: bytes, name: str, kind: pa.DataType, physical: str, pages: DataPages
) -> list[ColumnRange | None]:
    """The statistics of the pages in a ColumnIndex.

    Args:
        data: its bytes.
        name, kind, physical: of the column.
        pages: of its OffsetIndex.

    Raises ValueError, IndexError if it contradicts them.
    """
    index = read_struct(data, 0)[0]
    only_nulls, low, high = (_list(index, field).values for field in (1, 2, 3))
    count = len(pages.offset)
    nulls = _list(index, 5).values if 5 in index else [None] * count
    if not len(only_nulls) == len(low) == len(high) == len(nulls) == count:
        raise ValueError("its column index contradicts its offset index")
    rows = (pages.ends - pages.first_row).tolist()
    return page_ranges(name, kind, physical, list(zip(only_nulls, low, high, nulls, rows, strict=True)))


def _list(value: Struct, field: int) -> Items:
    items = value.get(field, (0, None))[1]
    if not isinstance(items, Items):
        raise ValueError("its page index is damaged")
    return items
