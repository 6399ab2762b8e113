"""Debezium's Avro events (Confluent's wire format) -> the equivalent JSON, with its Connect schema.

A value is a zero byte, the id of the writer's schema in the registry, and one Avro record. The record becomes the JSON
that Connect's own JSON converter would write. The ordinary reader then decodes it, so types, order and checks are those
of Debezium's JSON with embedded schemas.
"""

from __future__ import annotations

import dataclasses
import io
import math
from dataclasses import dataclass, field
from typing import Any

import fastavro
import msgspec

from pipeline.decode.formats import debezium
from pipeline.decode.formats.avro_schema import WriterSchema, writer_schema
from pipeline.decode.messages.chunk import Chunk
from pipeline.decode.messages.format_detection import AVRO_HEAD_BYTES, is_avro
from pipeline.decode.messages.frames import open_loose
from pipeline.decode.messages.keys import Keys, read_keys
from pipeline.decode.options import DecodeOptions, Format
from pipeline.decode.quarantine import Buffer, Fault, Reason
from pipeline.decode.types.connect_schema import ConnectField

_DEEPEST = 16


@dataclass
class _Refused(Exception):
    fault: Fault


@dataclass
class _Opener:
    """Converts Avro values to JSON and caches the schemas."""

    options: DecodeOptions
    subject: str
    _known: dict[int, WriterSchema | Fault] = field(default_factory=dict)

    def open(self, value: bytes) -> tuple[bytes, ConnectField]:
        """The JSON of a value and its Connect schema. Raises _Refused."""
        schema_id = int.from_bytes(value[1:AVRO_HEAD_BYTES], "big")
        if schema_id not in self._known:
            self._known[schema_id] = self._schema(schema_id)
        schema = self._known[schema_id]
        if isinstance(schema, Fault):
            raise _Refused(schema)
        source = io.BytesIO(value)
        source.seek(AVRO_HEAD_BYTES)
        try:
            record = fastavro.schemaless_reader(source, schema.parsed, None)
            if source.tell() != len(value):
                raise ValueError(f"{len(value) - source.tell()} bytes are left over")
            if schema.floats and not _finite(record, _DEEPEST):
                raise _Refused(Fault(Reason.NAN, "a number that is not finite"))
            return msgspec.json.encode(record), schema.connect
        except _BAD as error:
            detail = f"no record of schema {schema_id}: {type(error).__name__} {error}"
            raise _Refused(Fault(Reason.MALFORMED_AVRO, detail[:300])) from error

    def _schema(self, schema_id: int) -> WriterSchema | Fault:
        registry = self.options.registry
        if registry is None:
            detail = f"the message is Avro with schema id {schema_id}, and no registry is set: set source.registry.url"
            return Fault(Reason.UNKNOWN_SCHEMA_ID, detail)
        text = registry.schema(schema_id, self.subject)
        where = f"schema id {schema_id} (subject {self.subject}) at {registry.describe()}"
        if text is None:
            return Fault(Reason.UNKNOWN_SCHEMA_ID, f"{where}: the registry does not have it")
        try:
            return writer_schema(text)
        except ValueError as error:
            return Fault(Reason.UNSUPPORTED_TYPE, f"{where}: {error}"[:300])


_BAD = (ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError, RecursionError, UnicodeDecodeError)


def _finite(value: Any, depth: int) -> bool:  # noqa: ANN401 - what Avro holds
    """Whether the value contains no NaN and no infinite float: JSON would turn them into null."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict) and depth:
        return all(_finite(part, depth - 1) for part in value.values() if isinstance(part, (float, dict)))
    return True


def read(chunk: Chunk) -> None:
    """Decode the chunk's records. With automatic detection, records of other formats are left."""
    keys, faults = _keys(chunk)
    opener = _Opener(chunk.options, f"{chunk.records.topic}-value")
    live: list[int] = []
    payloads: list[Buffer] = []
    schemas: list[ConnectField | None] = []
    for at in chunk.live():
        value = chunk.records.values[at] or b""
        if chunk.options.format is Format.AUTO and not is_avro(value):
            chunk.foreign.append(at)
            continue
        try:
            if at in faults:
                raise _Refused(faults[at])
            payload, schema = opener.open(value) if is_avro(value) else _json(value)
        except _Refused as refused:
            chunk.refuse(at, refused.fault)
            continue
        live.append(at)
        payloads.append(payload)
        schemas.append(schema)
    chunk.keys = keys
    chunk.options = dataclasses.replace(chunk.options, format=Format.DEBEZIUM_AVRO)
    for group in chunk.tables_of(live, payloads, schemas):
        debezium.decode_group(chunk, group)


def _keys(chunk: Chunk) -> tuple[Keys, dict[int, Fault]]:
    """The keys as JSON, and faults of unreadable ones: without its key a row would count as one without a key."""
    opener = _Opener(chunk.options, f"{chunk.records.topic}-key")
    keys: list[bytes | None] = []
    faults: dict[int, Fault] = {}
    for at, key in enumerate(chunk.records.keys):
        keys.append(key)
        if key is not None and is_avro(key):
            try:
                keys[at] = opener.open(key)[0]
            except _Refused as refused:
                keys[at] = None
                faults[at] = dataclasses.replace(refused.fault, detail=f"key: {refused.fault.detail}")
    return read_keys(keys), faults


def _json(value: bytes) -> tuple[Buffer, ConnectField | None]:
    """A JSON record among Avro ones (a heartbeat, for example); any other value is not Avro."""
    if value[:1] in (b"\0", b""):
        raise _Refused(Fault(Reason.MALFORMED_AVRO, f"{len(value)} bytes are no Avro message"))
    return open_loose(value)


def as_json(value: bytes, options: DecodeOptions) -> bytes:
    """One Avro value of a DDL topic as JSON. Raises msgspec.ValidationError if it cannot be read."""
    try:
        return _Opener(options, "the DDL topic").open(value)[0]
    except _Refused as refused:
        raise msgspec.ValidationError(refused.fault.detail) from refused
