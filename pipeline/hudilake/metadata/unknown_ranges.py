"""Statistics that admit every value, for columns of a written file of which nothing is known.

Hudi Spark takes one column's number of values for all columns of a file (``ColumnStatsIndexSupport``). An unbounded
range has one null among two values; beside a column with one value it would look all null, and Spark would skip the
file. So the columns of a file of one row say two values there.
"""

from __future__ import annotations

from dataclasses import replace

from hudilake.format.files.column_stats import unknown_range
from hudilake.metadata.indexed_columns import ColumnTypes
from hudilake.metadata.records.delta import AddedFile, MetadataDelta


def with_unknown(delta: MetadataDelta, types: ColumnTypes) -> MetadataDelta:
    """The delta with statistics of every indexed column: unbounded if a task did not compute them. Columns that partial
    rows lack are left out: they add no value to the partition."""
    return replace(delta, added=tuple(_computed(file, types) for file in delta.added))


def of_files(delta: MetadataDelta, types: ColumnTypes) -> MetadataDelta:
    """The delta with the statistics that skip single files: unbounded for columns that some rows of a file lack.

    Another file of the slice has their values. Hudi Spark keeps a slice if one of its files passes the whole predicate.
    So it would skip a row that has ``a`` from one file and ``b`` from another under a predicate on both.
    """
    return replace(delta, added=tuple(_of_file(file, types) for file in delta.added))


def _computed(file: AddedFile, types: ColumnTypes) -> AddedFile:
    if file.ranges is None:
        return file
    present = {item.column for item in file.ranges} | file.lacking
    return _widened(file, types, [column for column in types if column not in present])


def _of_file(file: AddedFile, types: ColumnTypes) -> AddedFile:
    if file.ranges is None or not file.lacking:
        return file
    return _widened(file, types, [column for column in types if column in file.lacking])


def _widened(file: AddedFile, types: ColumnTypes, columns: list[str]) -> AddedFile:
    if not columns:
        return file
    known = [item for item in file.ranges or () if item.column not in columns]
    unknown = [unknown_range(column, *types[column]) for column in columns]
    if any(item.value_count == 1 for item in known):
        known = [replace(item, value_count=unknown[0].value_count) for item in known]
    return replace(file, ranges=(*known, *unknown))
