"""Avro records that are no change events -> change batches. The writer's schema gives the columns.

The schema comes from the registry (Confluent's wire format) or from a file in the settings (the record alone).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from binlake.decode.changes import Column
from binlake.decode.formats.avro_records import Opener, RefusedRecordError, json_of
from binlake.decode.formats.plain_avro_schema import PlainSchema, plain_schema
from binlake.decode.formats.plain_rows import PlainRows, decode_plain, settle_tombstones, topics_of
from binlake.decode.messages.chunk import DecodeChunk
from binlake.decode.messages.format_detection import is_avro
from binlake.decode.messages.images import members
from binlake.decode.options import PlainTopics
from binlake.decode.quarantine import Buffer, Fault, Reason


@dataclass
class _SchemaGroup:
    """Records of one schema. ``deletes``: their images are keys."""

    columns: tuple[Column, ...]
    deletes: bool
    at: list[int] = field(default_factory=list)
    images: list[Buffer] = field(default_factory=list)


@dataclass
class _Groups:
    """The records of a chunk by the schema of their images."""

    found: dict[tuple[int, bool], _SchemaGroup] = field(default_factory=dict)

    def add(self, at: int, image: Buffer, schema: PlainSchema, columns: Sequence[Column], *, deletes: bool) -> None:
        """Add one record."""
        group = self.found.setdefault((id(schema), deletes), _SchemaGroup(tuple(columns), deletes))
        group.at.append(at)
        group.images.append(image)


def read(chunk: DecodeChunk) -> None:
    """Decode the chunk's records."""
    topics = topics_of(chunk)
    if topics is None:
        return
    groups = _Groups()
    _read_values(chunk, topics, groups)
    _read_keys(chunk, topics, groups)
    for group in groups.found.values():
        deletes = frozenset(group.at) if group.deletes else frozenset()
        decode_plain(chunk, topics, PlainRows(group.at, group.images, group.columns, deletes))


def _read_values(chunk: DecodeChunk, topics: PlainTopics, groups: _Groups) -> None:
    opener = Opener(chunk.options, f"{chunk.records.topic}-value", plain_schema)
    declared = None if topics.avro_schema is None else plain_schema(topics.avro_schema)
    for index in chunk.live():
        value = chunk.records.values[index] or b""
        try:
            if declared is not None:
                image: Buffer = json_of(value, 0, declared, "schema_file")
                schema = declared
            else:
                image, schema = _opened(opener, value)
            if not schema.record:
                raise RefusedRecordError(Fault(Reason.UNKNOWN_MESSAGE, "the message is no record"))
        except RefusedRecordError as refused:
            chunk.refuse(index, refused.fault, topics.table)
        else:
            groups.add(index, image, schema, schema.columns, deletes=False)


def _read_keys(chunk: DecodeChunk, topics: PlainTopics, groups: _Groups) -> None:
    """The rows that records without a value delete: their keys are Avro, with a schema in the registry."""
    opener = Opener(chunk.options, f"{chunk.records.topic}-key", plain_schema)
    for index in settle_tombstones(chunk, topics):
        try:
            image, schema = _opened(opener, chunk.records.keys[index] or b"")
            columns, image = _key_columns(image, schema, topics.key)
        except RefusedRecordError as refused:
            chunk.refuse(index, Fault(refused.fault.reason, f"key: {refused.fault.detail}"), topics.table)
        else:
            groups.add(index, image, schema, columns, deletes=True)


def _opened(opener: Opener[PlainSchema], value: bytes) -> tuple[Buffer, PlainSchema]:
    if not is_avro(value):
        raise RefusedRecordError(
            Fault(Reason.MALFORMED_AVRO, f"{len(value)} bytes are no Avro message with a schema id")
        )
    return opener.open(value)


def _key_columns(image: Buffer, schema: PlainSchema, key: tuple[str, ...]) -> tuple[list[Column], Buffer]:
    """The key columns and their image, of a key that is a record or, for a single column, a value alone."""
    if not schema.record and len(key) == 1:
        column = schema.columns[0]
        return [_named(column, key[0])], msgspec.json.encode({key[0]: msgspec.Raw(image)})
    raw_members = members(image) if schema.record else None
    if raw_members is None or not set(key) <= raw_members.keys():
        raise RefusedRecordError(Fault(Reason.MISSING_KEY, f"it does not give {', '.join(key)}"))
    return [c for c in schema.columns if c.name in key], msgspec.json.encode({name: raw_members[name] for name in key})


def _named(column: Column, name: str) -> Column:
    return Column(name, column.wire, column.lake_type, column.mysql_type, column.scale, column.length)
