"""Debezium's Avro events (Confluent's wire format) -> the equivalent JSON, with its Connect schema.

A value is a zero byte, the id of the writer's schema in the registry, and one Avro record. The record becomes the JSON
that Connect's own JSON converter would write. The ordinary reader then decodes it, so types, order and checks are those
of Debezium's JSON with embedded schemas.
"""

from __future__ import annotations

import dataclasses

import msgspec

from binlake.decode.formats import debezium
from binlake.decode.formats.avro_records import Opener, RefusedRecordError
from binlake.decode.formats.avro_schema import writer_schema
from binlake.decode.messages.chunk import DecodeChunk
from binlake.decode.messages.format_detection import is_avro
from binlake.decode.messages.frames import open_loose
from binlake.decode.messages.keys import Keys, read_keys
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.quarantine import Buffer, Fault, Reason
from binlake.decode.types.columns import ConnectField


def read(chunk: DecodeChunk) -> None:
    """Decode the chunk's records. With automatic detection, records of other formats are left."""
    keys, faults = _keys(chunk)
    opener = Opener(chunk.options, f"{chunk.records.topic}-value", writer_schema)
    live: list[int] = []
    payloads: list[Buffer] = []
    payload: Buffer
    schemas: list[ConnectField | None] = []
    for index in chunk.live():
        value = chunk.records.values[index] or b""
        if chunk.options.format is EventFormat.AUTO and not is_avro(value):
            chunk.foreign.append(index)
            continue
        try:
            if index in faults:
                raise RefusedRecordError(faults[index])
            if is_avro(value):
                payload, writer = opener.open(value)
                schema: ConnectField | None = writer.connect
            else:
                payload, schema = _json(value)
        except RefusedRecordError as refused:
            chunk.refuse(index, refused.fault)
            continue
        live.append(index)
        payloads.append(payload)
        schemas.append(schema)
    chunk.keys = keys
    chunk.opened = dict(zip(live, payloads, strict=True))
    chunk.options = dataclasses.replace(chunk.options, format=EventFormat.DEBEZIUM_AVRO)
    for group in chunk.tables_of(live, payloads, schemas):
        debezium.decode_group(chunk, group)


def _keys(chunk: DecodeChunk) -> tuple[Keys, dict[int, Fault]]:
    """The keys as JSON, and faults of unreadable ones: without its key a row would count as one without a key."""
    opener = Opener(chunk.options, f"{chunk.records.topic}-key", writer_schema)
    keys: list[bytes | None] = []
    faults: dict[int, Fault] = {}
    for index, key in enumerate(chunk.records.keys):
        keys.append(key)
        if key is not None and is_avro(key):
            try:
                keys[index] = opener.open(key)[0]
            except RefusedRecordError as refused:
                keys[index] = None
                faults[index] = dataclasses.replace(refused.fault, detail=f"key: {refused.fault.detail}")
    return read_keys(keys), faults


def _json(value: bytes) -> tuple[Buffer, ConnectField | None]:
    """A JSON record among Avro ones (a heartbeat, for example); any other value is not Avro."""
    if value[:1] in (b"\0", b""):
        raise RefusedRecordError(Fault(Reason.MALFORMED_AVRO, f"{len(value)} bytes are no Avro message"))
    return open_loose(value)


def as_json(value: bytes, options: DecodeOptions) -> bytes:
    """One Avro value of a DDL topic as JSON. Raises msgspec.ValidationError if it cannot be read."""
    try:
        return Opener(options, "the DDL topic", writer_schema).open(value)[0]
    except RefusedRecordError as refused:
        raise msgspec.ValidationError(refused.fault.detail) from refused
