"""Index entries of a new column for the files that are older than the column.

Hudi Spark drops an indexed file without one column's statistics under a predicate on that column and on another (``g is
null and a < 13``, measured). So a column that enters the index gets statistics for every indexed file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.column_stats import ColumnRange, ValueType, fits, unknown_range
from hudilake.metadata.indexed_columns import ColumnTypes
from hudilake.metadata.records.delta import FileKey
from hudilake.metadata.records.reader import MetadataReader


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
