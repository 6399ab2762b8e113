"""Writing a metadata partition's records: one log file for each file group with changed records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from hudilake.clock import now_ms
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.delete_block import encode_deletes
from hudilake.format.files.hfile.writer import encode_hfile
from hudilake.format.files.log_file import BlockType, Header, encode_block, encode_delete_block
from hudilake.format.files.names import LogFileName
from hudilake.format.timeline.commit_metadata import WriteStat
from hudilake.metadata.records.delta import KeyedRecords
from hudilake.metadata.records.file_group import FileGroup, MetadataLogFile, Records
from hudilake.metadata.records.reader import split_by_group
from hudilake.metadata.records.records import record_schema


@dataclass(frozen=True)
class GroupLog:
    """A log file to write: its file group and name, its bytes, and how many records it changes and deletes.

    ``keep`` adds it to the file group once it is committed.
    """

    group: FileGroup
    name: LogFileName
    data: bytes
    changed: int
    deleted: int
    keep: Callable[[GroupLog], None]

    @property
    def path(self) -> str:
        """Relative to the metadata table's root."""
        return self.group.path(self.name)

    @property
    def log_file(self) -> MetadataLogFile:
        """Its entry in the file group."""
        return MetadataLogFile(self.name, len(self.data))

    def stat(self) -> WriteStat:
        """Its entry in the metadata table's commit."""
        base = self.group.base
        return WriteStat(
            partition_path=self.group.partition.value,
            file_id=self.group.file_id,
            path=self.path,
            prev_commit=self.name.instant,
            num_writes=self.changed,
            num_update_writes=self.changed,
            num_deletes=self.deleted,
            file_size=len(self.data),
            log_version=self.name.version,
            base_file="" if base is None else str(base.name),
            log_files=(str(self.name),),
        )


def encode_logs(
    instant: str, partition: MetadataPartition, groups: list[FileGroup], records: KeyedRecords, version: int
) -> list[GroupLog]:
    """The log files of a partition's records, one for each file group touched; ``version``: of their names."""
    logs = []
    for index, keys in split_by_group(groups, list(records)).items():
        group = groups[index]
        group_records = {key.encode(): records[key] for key in keys}
        data = _encode_log(instant, partition, group_records)
        deleted = sum(value is None for value in group_records.values())
        changed = len(group_records) - deleted
        keep = partial(_keep, group_records)
        logs.append(GroupLog(group, LogFileName(group.file_id, instant, version), data, changed, deleted, keep))
    return logs


def _keep(records: Records, log: GroupLog) -> None:
    log.group.append(log.log_file, records)


def _encode_log(instant: str, partition: MetadataPartition, records: Records) -> bytes:
    """A DELETE block of the keys to delete, then an HFILE_DATA block of the rest, either only if needed."""
    schema, blocks = record_schema(), []
    deletes = sorted(key for key, value in records.items() if value is None)
    entries = sorted((key, value) for key, value in records.items() if value is not None)
    if deletes:
        content = encode_deletes(pa.array([key.decode() for key in deletes]), None, partition.value)
        blocks.append(encode_delete_block(instant, schema, content))
    if entries:
        header = {Header.INSTANT_TIME.value: instant, Header.SCHEMA.value: schema}
        blocks.append(encode_block(BlockType.HFILE_DATA, header, encode_hfile(entries, schema, now_ms())))
    return b"".join(blocks)
