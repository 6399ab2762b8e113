"""Debezium's Avro events (Confluent's wire format) -> change batches, of the types, order and checks of its JSON.

A value is a zero byte, the id of the writer's schema in the registry, and one Avro record. Envelopes are read by
compiled code that follows the writer's schema, all records of a schema at once (``decode/templates/avro_scan.py``). Any
other record, and any that this code does not take, becomes the JSON that Connect's own JSON converter would write, and
the ordinary reader decodes it: that says what is wrong with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import repeat
from typing import TYPE_CHECKING, overload

import msgspec
import numpy as np

from binlake.decode.events import RowEvents
from binlake.decode.formats import debezium
from binlake.decode.formats.avro_records import Opener, RefusedRecordError
from binlake.decode.formats.avro_schema import WriterSchema, writer_schema
from binlake.decode.messages.chunk import DecodeChunk
from binlake.decode.messages.format_detection import AVRO_HEAD_BYTES, is_avro
from binlake.decode.messages.frames import open_loose
from binlake.decode.messages.keys import KeyFields, Keys, is_frame, key_fields, read_keys
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.quarantine import Buffer, Fault, Reason
from binlake.decode.types.columns import ConnectField

if TYPE_CHECKING:
    from binlake.decode.templates.avro_program import AvroProgram

_IMAGES = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
#: An envelope's deepest value, a member of a column, is inside of so many objects.
_NESTING = 4


def read(chunk: DecodeChunk) -> None:
    """Decode the chunk's records. With automatic detection, records of other formats are left."""
    keys, faults = _keys(chunk)
    opener = Opener(chunk.options, f"{chunk.records.topic}-value", writer_schema)
    values = chunk.records.values
    live = chunk.live()
    if chunk.options.format is EventFormat.AUTO:
        chunk.foreign += [index for index in live if not is_avro(values[index] or b"")]
        live = [index for index in live if is_avro(values[index] or b"")]
    for index in sorted(faults.keys() & set(live)) if faults else ():
        chunk.refuse(index, faults[index])
    live = [index for index in live if index not in faults] if faults else live
    chunk.keys = keys
    chunk.open_record = lambda index: _opened(opener, values[index] or b"")[0]
    events, rest = _scanned(chunk, opener, live)
    others: list[int] = []
    payloads: list[Buffer] = []
    schemas: list[ConnectField | None] = []
    for index in rest:
        try:
            payload, schema = _opened(opener, values[index] or b"")
        except RefusedRecordError as refused:
            chunk.refuse(index, refused.fault)
            continue
        others.append(index)
        payloads.append(payload)
        schemas.append(schema)
    chunk.options = dataclasses.replace(chunk.options, format=EventFormat.DEBEZIUM_AVRO)
    groups = chunk.tables_of(others, payloads, schemas, events)
    chunk.decoded.by_template = sum(len(some) for _, some in events)  # not those that became JSON first
    for group in groups:
        debezium.decode_group(chunk, group)


def _opened(opener: Opener[WriterSchema], value: bytes) -> tuple[Buffer, ConnectField | None]:
    """The JSON of a value and its schema. Raises RefusedRecordError."""
    if not is_avro(value):
        return _json(value)
    payload, writer = opener.open(value)
    return payload, writer.connect


def _scanned(
    chunk: DecodeChunk, opener: Opener[WriterSchema], live: list[int]
) -> tuple[list[tuple[ConnectField, RowEvents]], list[int]]:
    """The envelopes that compiled code reads, by schema, and the indices of the other records."""
    from binlake.decode.templates.avro_scan import scan_avro_envelopes  # here: see ``sort_messages``

    values, options = chunk.records.values, chunk.options
    traced = bool(options.epoch_of_server or options.epoch_of_gtid_domain)
    read: list[tuple[ConnectField, RowEvents]] = []
    rest: list[int] = []
    for writer, chosen in _by_schema(opener, values, live):
        program = None if writer is None or options.max_nesting < _NESTING else _envelope_program(writer)
        if writer is None or program is None:
            rest += chosen
            continue
        spell = partial(_image, opener, values, chosen)
        messages = [values[index] or b"" for index in chosen]
        scan = scan_avro_envelopes(messages, chosen, AVRO_HEAD_BYTES, program, spell, traced=traced)
        rest += [chosen[i] for i in scan.rest.tolist()]
        if len(scan.rows):
            read.append((writer.connect, scan.events))
    return read, sorted(rest)


