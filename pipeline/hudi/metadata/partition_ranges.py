"""The statistics of whole partitions, kept up by the writer: each commit widens them, and nothing narrows them.

They are written whole (``isTightBound``), so that readers never merge them: Hudi compares strings by UTF-16 units and
bytes as signed when it merges, but by UTF-8 bytes and unsigned when it filters (``mergeColumnStatsRecords``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from functools import reduce

from pipeline.hudi.files.column_stats import ColumnRange, ValueType, says_the_same, unknown_range, widen
from pipeline.hudi.metadata.indexed_columns import ColumnTypes
from pipeline.hudi.metadata.new_columns import over_older_files
from pipeline.hudi.metadata.records.delta import AddedFile, MetadataDelta
from pipeline.hudi.metadata.records.reader import MetadataReader

_PARTITIONS_KEPT = 2048

#: Ranges by (partition path, column); None for one to delete.
Changes = dict[tuple[str, str], ColumnRange | None]


class PartitionRanges:
    """The ranges of the partitions last written to; others are looked up when they are written to."""

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
        """The ranges by (partition path, column) that the added files change, as they are then.

        ``returned``: columns that were indexed before, left the index, and are new in it again.
        """
        by_path: dict[str, list[AddedFile]] = {}
        for file in delta.added:
            by_path.setdefault(file.partition_path, []).append(file)
        known = self._known(by_path, types, new_partitions)
        changed: Changes = {}
        for path, files in by_path.items():
            ranges = [_by_column(file) for file in files]
            for column, (kind, info) in types.items():
                item = _seen(column, kind, info, [ranges_of.get(column) for ranges_of in ranges], files)
                before = known[path].get(column)
                if before is None and path not in new_partitions:
                    before = over_older_files(column, kind, info, returned)
                whole = item if before is None else widen(before, item) or unknown_range(column, kind, info)
                if before is None or column not in known[path] or not says_the_same(before, whole):
                    changed[path, column] = whole
        return changed

    def everywhere(
        self, paths: Collection[str], types: ColumnTypes, entered: Collection[str], left: Collection[str]
    ) -> Changes:
        """What makes every partition of those have a range of each column that entered the index, and none of those
        that left it. Hudi Spark takes a partition without one for one without a row that matches, as soon as another
        partition has one (measured)."""
        changed: Changes = {}
        for column in entered:
            item = over_older_files(column, *types[column], left)
            changed.update({(path, column): item for path in paths})
        gone = [column for column in left if column not in types]
        for path, found in self._reader.partition_ranges(gone, paths).items() if gone else ():
            changed.update({(path, column): None for column in found})
        return changed

    def keep(self, changed: Changes) -> None:
        """Note what was written."""
        for (path, column), item in changed.items():
            known = self._kept.get(path)
            if known is not None and item is not None:
                known[column] = item
            elif known is not None:
                known.pop(column, None)
        while len(self._kept) > _PARTITIONS_KEPT:
            self._kept.popitem(last=False)

    def _known(
        self, paths: Collection[str], columns: Collection[str], new: Collection[str]
    ) -> dict[str, dict[str, ColumnRange]]:
        unseen = [path for path in paths if path not in self._kept]
        asked = [path for path in unseen if path not in new]
        found = self._reader.partition_ranges(columns, asked) if asked else {}
        for path in unseen:
            self._kept[path] = found.get(path, {})
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
) -> ColumnRange:
    """The range over the files of one partition; a file without statistics may hold anything, one that lacks only
    this column reads as null."""
    items = []
    for item, file in zip(ranges, files, strict=True):
        if file.ranges is None:
            return unknown_range(column, kind, info)
        items.append(item or ColumnRange(column, kind, None, None, 1, 1, info))
    return reduce(lambda one, other: widen(one, other) or unknown_range(column, kind, info), items)
