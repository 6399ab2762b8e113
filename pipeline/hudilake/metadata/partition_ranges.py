"""The statistics of whole partitions, maintained by the writer: each commit widens them, and nothing narrows them.

They are written as complete records (``isTightBound``), so that readers never merge them: Hudi compares strings by
UTF-16 units and bytes as signed when it merges, but by UTF-8 bytes and unsigned when it filters
(``mergeColumnStatsRecords``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from functools import reduce

from hudilake.format.files.column_stats import (
    ColumnRange,
    ValueType,
    admits,
    says_the_same,
    unknown_range,
    widen,
)
from hudilake.metadata.indexed_columns import ColumnTypes
from hudilake.metadata.records.delta import AddedFile, MetadataDelta
from hudilake.metadata.records.reader import MetadataReader
from hudilake.metadata.unknown_ranges import over_older_files

_PARTITIONS_KEPT = 2048

#: Ranges by (partition path, column); None for one to delete.
Changes = dict[tuple[str, str], ColumnRange | None]


class PartitionRanges:
    """The ranges of the recently written partitions; others are looked up when they are written."""

    def __init__(self, reader: MetadataReader) -> None:
        self._reader = reader
        self._kept: OrderedDict[str, dict[str, ColumnRange]] = OrderedDict()

    def grown_by(
        self,
        delta: MetadataDelta,
        types: ColumnTypes,
        new_partitions: Collection[str],
        returned: Collection[str] = (),
    ) -> Changes:
        """The new ranges by (partition path, column) of the ranges that the added files change.

        ``returned``: columns that were indexed before, left the index, and enter it again.
        """
        by_path: dict[str, list[AddedFile]] = {}
        for file in delta.added:
            by_path.setdefault(file.partition_path, []).append(file)
        previous = self._known(by_path, types, new_partitions)
        changed: Changes = {}
        for path, files in by_path.items():
            ranges = [_by_column(file) for file in files]
            for column, (kind, info) in types.items():
                item = _seen(column, kind, info, [ranges_of.get(column) for ranges_of in ranges], files)
                before = previous[path].get(column)
                if before is not None and item is not None and admits(before, item):
                    continue
                if before is None and path not in new_partitions:
                    before = over_older_files(column, kind, info, returned)
                if item is None:
                    item = before or unknown_range(column, kind, info)
                whole = item if before is None else widen(before, item) or unknown_range(column, kind, info)
                if before is None or column not in previous[path] or not says_the_same(before, whole):
                    changed[path, column] = whole
        return changed

    def everywhere(
        self, paths: Collection[str], types: ColumnTypes, entered: Collection[str], left: Collection[str]
    ) -> Changes:
        """The changes that give every partition a range of each column that entered the index, and remove the ranges of
        columns that left it. Hudi Spark treats a partition without a range as one without matching rows if another
        partition has a range (measured)."""
        changed: Changes = {}
        for column in entered:
            item = over_older_files(column, *types[column], left)
            changed.update({(path, column): item for path in paths})
        removed = [column for column in left if column not in types]
        for path, ranges in self._reader.partition_ranges(removed, paths).items() if removed else ():
            changed.update({(path, column): None for column in ranges})
        return changed

    def keep(self, changed: Changes) -> None:
        """Record the written ranges."""
        for (path, column), item in changed.items():
            ranges = self._kept.get(path)
            if ranges is not None and item is not None:
                ranges[column] = item
            elif ranges is not None:
                ranges.pop(column, None)
        while len(self._kept) > _PARTITIONS_KEPT:
            self._kept.popitem(last=False)

    def _known(
        self, paths: Collection[str], columns: Collection[str], new: Collection[str]
    ) -> dict[str, dict[str, ColumnRange]]:
        unseen = [path for path in paths if path not in self._kept]
        unread = [path for path in unseen if path not in new]
        ranges = self._reader.partition_ranges(columns, unread) if unread else {}
        for path in unseen:
            self._kept[path] = ranges.get(path, {})
        for path in paths:
            self._kept.move_to_end(path)
        return {path: self._kept[path] for path in paths}


def _by_column(file: AddedFile) -> dict[str, ColumnRange]:
    return {item.column: item for item in file.ranges or ()}


def _seen(
    column: str,
    kind: ValueType,
    info: str | None,
    ranges: Iterable[ColumnRange | None],
    files: Iterable[AddedFile],
) -> ColumnRange | None:
    """The range over the files of one partition. A file without statistics may hold any value; a file that lacks only
    this column is null in it, or adds nothing if its rows are partial. None if no file adds anything."""
    items = []
    for item, file in zip(ranges, files, strict=True):
        if file.ranges is None:
            return unknown_range(column, kind, info)
        if item is not None or column not in file.lacking:
            items.append(item or ColumnRange(column, kind, None, None, 1, 1, info))
    if not items:
        return None
    return reduce(lambda one, other: widen(one, other) or unknown_range(column, kind, info), items)
