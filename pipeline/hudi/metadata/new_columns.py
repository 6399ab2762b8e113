"""What the index says of a column over the files that are older than the column.

A file of the index that lacks one column's statistics is lost to Hudi Spark under a predicate on that column and on
another (``g is null and a < 13``, measured). So a column that enters the index gets statistics for every file in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.files.column_stats import ColumnRange, ValueType, fits, unknown_range
from pipeline.hudi.metadata.indexed_columns import ColumnTypes
from pipeline.hudi.metadata.records.delta import FileKey
from pipeline.hudi.metadata.records.reader import MetadataReader


def over_older_files(column: str, kind: ValueType, info: str | None, returned: Collection[str]) -> ColumnRange:
    """Null; but anything for one of the columns that were there once, went, and came back."""
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
        reader: as it was before.
        files: all that there were.
        types: of the indexed columns.
        entered: columns that are new in the index.
        returned: columns that were in it once: what is known of them still holds if it fits.

    Files that are not indexed stay so.
    """
    for file, known in reader.column_ranges([RECORD_KEY_FIELD, *entered], files).items():
        if RECORD_KEY_FIELD not in known:
            continue
        for column in entered:
            if column not in known or not fits(known[column], *types[column]):
                yield file, over_older_files(column, *types[column], returned)
