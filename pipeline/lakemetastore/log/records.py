"""Entries and snapshots as bytes: a frame with a checksum around MessagePack, compressed if it is long.

A frame is ``BL``, a byte for the form (1 plain, 2 Zstandard), eight bytes of XXH64 of what follows, and the content. A
compressed content begins with its length before compression, eight bytes. Numbers are big-endian.
"""

from __future__ import annotations

import struct
from typing import Final, TypeVar

import msgspec
import pyarrow as pa
import xxhash

from hudilake.commit.intent import GroupIntent, Intent

_HEAD: Final = struct.Struct(">2sBQ")
_LENGTH: Final = struct.Struct(">Q")
_MAGIC: Final = b"BL"
_PLAIN, _COMPRESSED = 1, 2
_LONG: Final = 4096

R = TypeVar("R")


class GroupRecord(msgspec.Struct, frozen=True, array_like=True):
    """What a change does to a file group (see ``GroupIntent``)."""

    partition_path: str
    file_id: str
    columns: tuple[str, ...] | None
    inserts: bool
    deletes: bool


class IntentRecord(msgspec.Struct, frozen=True, array_like=True):
    """What a change does to a table (see ``Intent``)."""

    instant: str
    action: str
    whole: bool
    clusters: bool
    groups: tuple[GroupRecord, ...]

    @classmethod
    def of(cls, intent: Intent) -> IntentRecord:
        """An intent as it is kept."""
        groups = tuple(
            GroupRecord(
                group.partition_path,
                group.file_id,
                None if group.columns is None else tuple(sorted(group.columns)),
                group.inserts,
                group.deletes,
            )
            for group in intent.groups
        )
        return cls(intent.instant, intent.action, intent.whole, intent.clusters, groups)

    def intent(self) -> Intent:
        """The intent."""
        groups = tuple(
            GroupIntent(
                group.partition_path,
                group.file_id,
                None if group.columns is None else frozenset(group.columns),
                group.inserts,
                group.deletes,
            )
            for group in self.groups
        )
        return Intent(self.instant, self.action, groups, self.whole, self.clusters)


class ChangeRecord(msgspec.Struct, frozen=True, array_like=True):
    """A change. ``intent``: None for a change that concerns the whole."""

    change: bytes
    intent: IntentRecord | None = None


_WHOLE: Final = ChangeRecord(b"")


class EntryRecord(msgspec.Struct, frozen=True, array_like=True):
    """An entry of a log.

    Args:
        id: random; whose entry it is.
        before: the id of the entry before; empty for the first.
        writer: of the process that wrote it, random.
        at_ms: when it was written, ms since the epoch, by the writer's clock.
        changes: one or more.
    """

    id: bytes
    before: bytes
    writer: bytes
    at_ms: int
    changes: tuple[ChangeRecord, ...]


def without_changes(record: EntryRecord) -> EntryRecord:
    """What is remembered of an entry: whose it is and what its changes concern."""
    parts = tuple(_WHOLE if part.intent is None else ChangeRecord(b"", part.intent) for part in record.changes)
    return EntryRecord(record.id, record.before, record.writer, record.at_ms, parts)


class SnapshotRecord(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot of a log: the state, and the ids of the entries up to it, the newest last."""

    ids: tuple[bytes, ...]
    state: bytes


class DamagedError(ValueError):
    """Bytes that are no frame, or whose checksum is another one."""


_encoder: Final = msgspec.msgpack.Encoder()
_entries: Final = msgspec.msgpack.Decoder(EntryRecord)
_snapshots: Final = msgspec.msgpack.Decoder(SnapshotRecord)


def frame(record: EntryRecord | SnapshotRecord) -> bytes:
    """A record as bytes."""
    content, form = _encoder.encode(record), _PLAIN
    if len(content) > _LONG:
        content = _LENGTH.pack(len(content)) + pa.compress(content, codec="zstd", asbytes=True)
        form = _COMPRESSED
    return _HEAD.pack(_MAGIC, form, xxhash.xxh64_intdigest(content)) + content


def read_entry(data: bytes) -> EntryRecord:
    """An entry from its bytes. Raises DamagedError."""
    return _decoded(_entries, data)


def read_snapshot(data: bytes) -> SnapshotRecord:
    """A snapshot from its bytes. Raises DamagedError."""
    return _decoded(_snapshots, data)


def _decoded(decoder: msgspec.msgpack.Decoder[R], data: bytes) -> R:
    if len(data) < _HEAD.size:
        raise DamagedError(f"{len(data)} bytes are too few")
    magic, form, checksum = _HEAD.unpack_from(data)
    content = memoryview(data)[_HEAD.size :]
    if magic != _MAGIC or form not in (_PLAIN, _COMPRESSED):
        raise DamagedError(f"it begins with {data[:3]!r}")
    if xxhash.xxh64_intdigest(content) != checksum:
        raise DamagedError("its checksum is another one")
    try:
        if form == _COMPRESSED:
            [length] = _LENGTH.unpack_from(content)
            content = memoryview(pa.decompress(content[_LENGTH.size :], length, codec="zstd", asbytes=True))
        return decoder.decode(content)
    except (msgspec.MsgspecError, pa.ArrowException, struct.error, OSError) as error:
        raise DamagedError(str(error)) from error
