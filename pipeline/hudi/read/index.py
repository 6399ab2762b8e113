"""The metadata table as a reader uses it: opened partition by partition on first use, never trusted blindly.

What is missing from column_stats or bloom_filters only leaves files candidates. What is missing from the listing would
hide rows, so the listing is held against both timelines before it is used: a commit whose entry is gone makes it
unusable. partition_stats is not used: an entry lost there would skip a partition, and nothing could show the loss.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from pipeline.errors import BinlakeError, CorruptDataError
from pipeline.hudi.definition.metadata_partition import MetadataPartition
from pipeline.hudi.metadata.records.file_group import FileGroup
from pipeline.hudi.metadata.records.layout import METADATA_PATH
from pipeline.hudi.metadata.records.reader import MetadataReader, load_groups
from pipeline.hudi.timeline.instant import DELTA_COMMIT, Instant
from pipeline.hudi.timeline.timeline import Timeline
from pipeline.storage.base import Storage

#: Whatever a damaged or missing metadata table leads to; the reader then goes on without it.
INDEX_FAILURES: Final = (
    BinlakeError,
    ArithmeticError,
    EOFError,
    LookupError,
    OSError,
    ValueError,
    pa.ArrowException,
    struct.error,
    zlib.error,
)

_LAST_FIRST_INSTANT = max(partition.first_instant for partition in MetadataPartition)


class TableIndex:
    """The metadata partitions of a table as they are when each is first asked for.

    Every method may raise any of INDEX_FAILURES.

    Args:
        storage: rooted at the data table.
        partitions: what the table's properties list.
        data_timeline: the data table's, loaded before.
    """

    def __init__(self, storage: Storage, partitions: Sequence[str], data_timeline: Timeline) -> None:
        self._root = storage.sub(METADATA_PATH)
        self._partitions = frozenset(partitions)
        self._data_timeline = data_timeline
        self._timeline: Timeline | None = None
        self._readers: dict[MetadataPartition, MetadataReader] = {}

    def has(self, partition: MetadataPartition) -> bool:
        """Whether the table lists that metadata partition."""
        return partition.value in self._partitions

    def reader(self, partition: MetadataPartition) -> MetadataReader:
        """Lookups in that partition alone."""
        found = self._readers.get(partition)
        if found is None:
            found = MetadataReader(load_groups(self._root, [partition], self.timeline(), self._data_timeline))
            if partition is MetadataPartition.FILES:
                self._check_listing(found.groups[MetadataPartition.FILES])
            self._readers[partition] = found
        return found

    def groups(self, partition: MetadataPartition) -> tuple[FileGroup, ...]:
        """The file groups of that partition without what was read of them: small to send."""
        known = self.reader(partition).groups[partition]
        return tuple(FileGroup(g.storage, g.partition, g.index, g.base, list(g.logs)) for g in known)

    def timeline(self) -> Timeline:
        """The metadata table's timeline."""
        if self._timeline is None:
            self._timeline = Timeline.load(self._root)
        return self._timeline

    def _check_listing(self, groups: Sequence[FileGroup]) -> None:
        """Every commit of the data since the listing's base files must be in it."""
        since = max((group.base.name.instant for group in groups if group.base is not None), default="")
        noted = {log.name.instant for group in groups for log in group.logs}
        begun = {instant.requested_time: instant for instant in self.timeline().completed()}
        for write in self._data_timeline.completed():
            entry = begun.get(write.requested_time)
            if entry is not None and (entry.completion_time or "") >= since and write.requested_time not in noted:
                raise _incomplete("the listing's log file of a commit is gone", write)
            if entry is None and self._ought_to_be_noted(write):
                raise _incomplete("a commit is not in the metadata table", write)

    def _ought_to_be_noted(self, write: Instant) -> bool:
        """A commit with files, since the metadata table was made, that cannot have been archived there.

        Archival takes the oldest delta commits first, but leaves instants of base files where they are.
        """
        own = [i for i in self.timeline().completed() if i.action == DELTA_COMMIT]
        ordinary = [i.requested_time for i in own if i.requested_time > _LAST_FIRST_INSTANT]
        made = next(
            (i.completion_time or "" for i in own if i.requested_time == MetadataPartition.FILES.first_instant), None
        )
        after = bool(ordinary) and write.requested_time > ordinary[0]
        if not after and made is not None and not self.timeline().history().files:
            after = (write.completion_time or "") > made
        return after and bool(self._data_timeline.commit_metadata(write).stats)


def _incomplete(what: str, write: Instant) -> CorruptDataError:
    return CorruptDataError(what, do_next="run binlake repair", instant=write.requested_time)
