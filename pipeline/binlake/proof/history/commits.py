"""The commits of a table with what they say of themselves, archived ones included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from binlake.load.replay.quarantine import replay_stream
from binlake.load.replay.quarantine_table import all_commits
from binlake.position.record_reader import RecordReader
from binlake.position.recorded import Revert, backfill_stream, load_stream, repair_stream
from binlake.schema.apply.stored_rows import ddl_stream
from binlake.schema.rules.entries import DdlEntry
from binlake.source.offsets import OffsetRange, Ranges
from binlake.source.scan_read import scan_of_root
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.table.table import HudiTable


class CommitKind(StrEnum):
    """What made a commit."""

    STREAM = "stream"
    LOAD = "load"
    BACKFILL = "backfill"
    REPAIR = "verify"
    DUMP = "dump"
    SCAN = "scan"
    DERIVATION = "derivation"
    DDL = "ddl"
    QUARANTINE = "quarantine replay"
    REVERT = "revert"
    COMPACTION = "compaction"
    CLUSTERING = "clustering"
    OTHER = "another writer"


@dataclass(frozen=True)
class Commit:
    """A completed commit of a table.

    Args:
        instant, completed: requested and completion time.
        kind: what made it.
        ranges: the Kafka offsets that it covers.
        source_times: the source's times of its oldest and newest change, ms since the epoch; None if unknown.
        superseded: how many of its records lost to a newer one in the same batch.
        files: the files that it wrote, by file id.
        archived: whether it has left the active timeline.
    """

    instant: str
    completed: str
    kind: CommitKind
    ranges: Ranges
    source_times: tuple[int, int] | None
    superseded: int
    files: Mapping[str, Sequence[str]]
    archived: bool

    def covers(self, topic: str, partition: int, offset: int) -> bool:
        """Whether a record is among those that the commit read."""
        return any(r.topic == topic and r.partition == partition and r.start <= offset < r.end for r in self.ranges)

    def overlaps(self, other: OffsetRange) -> bool:
        """Whether the commit read a record of a range."""
        place = other.topic, other.partition
        return any((r.topic, r.partition) == place and r.start < other.end and other.start < r.end for r in self.ranges)

    def may_concern(self, since_ms: int | None, until_ms: int | None) -> bool:
        """Whether it may hold changes of a time: from ``since_ms`` on, before ``until_ms``."""
        if self.source_times is None:
            return True
        oldest, newest = self.source_times
        return (since_ms is None or newest >= since_ms) and (until_ms is None or oldest < until_ms)


def revert_stream(name: str) -> str:
    """The stream name in the commits of reverts; these commits cover no offsets."""
    return f"{name}.revert"


@dataclass(frozen=True)
class CommitLog:
    """All commits of a table, oldest first.

    Args:
        commits: by instant.
        ddl: the statements that were carried out on the table, each with the commit that first records it.
        reverts: the reverted transactions.
        truncated: the ordering values of TRUNCATEs.
    """

    commits: Mapping[str, Commit]
    ddl: Sequence[tuple[DdlEntry, str]]
    reverts: Sequence[Revert]
    truncated: frozenset[int] = frozenset()

    @staticmethod
    def of(table: HudiTable, stream: str) -> CommitLog:
        """Read every commit of a table of a stream. Raises CorruptDataError, StorageError, UnsupportedError."""
        active = {instant.requested_time for instant in table.timeline.completed()}
        commits: dict[str, Commit] = {}
        ddl: dict[tuple[int, str], tuple[DdlEntry, str]] = {}
        truncated: set[int] = set()
        for time, body in sorted(all_commits(table), key=lambda one: one[0]):
            record = RecordReader.of_commit(body.extra)
            completed = table.timeline.completion_time(time) or time
            commits[time] = _commit(time, completed, body, record, stream, archived=time not in active)
            truncated |= {record.truncates.whole, *record.truncates.shards.values()}
            for entry in record.ddl or ():
                ddl.setdefault(entry.key, (entry, time))
        reverts = RecordReader.newest_of(table).reverts
        return CommitLog(commits, [ddl[key] for key in sorted(ddl)], reverts, frozenset(truncated - {-1}))

    def covering(self, topic: str, partition: int, offset: int) -> Commit | None:
        """The commit of the stream that read a record."""
        return next((c for c in self.commits.values() if c.covers(topic, partition, offset)), None)

    def reverts_of(self, file_id: str, path: str) -> list[Revert]:
        """The reverts that may have written rows of a file group: where rows have moved to other groups since, all."""
        return [revert for revert in self.reverts if self._may_have_written(revert.instant, file_id, path)]

    def _may_have_written(self, instant: str, file_id: str, path: str) -> bool:
        commit = self.commits.get(instant)
        movers = (CommitKind.CLUSTERING, CommitKind.OTHER)
        moved = any(c.kind in movers and c.completed > instant for c in self.commits.values())
        return commit is None or moved or any(of.rpartition("/")[0] == path for of in commit.files.get(file_id, ()))

    def revert_of(self, instant: str) -> Revert | None:
        """What a commit has reverted."""
        return next((revert for revert in self.reverts if revert.instant == instant), None)


def _commit(
    time: str, completed: str, body: CommitMetadata, record: RecordReader, stream: str, *, archived: bool
) -> Commit:
    files: dict[str, list[str]] = {}
    for stat in body.stats:
        files.setdefault(stat.file_id, []).append(stat.path)
    counts = record.counts
    superseded = counts.superseded if counts is not None else 0
    kind = kind_of_commit(body, record, stream)
    ranges = record.ranges if kind in (CommitKind.STREAM, CommitKind.DUMP) else Ranges()
    return Commit(time, completed, kind, ranges, record.source_times, superseded, files, archived)


def kind_of_commit(body: CommitMetadata, record: RecordReader, stream: str) -> CommitKind:
    """What made a commit. ``stream``: the name of the table's stream."""
    if body.compacted or body.operation == "COMPACT":
        return CommitKind.COMPACTION
    if body.operation == "CLUSTER" and record.stream is None:
        return CommitKind.CLUSTERING
    if record.portion is not None:
        return CommitKind.SCAN if scan_of_root(record.portion.root) is not None else CommitKind.DUMP
    if record.derived is not None:
        return CommitKind.DERIVATION
    kinds = {
        stream: CommitKind.STREAM,
        load_stream(stream): CommitKind.LOAD,
        backfill_stream(stream): CommitKind.BACKFILL,
        repair_stream(stream): CommitKind.REPAIR,
        ddl_stream(stream): CommitKind.DDL,
        replay_stream(stream): CommitKind.QUARANTINE,
        revert_stream(stream): CommitKind.REVERT,
    }
    return kinds.get(record.stream or "", CommitKind.OTHER)
