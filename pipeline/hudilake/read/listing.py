"""The file slices of a table: from the metadata table, else by listing storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.view import FileSlice, partition_paths, slices_of_partition
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.index import INDEX_FAILURES, TableIndex
from hudilake.read.query import Incremental, Query, ReadOptimized, Snapshot
from hudilake.read.retention import refuse_cleaned
from hudilake.storage.base import FileInfo, Storage


@dataclass(frozen=True)
class Listing:
    """The source of partitions and files. ``trouble``: why the metadata table was not used, if so."""

    storage: Storage
    index: TableIndex | None
    trouble: str | None = None

    @classmethod
    def of(cls, storage: Storage, index: TableIndex | None, timeline: Timeline) -> Listing:
        """The metadata table if it can be read and lists a partition, or if the table has none; else storage."""
        if index is None or not index.has(MetadataPartition.FILES):
            return cls(storage, None)
        try:
            paths = index.lookups(MetadataPartition.FILES).partition_paths()
        except INDEX_FAILURES as error:
            return cls(storage, None, str(error))
        if not paths and any(timeline.commit_metadata(write).stats for write in reversed(timeline.completed())):
            return cls(storage, None, "the metadata table lists no partition")
        return cls(storage, index)

    @property
    def source(self) -> str:
        """The source as text."""
        return "the storage's listing" if self.index is None else "the metadata table"

    def partitions(self) -> list[str]:
        """The partition paths, sorted. Raises StorageError."""
        if self.index is None:
            return partition_paths(self.storage)
        return self.index.lookups(MetadataPartition.FILES).partition_paths()

    def files(self, paths: Sequence[str]) -> dict[str, list[FileInfo]]:
        """The files of those partitions. Raises as the metadata table does, StorageError.

        A partition without files in the metadata table is listed on storage: an entry may be lost, and a listing is
        cheap.
        """
        listed = {} if self.index is None else self.index.lookups(MetadataPartition.FILES).listed(paths)
        return {path: listed.get(path) or self.storage.list(path) for path in paths}


def slices_for(
    query: Query, files: dict[str, list[FileInfo]], timeline: Timeline, until: Timeline, storage: Storage
) -> tuple[FileSlice, ...]:
    """The file slices that a query reads, partition by partition.

    Args:
        query: the rows to read.
        files: of the partitions.
        timeline: the table's.
        until: the same as of the query's end (``window.timeline_until``).
        storage: the table's root.

    Raises UnsupportedError where files of that time may have been cleaned.
    """
    as_of = query.as_of if isinstance(query, Snapshot) else None
    slices = [s for path, infos in files.items() for s in slices_of_partition(path, infos, until, as_of)]
    moment = as_of or (query.end if isinstance(query, Incremental) else None)
    if moment is not None:
        refuse_cleaned(files, slices, timeline, storage, moment)
    if isinstance(query, ReadOptimized):
        slices = [replace(s, log_files=()) for s in slices if s.base_file is not None]
    return tuple(slices)
