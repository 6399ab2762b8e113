"""Statistics of the columns of a file that its writer did not compute.

Of a written file they admit every value. Hudi Spark takes one column's number of values for all columns of a file
(``ColumnStatsIndexSupport``). An unbounded range has one null among two values; beside a column with one value it would
look all null, and Spark would skip the file. So the columns of a file of one row say two values there.

Of files that are older than a column they say null. Hudi Spark drops an indexed file without one column's statistics
under a predicate on that column and on another (``g is null and a < 13``, measured). So a column that enters the index
gets statistics for every indexed file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.column_stats import ColumnRange, ValueType, fits, unknown_range
from hudilake.metadata.indexed_columns import ColumnTypes
from hudilake.metadata.records.delta import AddedFile, FileKey, MetadataDelta
from hudilake.metadata.records.reader import MetadataReader


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


def over_older_files(column: str, kind: ValueType, info: str | None, returned: Collection[str]) -> ColumnRange:
    """The range of a column in older files: null, but unbounded for a column that was dropped and added again."""
    return (
        unknown_range(column, kind, info) if column in returned else ColumnRange(column, kind, None, None, 1, 1, info)
    )


def older_statistics(
    reader: MetadataReader,
    files: Iterable[FileKey],
    types: ColumnTypes,
    entered: Collection[str],
    returned: Collection[str],
) -> Iterator[tuple[FileKey, ColumnRange]]:
    """The statistics to add for the columns that enter the index, by file.

    Args:
        reader: the index before the change.
        files: all files before the change.
        types: of the indexed columns.
        entered: columns that are new in the index.
        returned: columns that were indexed before: their old entries stay valid if their types fit.

    Files that are not indexed get no entries.
    """
    for file, ranges in reader.column_ranges([RECORD_KEY_FIELD, *entered], files).items():
        if RECORD_KEY_FIELD not in ranges:
            continue
        for column in entered:
            if column not in ranges or not fits(ranges[column], *types[column]):
                yield file, over_older_files(column, *types[column], returned)
