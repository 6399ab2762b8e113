"""The metadata table for readers: each partition is opened on first use, and the listing is checked.

Without an entry in column_stats or bloom_filters a file stays a candidate. An entry missing in the listing would hide
rows, so the listing is compared with both timelines before it is used: a commit without its entry makes it unusable.
partition_stats is not used: a lost entry would skip a partition, and the loss could not be detected.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from hudilake.errors import CorruptDataError, LakeError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.timeline.instant import COMMIT, DELTA_COMMIT, Instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.records.delta import FileKey
from hudilake.metadata.records.file_group import FileGroup
from hudilake.metadata.records.layout import LAST_INITIAL_INSTANT, METADATA_PATH
from hudilake.metadata.records.reader import MetadataReader, load_groups
from hudilake.storage.base import FileInfo, Storage
from hudilake.table.table import HudiTable

if TYPE_CHECKING:
    from hudilake.metadata.records.record_index import RecordIndexGroups

#: Errors of a damaged or missing metadata table; the reader then continues without it.
INDEX_FAILURES: Final = (
    LakeError,
    ArithmeticError,
    EOFError,
    LookupError,
    OSError,
    ValueError,
    pa.ArrowException,
    struct.error,
    zlib.error,
)


class FileLookups(Protocol):
    """A table's files and their column ranges, by key. Every method may raise any of INDEX_FAILURES."""

    def partition_paths(self) -> list[str]:
        """The partition paths, sorted, without partitions that lost their last file."""
        ...

    def listed(self, partition_paths: Iterable[str]) -> dict[str, list[FileInfo]]:
        """The files of each of these partitions by its path; partitions without files may be left out."""
        ...

    def column_ranges(
        self, columns: Collection[str], files: Iterable[FileKey]
    ) -> dict[FileKey, dict[str, ColumnRange]]:
        """The statistics of these columns by file and column; files and columns without any are left out."""
        ...


class TableIndex:
    """The metadata partitions of a table, each in its state at first use.

    Every method may raise any of INDEX_FAILURES.

    Args:
        storage: rooted at the data table.
        partitions: the partitions in the table's properties.
        data_timeline: the data table's, loaded before.
        known: files and column ranges as of the same timeline, where a service has them; None to read them.
    """

    def __init__(
        self, storage: Storage, partitions: Sequence[str], data_timeline: Timeline, known: FileLookups | None = None
    ) -> None:
        self._known = known
        self._root = storage.sub(METADATA_PATH)
        self._partitions = frozenset(partitions)
        self._data_timeline = data_timeline
        self._timeline: Timeline | None = None
        self._readers: dict[MetadataPartition, MetadataReader] = {}
        self._record_index: RecordIndexGroups | None = None

    def has(self, partition: MetadataPartition) -> bool:
        """Whether the table lists that metadata partition."""
        return partition.value in self._partitions

    def lookups(self, partition: MetadataPartition) -> FileLookups:
        """Lookups of files or of column ranges."""
        return self._known or self.reader(partition)

    def reader(self, partition: MetadataPartition) -> MetadataReader:
        """Lookups in that partition of the metadata table alone."""
        opened = self._readers.get(partition)
        if opened is None:
            opened = MetadataReader(load_groups(self._root, [partition], self.timeline(), self._data_timeline))
            if partition is MetadataPartition.FILES:
                self._check_listing(opened.groups[MetadataPartition.FILES])
            self._readers[partition] = opened
        return opened

    def record_index(self) -> RecordIndexGroups:
        """Lookups of record keys, as of the data timeline.

        Commits that came after it are left out: they may have moved rows to files that this reader does not see.
        """
        if self._record_index is None:
            from hudilake.metadata.records.record_index import RecordIndexGroups  # needs compiled loops

            partition, until = MetadataPartition.RECORD_INDEX, self._data_timeline.latest_time() or ""
            for compaction in self.timeline().completed_actions((COMMIT,)):
                if compaction.requested_time > until:
                    raise _incomplete("the record index was compacted with later commits", compaction)
            groups = load_groups(self._root, [partition], self.timeline(), self._data_timeline, until)[partition]
            self._check_logs(groups, until)
            by_partition = any(group.owner is not None for group in groups)
            self._record_index = RecordIndexGroups(self._root, groups, by_partition, len(groups))
        return self._record_index

    def _check_logs(self, groups: Sequence[FileGroup], until: str) -> None:
        """Raise CorruptDataError if a log file that a commit wrote to a metadata partition is gone."""
        held = {(group.file_id, log.name.instant) for group in groups for log in group.logs}
        since = {group.file_id: "" if group.base is None else group.base.name.instant for group in groups}
        pending = self._data_timeline.pending_times()
        for write in self.timeline().completed_actions((DELTA_COMMIT,)):
            if write.requested_time in pending or not LAST_INITIAL_INSTANT < write.requested_time <= until:
                continue
            for stat in self.timeline().commit_metadata(write).stats:
                ours = stat.partition_path == MetadataPartition.RECORD_INDEX.value
                if (
                    ours
                    and (write.completion_time or "") >= since.get(stat.file_id, "")
                    and ((stat.file_id, write.requested_time) not in held)
                ):
                    raise _incomplete("a log file of the record index does not exist", write)

    def groups(self, partition: MetadataPartition) -> tuple[FileGroup, ...]:
        """The file groups of that partition without their cached records: small when pickled."""
        file_groups = self.reader(partition).groups[partition]
        return tuple(FileGroup(g.storage, g.partition, g.index, g.base, list(g.logs)) for g in file_groups)

    def timeline(self) -> Timeline:
        """The metadata table's timeline."""
        if self._timeline is None:
            self._timeline = Timeline.load(self._root)
        return self._timeline

    def _check_listing(self, groups: Sequence[FileGroup]) -> None:
        """Raise CorruptDataError unless the listing has every commit of the data since its base files."""
        since = max((group.base.name.instant for group in groups if group.base is not None), default="")
        noted = {log.name.instant for group in groups for log in group.logs}
        begun = {instant.requested_time: instant for instant in self.timeline().completed()}
        for write in self._data_timeline.completed():
            entry = begun.get(write.requested_time)
            if entry is not None and (entry.completion_time or "") >= since and write.requested_time not in noted:
                raise _incomplete("the log file of a commit in the metadata table's listing does not exist", write)
            if entry is None and self._ought_to_be_noted(write):
                raise _incomplete("a commit is not in the metadata table", write)

    def _ought_to_be_noted(self, write: Instant) -> bool:
        """A commit with files, later than the metadata table's initialisation, that cannot have been archived in it.

        Archival moves the oldest delta commits first, but keeps instants of base files active.
        """
        own = [i for i in self.timeline().completed() if i.action == DELTA_COMMIT]
        ordinary = [i.requested_time for i in own if i.requested_time > LAST_INITIAL_INSTANT]
        first = [i for i in own if i.requested_time <= LAST_INITIAL_INSTANT]
        made = first[-1].completion_time or "" if first else None
        after = bool(ordinary) and write.requested_time > ordinary[0]
        if not after and made is not None and not self.timeline().history().files:
            after = (write.completion_time or "") > made
        return after and bool(self._data_timeline.commit_metadata(write).stats)


def table_index(table: HudiTable) -> TableIndex | None:
    """The metadata table of an open table; None if its properties list none."""
    listed = table.config.metadata_partitions
    return TableIndex(table.storage, listed, table.timeline) if listed else None


def _incomplete(problem: str, write: Instant) -> CorruptDataError:
    return CorruptDataError(problem, do_next="run binlake repair", instant=write.requested_time)
