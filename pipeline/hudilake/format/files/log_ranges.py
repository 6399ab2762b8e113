"""Column statistics of a log file, whose blocks may lack columns.

A column that a whole row lacks is null: the row is older than the column. A column that a partial row lacks has the
value that another file of the slice gives it, so this file says nothing about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa

from hudilake.format.files.column_stats import ColumnRange, column_ranges, unknown_range, widen


@dataclass(frozen=True)
class LogRanges:
    """``ranges``: the statistics of the columns over the rows that have them; a column that no row has has none;
    None for a table without column statistics. ``lacking``: the columns that some of the rows lack, because they are
    partial."""

    ranges: tuple[ColumnRange, ...] | None
    lacking: frozenset[str] = frozenset()


def log_ranges(whole: Sequence[pa.Table], partial: Sequence[pa.Table], columns: Sequence[str]) -> LogRanges:
    """The statistics of those columns.

    Args:
        whole: the rows of the blocks with whole rows, meta columns included.
        partial: the rows of the blocks with partial rows.
        columns: the indexed ones.

    A log file without rows only deletes.
    """
    if not whole and not partial:
        return LogRanges(column_ranges(None, columns))
    parts = [column_ranges(rows, columns) for rows in whole]
    parts += [column_ranges(rows, [c for c in columns if c in rows.schema.names]) for rows in partial]
    by_column: dict[str, list[ColumnRange]] = {}
    for item in (item for part in parts for item in part):
        by_column.setdefault(item.column, []).append(item)
    ranges = tuple(_over(by_column[name]) for name in columns if name in by_column)
    return LogRanges(ranges, frozenset(c for c in columns for rows in partial if c not in rows.schema.names))


def _over(items: Iterable[ColumnRange]) -> ColumnRange:
    return reduce(lambda one, two: widen(one, two) or unknown_range(two.column, two.value_type, two.info), items)
