"""Compaction of the metadata table: all file groups with log files get a new base file, under one instant.

All groups are compacted together, because Hudi assumes that no record before the newest compaction is in log files
(``HoodieMetadataWriteUtils``). Order on storage: plan, inflight, base files under names that a second attempt uses
again, completed instant. A crash before the last step leaves a pending compaction, which ``finish_pending`` repeats.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile

from hudilake.commit.commit import publish
from hudilake.commit.compaction_plan import CompactionOperation, CompactionPlan, metrics_of, pending_compactions
from hudilake.errors import CorruptDataError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.names import BaseFileName
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hudilake.format.timeline.instant import COMMIT, COMPACTION, Instant, State
from hudilake.metadata.records.base_write import encode_base
from hudilake.metadata.records.file_group import FileGroup, MetadataBaseFile
from hudilake.metadata.records.keys import ALL_PARTITIONS
from hudilake.metadata.records.record_reader import decode_record
from hudilake.metadata.records.records import RecordType, encode_listing, table_schema
from hudilake.metadata.table import MetadataTable
from hudilake.storage.base import AlreadyExistsError

_PARALLEL = 4
_ALL_PARTITIONS_KEY = ALL_PARTITIONS.encode()


def compaction_due(table: MetadataTable) -> bool:
    """Whether enough has been added, and no recorded instant is still pending on the data table."""
    count = sum(1 for _ in takewhile(lambda instant: instant.action != COMMIT, reversed(table.timeline.completed())))
    if count < table.config.compact_after or noted_pending(table):
        return False
    groups = [group for groups in table.reader.groups.values() for group in groups]
    log_bytes, base_bytes = sum(g.log_bytes for g in groups), sum(g.base_bytes for g in groups)
    return count >= table.config.compact_at_most or log_bytes >= table.config.compact_ratio * base_bytes


def noted_pending(table: MetadataTable) -> bool:
    """Entries of an instant that may still be rolled back must not get into a base file."""
    return any(table.timeline.find(time) is not None for time in table.data_timeline.pending_times())


def compact(table: MetadataTable) -> str | None:
    """Compact now; returns the instant, or None if no file group has log files."""
    groups = [group for groups in table.reader.groups.values() for group in groups if group.logs]
    if not groups:
        return None
    requested = Instant(table.clock.next(), COMPACTION, State.REQUESTED)
    plan = CompactionPlan(tuple(map(_operation, groups)), keeps_times=False)
    table.storage.create(requested.path, plan.to_bytes())
    _execute(table, requested, groups)
    return requested.requested_time


def finish_pending(table: MetadataTable) -> None:
    """Repeat the compactions that a dead writer, ours or Hudi's, planned and did not finish.

    A compaction that was overtaken by commits is removed: its base files would have to leave those commits out.
    """
    for pending in pending_compactions(table.timeline):
        instant = pending.requested_time
        groups = [group for groups in table.reader.groups.values() for group in groups if group.logs]
        completed = [table.timeline.completion_time(log.name.instant) or "" for group in groups for log in group.logs]
        if max(completed, default="") >= instant:
            _give_up(table, pending)
        else:
            _execute(table, pending.in_state(State.REQUESTED), groups)


def _give_up(table: MetadataTable, pending: Instant) -> None:
    for groups in table.reader.groups.values():
        for group in groups:
            table.storage.delete(group.path(BaseFileName(group.file_id, pending.requested_time, extension="hfile")))
    for state in (State.INFLIGHT, State.REQUESTED):
        table.storage.delete(pending.in_state(state).path)
    table.timeline.forget(pending)


def _execute(table: MetadataTable, requested: Instant, groups: list[FileGroup]) -> None:
    inflight = requested.in_state(State.INFLIGHT)
    with contextlib.suppress(AlreadyExistsError):
        table.storage.create(inflight.path, b"")
    table.timeline.record(inflight)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        written = list(pool.map(lambda group: _rewrite(table, group, requested.requested_time), groups))
    body = CommitMetadata(
        stats=tuple(stat for _, stat in written),
        extra={SCHEMA_KEY: table_schema()},
        operation="COMPACT",
        compacted=True,
    )
    completed = requested.in_state(State.COMPLETED, table.clock.next())
    publish(table.storage, completed, body.to_bytes())
    table.timeline.record(completed)
    for group, (base, _) in zip(groups, written, strict=True):
        group.replace_base(base)


def _rewrite(table: MetadataTable, group: FileGroup, instant: str) -> tuple[MetadataBaseFile, WriteStat]:
    data, count = _merged_base(group)
    name = BaseFileName(group.file_id, instant, extension="hfile")
    table.storage.write(group.path(name), data)
    stat = WriteStat(
        partition_path=group.partition.value,
        file_id=group.file_id,
        path=group.path(name),
        prev_commit=group.base.name.instant if group.base is not None else "null",
        num_writes=count,
        file_size=len(data),
        prev_base_file=str(group.base.name) if group.base is not None else None,
        total_log_files_compacted=len(group.logs),
        total_log_size_compacted=group.log_bytes,
    )
    return MetadataBaseFile(name, len(data)), stat


def _merged_base(group: FileGroup) -> tuple[bytes, int]:
    """(the new base file's bytes, how many records it has)."""
    if group.partition is MetadataPartition.RECORD_INDEX:
        from hudilake.metadata.records.key_group import KeyGroup, encode_key_base  # needs compiled loops

        assert isinstance(group, KeyGroup)
        return encode_key_base(group.merged())
    counted = _CountedEntries(group)
    return encode_base(counted), counted.count


class _CountedEntries:
    """A group's merged entries, counted on the way, without tombstones of files that no longer exist."""

    def __init__(self, group: FileGroup) -> None:
        self._group = group
        self.count = 0

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._group.entries():
            self.count += 1
            yield key, _settled(key, value) if self._group.partition is MetadataPartition.FILES else value


def _settled(key: bytes, value: bytes) -> bytes:
    listing = decode_record(value)
    if not isinstance(listing, dict):
        raise CorruptDataError(
            "a record of the files partition is not a listing", do_next="run binlake repair", key=key
        )
    if None not in listing.values():
        return value
    kind = RecordType.ALL_PARTITIONS if key == _ALL_PARTITIONS_KEY else RecordType.FILES
    return encode_listing(kind, {name: size for name, size in listing.items() if size is not None})


def _operation(group: FileGroup) -> CompactionOperation:
    base, log_bytes = group.base, group.log_bytes
    return CompactionOperation(
        group.partition.value,
        group.file_id,
        base.name.instant if base is not None else group.logs[0].name.instant,
        str(base.name) if base is not None else None,
        tuple(str(log.name) for log in group.logs),
        metrics_of(len(group.logs), log_bytes, group.base_bytes, group.base_bytes),
    )
