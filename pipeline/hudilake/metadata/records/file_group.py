"""A file group of the metadata table: its newest file slice, and lookups over base file and log files.

The log files' records are read once and kept (the tail). A writer adds its own records to the tail when it writes them,
so neither a commit nor a compaction reads this process's own files back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias

from hudilake.errors import UnsupportedError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.delete_block import decode_deletes
from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.files.log_file import BlockType, LogBlock, whole_blocks
from hudilake.format.files.names import BaseFileName, LogFileName, parse_base_name, parse_log_name
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.records.layout import file_group_id, parse_file_group_id
from hudilake.metadata.records.merge import encode_record, merge_values, record_type
from hudilake.metadata.records.record_reader import decode_record, is_current
from hudilake.storage.at_once import at_once
from hudilake.storage.base import Storage

#: Records by key, of the current schema; None is a deletion.
Records: TypeAlias = Mapping[bytes, bytes | None]
Visible: TypeAlias = Callable[[str], bool]


class Make(Protocol):
    """Makes a file group."""

    def __call__(
        self, storage: Storage, partition: MetadataPartition, index: int, *, owner: str | None = None
    ) -> FileGroup:
        """A file group without files."""
        ...


@dataclass(frozen=True, slots=True)
class MetadataBaseFile:
    """An HFile and its size in bytes."""

    name: BaseFileName
    size: int


@dataclass(frozen=True, slots=True)
class MetadataLogFile:
    """A log file and its size in bytes."""

    name: LogFileName
    size: int


@dataclass
class FileGroup:
    """The newest slice of one file group. ``logs`` are in merge order. ``owner``: the data partition whose records it
    has; None if it has those of all."""

    storage: Storage
    partition: MetadataPartition
    index: int
    base: MetadataBaseFile | None = None
    logs: list[MetadataLogFile] = field(default_factory=list)
    owner: str | None = None
    _tail: dict[bytes, list[bytes | None]] | None = field(default=None, repr=False)
    _reader: HFileReader | None = field(default=None, repr=False)

    @property
    def file_id(self) -> str:
        """Its id."""
        return file_group_id(self.partition, self.index, self.owner)

    @property
    def log_bytes(self) -> int:
        """Bytes of the slice's log files."""
        return sum(log.size for log in self.logs)

    @property
    def base_bytes(self) -> int:
        """Bytes of the slice's base file."""
        return 0 if self.base is None else self.base.size

    def path(self, name: BaseFileName | LogFileName) -> str:
        """A file of the group, relative to the metadata table's root."""
        return f"{self.partition.value}/{name}"

    def tail(self) -> dict[bytes, list[bytes | None]]:
        """The records of the log files by key, oldest first; read once."""
        if self._tail is None:
            tail: dict[bytes, list[bytes | None]] = {}
            for records in self._log_records():
                _extend(tail, records)
            self._tail = tail
        return self._tail

    def _log_records(self) -> Iterator[Records]:
        paths = [self.path(log.name) for log in self.logs]
        contents = at_once([partial(self.storage.read, path) for path in paths], reads=self.storage)
        for path, content in zip(paths, contents, strict=True):
            for block in whole_blocks(content, path):
                yield records_of(self.partition, block, path)

    def check(self) -> None:
        """Read all of it. Raises CorruptDataError, StorageError."""
        for _ in self.entries():
            pass

    def append(self, log: MetadataLogFile, records: Records) -> None:
        """Add a log file that was just written, with its records."""
        self.logs.append(log)
        if self._tail is None and len(self.logs) == 1:
            self._tail = {}
        if self._tail is not None:
            _extend(self._tail, records)

    def drop_log(self, instant: str) -> list[MetadataLogFile]:
        """Remove the log files of an instant; returns them."""
        removed = [log for log in self.logs if log.name.instant == instant]
        if removed:
            self.logs = [log for log in self.logs if log.name.instant != instant]
            self._tail = None
        return removed

    def replace_base(self, base: MetadataBaseFile) -> None:
        """Begin a new slice with a base file that holds all records so far."""
        self.base, self.logs = base, []
        self.forget()

    def forget(self) -> None:
        """Let go of the records that were read."""
        self._tail = None if self.logs else {}
        self._reader = None

    def base_reader(self) -> HFileReader | None:
        """The base file, opened once; None if there is none."""
        if self._reader is None and self.base is not None:
            path, storage = self.path(self.base.name), self.storage
            self._reader = HFileReader(lambda start, n: storage.read_range(path, start, n), self.base.size, path)
        return self._reader

    def lookup(self, keys: Collection[bytes]) -> dict[bytes, bytes]:
        """The merged records of those keys that exist."""
        tail = self.tail()
        records = self._from_base(keys)
        for key in keys:
            if key in tail:
                older = records.pop(key, None)
                merged = merge_values(self.partition, key, tail[key] if older is None else [older, *tail[key]])
                if merged is not None:
                    records[key] = merged
        return records

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """All merged records, ascending by key; only one block of the base file is in memory at a time."""
        tail = self.tail()
        newer = iter(sorted(tail))
        following = next(newer, None)
        base = self.base_reader()
        for key, value in base.scan() if base is not None else ():
            while following is not None and following < key:
                yield from self._merged(following, tail[following])
                following = next(newer, None)
            current = as_current(self.partition, key, value, base.schema if base is not None else None)
            if following == key:
                yield from self._merged(key, [current, *tail[key]])
                following = next(newer, None)
            else:
                yield key, current
        while following is not None:
            yield from self._merged(following, tail[following])
            following = next(newer, None)

    def _merged(self, key: bytes, values: list[bytes | None]) -> Iterator[tuple[bytes, bytes]]:
        merged = merge_values(self.partition, key, values)
        if merged is not None:
            yield key, merged

    def _from_base(self, keys: Collection[bytes]) -> dict[bytes, bytes]:
        base = self.base_reader()
        if base is None:
            return {}
        return {key: as_current(self.partition, key, v, base.schema) for key, v in base.get_many(keys).items()}