def _by_schema(
    opener: Opener[WriterSchema], values: Sequence[bytes | None], chosen: list[int]
) -> list[tuple[WriterSchema | None, list[int]]]:
    """Records by their writer's schema; None for those that have none. The same text has one schema for all its ids."""
    messages = [values[index] or b"" for index in chosen]
    heads: dict[bytes, list[int]] = {}
    first = messages[0][:AVRO_HEAD_BYTES] if messages and is_avro(messages[0]) else b""
    if first and all(map(bytes.startswith, messages, repeat(first))) and len(min(messages, key=len)) > len(first):
        heads[first] = chosen
    else:
        for index, value in zip(chosen, messages, strict=True):
            heads.setdefault(value[:AVRO_HEAD_BYTES] if is_avro(value) else b"", []).append(index)
    groups: dict[WriterSchema | None, list[int]] = {}
    for head, some in heads.items():
        schema = opener.schema(int.from_bytes(head[1:], "big")) if head else None
        groups.setdefault(None if isinstance(schema, Fault) else schema, []).extend(some)
    return [(schema, sorted(some)) for schema, some in groups.items()]


def _image(
    opener: Opener[WriterSchema], values: Sequence[bytes | None], chosen: list[int], row: int, name: str
) -> Buffer:
    """An image of a message that was read, as JSON."""
    return bytes(_IMAGES(opener.open(values[chosen[row]] or b"")[0])[name])


@lru_cache(maxsize=512)
def _envelope_program(writer: WriterSchema) -> AvroProgram | None:
    from binlake.decode.templates.avro_program import envelope_program

    return envelope_program(writer.parsed)


@lru_cache(maxsize=512)
def _record_program(writer: WriterSchema) -> AvroProgram | None:
    from binlake.decode.templates.avro_program import record_program

    return record_program(writer.parsed)


@dataclasses.dataclass(frozen=True)
class _KeyPayloads(Sequence[Buffer | None]):
    """Valid keys as JSON, made on access."""

    opener: Opener[WriterSchema]
    keys: Sequence[bytes | None]

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> Buffer | None: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Buffer | None]: ...

    def __getitem__(self, at: int | slice) -> Buffer | Sequence[Buffer | None] | None:
        if isinstance(at, slice):
            return _KeyPayloads(self.opener, self.keys[at])
        key = self.keys[at]
        return None if key is None else self.opener.open(key)[0]


def _keys(chunk: DecodeChunk) -> tuple[Keys, dict[int, Fault]]:
    """The keys as JSON, and faults of unreadable ones: without its key a row would count as one without a key."""
    opener = Opener(chunk.options, f"{chunk.records.topic}-key", writer_schema)
    valid = _valid_keys(opener, chunk.records.keys)
    if valid is not None:
        return valid, {}
    keys = list(chunk.records.keys)
    faults: dict[int, Fault] = {}
    for index in [i for i, key in enumerate(keys) if key and not key[0] and is_avro(key)]:
        try:
            keys[index] = opener.open(keys[index] or b"")[0]
        except RefusedRecordError as refused:
            keys[index] = None
            faults[index] = dataclasses.replace(refused.fault, detail=f"key: {refused.fault.detail}")
    return read_keys(keys), faults


def _valid_keys(opener: Opener[WriterSchema], keys: Sequence[bytes | None]) -> Keys | None:
    """The keys if all are Avro records that compiled code knows to be valid; else None."""
    from binlake.decode.templates.avro_scan import scan_avro

    there = [index for index, key in enumerate(keys) if key is not None]
    if not there or not is_avro(keys[there[0]] or b""):
        return None
    fields: list[KeyFields | None] = [None] * len(keys)
    groups = _by_schema(opener, keys, there)
    for writer, chosen in groups:
        program = None if writer is None else _record_program(writer)
        if writer is None or program is None or is_frame(names := [f.field for f in writer.connect.fields]):
            return None
        if not np.all(scan_avro([keys[index] or b"" for index in chosen], AVRO_HEAD_BYTES, program).known):
            return None
        said = key_fields(names)
        if len(groups) == 1 and len(chosen) == len(keys):
            return Keys(_KeyPayloads(opener, keys), said)
        for index in chosen:
            fields[index] = said
    return Keys(_KeyPayloads(opener, keys), fields)


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