def _extend(tail: dict[bytes, list[bytes | None]], records: Records) -> None:
    for key, value in records.items():
        values = tail.get(key)
        if values is None:
            tail[key] = [value]
        else:
            values.append(value)


def records_of(partition: MetadataPartition, block: LogBlock, path: str) -> Records:
    """The records of a log block, under the current schema; None for deleted keys.

    Raises CorruptDataError, UnsupportedError for a block type that this version of the metadata table does not use.
    """
    if block.block_type is BlockType.DELETE:
        return {key.encode(): None for key in decode_deletes(block.content, path).column(0).to_pylist()}
    if block.block_type is BlockType.HFILE_DATA:
        reader = HFileReader.from_bytes(bytes(block.content), path)
        return {key: as_current(partition, key, value, reader.schema) for key, value in reader.scan()}
    raise unsupported_block(block, path)


def unsupported_block(block: LogBlock, path: str) -> UnsupportedError:
    """The error for a block type that this version of the metadata table does not use."""
    what = f"a {block.block_type.name} block in the metadata table"
    return UnsupportedError(what, do_next="run binlake repair", path=path)


def as_current(partition: MetadataPartition, key: bytes, value: bytes, schema: str | None) -> bytes:
    """A record's bytes under the current schema."""
    if schema is None or is_current(schema):
        return value
    return encode_record(record_type(partition, key), decode_record(value, schema))


def load_file_groups(
    storage: Storage, partition: MetadataPartition, timeline: Timeline, visible: Visible, make: Make = FileGroup
) -> list[FileGroup]:
    """The file groups of a metadata partition, by owner and number, each with its newest slice.

    Args:
        storage: rooted at the metadata table.
        partition: the metadata partition.
        timeline: the metadata table's.
        visible: whether files of an instant are visible.
        make: makes a file group.

    A file group with an owner exists only with a visible file: the commit that makes it may be rolled back.
    """
    bases: dict[tuple[str | None, int], list[MetadataBaseFile]] = {}
    logs: dict[tuple[str | None, int], list[MetadataLogFile]] = {}
    for info in storage.list(partition.value):
        text = info.path.rpartition("/")[2]
        name = parse_log_name(text) or parse_base_name(text)
        key = None if name is None else parse_file_group_id(partition, name.file_id)
        if name is None or key is None:
            continue
        hidden = info.size == 0 or not visible(name.instant)
        if hidden and key[0] is not None:
            continue
        groups = bases.setdefault(key, []), logs.setdefault(key, [])
        if hidden:
            continue
        if isinstance(name, LogFileName):
            groups[1].append(MetadataLogFile(name, info.size))
        else:
            groups[0].append(MetadataBaseFile(name, info.size))
    keys = sorted(bases, key=lambda key: (key[0] or "", key[1]))
    made = [(make(storage, partition, index, owner=owner), (owner, index)) for owner, index in keys]
    return [_newest_slice(group, bases[key], logs[key], timeline) for group, key in made]


def _newest_slice(
    group: FileGroup, bases: list[MetadataBaseFile], logs: list[MetadataLogFile], timeline: Timeline
) -> FileGroup:
    """A log file belongs to the newest slice whose base was requested before the log's commit completed."""
    group.base = max(bases, key=lambda file: file.name.instant, default=None)
    since = group.base.name.instant if group.base is not None else ""
    newer = [log for log in logs if (timeline.completion_time(log.name.instant) or "") >= since]
    group.logs = sorted(newer, key=lambda log: log.name.order)
    return group
