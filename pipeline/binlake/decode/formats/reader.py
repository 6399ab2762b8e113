"""Entry point: records of any format -> change batches, by the declared format or by that of each message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import msgspec

from binlake.decode.changes import DecodedRecords, RawRecords
from binlake.decode.formats import (
    avro,
    canal,
    debezium,
    maxwell,
    maxwell_schema,
    plain_avro,
    plain_json,
)
from binlake.decode.formats.trace import transactions_of
from binlake.decode.messages.chunk import DecodeChunk
from binlake.decode.messages.format_detection import detect_format, format_of, is_avro
from binlake.decode.messages.frames import open_loose
from binlake.decode.options import DecodeOptions, EventFormat, MaxwellOrder
from binlake.decode.quarantine import Buffer
from binlake.decode.schemas import schema_change
from binlake.decode.schemas.schema_change import SchemaChange
from binlake.decode.schemas.schemas import SchemaSource
from binlake.hbase.formats import bigtable, cell_scan, hbase_wal

#: Formats of which tombstones may be all that tells of a delete. Messages of the others tell it.
_WITH_TOMBSTONES = frozenset({EventFormat.DEBEZIUM, EventFormat.DEBEZIUM_AVRO})


def _hbase_avro(chunk: DecodeChunk) -> None:
    from binlake.hbase.formats import hbase_avro  # needs compiled loops, seconds to import

    hbase_avro.read(chunk)


_READERS: Mapping[EventFormat, Callable[[DecodeChunk], None]] = MappingProxyType(
    {
        EventFormat.DEBEZIUM: debezium.read,
        EventFormat.CANAL: canal.read,
        EventFormat.MAXWELL: maxwell.read,
        EventFormat.DEBEZIUM_AVRO: avro.read,
        EventFormat.JSON: plain_json.read,
        EventFormat.AVRO: plain_avro.read,
        EventFormat.HBASE_WAL: hbase_wal.read,
        EventFormat.HBASE_AVRO: _hbase_avro,
        EventFormat.BIGTABLE: bigtable.read,
        EventFormat.BINLOG: debezium.read_binlog,
    }
)


def decode(records: RawRecords, schemas: SchemaSource, options: DecodeOptions) -> DecodedRecords:
    """Decode one chunk: consecutive records of one topic partition (10,000 to 200,000 is a good size).

    Every record is in exactly one place of the result. Bad input raises nothing. Raises TransientError where the schema
    registry gives no answer.
    """
    decoded = _decoded(records, schemas, options)
    for number, batch in enumerate(decoded.changes):
        if batch.schema.source in options.transactions_of:
            offsets = batch.rows.column("__offset").unique().to_pylist()
            decoded.changes[number] = replace(batch, transactions=transactions_of(records, offsets, options))
    return decoded


def _decoded(records: RawRecords, schemas: SchemaSource, options: DecodeOptions) -> DecodedRecords:
    if (source := cell_scan.scanned_table(records.topic)) is not None:
        chunk = DecodeChunk(records, schemas, options)
        cell_scan.read(chunk, source)
        return _settled(chunk.decoded)
    if options.format is not EventFormat.AUTO:
        return _settled(_read(records, schemas, options, options.format).decoded)
    decoded = DecodedRecords()
    rest = records
    while True:
        first = next((value for value in rest.values if value is not None), b"")
        chunk = _read(rest, schemas, options, detect_format(first))
        if rest is records and not chunk.foreign:
            return _settled(chunk.decoded)
        decoded.extend([chunk.decoded])
        if not chunk.foreign:
            return _settled(decoded)
        rest = rest.select(sorted(chunk.foreign))


def _read(records: RawRecords, schemas: SchemaSource, options: DecodeOptions, format_: EventFormat) -> DecodeChunk:
    """Run one reader. It takes all records that detect_format assigns to it, so each reader runs at most once."""
    chunk = DecodeChunk(records, schemas, options)
    _READERS[format_](chunk)
    if format_ not in _WITH_TOMBSTONES and len(chunk.foreign) + len(chunk.tombstones) < len(records):
        chunk.decoded.note_deletes(True)
    return chunk


def _settled(decoded: DecodedRecords) -> DecodedRecords:
    decoded.quarantined.sort(key=lambda record: record.offset)
    decoded.controls.sort(key=lambda control: control.offset)
    return decoded


def as_json(value: bytes, options: DecodeOptions) -> bytes:
    """A DDL record as JSON, from any format. Raises as ``table_changes`` does."""
    return avro.as_json(value, options) if is_avro(value) else value


def table_changes(value: bytes, options: DecodeOptions) -> list[SchemaChange]:
    """The table changes of a DDL record: Debezium's (JSON or Avro) or Maxwell's; [] if it defines no table.

    Raises msgspec.MsgspecError if it is not a record of a topic with DDL, TransientError as ``decode`` does.
    """
    value = as_json(value, options)
    if detect_format(value) is EventFormat.MAXWELL:
        changes = maxwell_schema.definition_changes(value)
        by_offset = options.maxwell_order is MaxwellOrder.OFFSET
        return [maxwell_schema.ordered_by_offset(change) for change in changes] if by_offset else changes
    return schema_change.schema_changes(value)


# What a format of change events does not carry, so that rows stay in the lake that the source has removed.
#
# The page on formats has the whole list; here is what removes rows.

_CHANGES = frozenset({EventFormat.AUTO, EventFormat.DEBEZIUM, EventFormat.MAXWELL})
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_ANY = msgspec.json.Decoder().decode
_STAY = "rows that they remove stay, and binlake verify finds them"
_MAXWELL = f"TRUNCATE, and without output_ddl any DDL, does not come in Maxwell's format: {_STAY}"


def not_carried(
    declared: EventFormat, message: Buffer | None, *, ddl_topics: bool, tombstone_deletes: bool = False
) -> str | None:
    """What does not come with the change events of a table, in words; None if all of it comes or that is not known.

    Args:
        declared: the format as the settings have it.
        message: one of its messages, if there is one at hand.
        ddl_topics: whether the stream reads a topic with DDL.
        tombstone_deletes: whether records without a value are deletes.
    """
    if declared is EventFormat.MAXWELL:
        return _MAXWELL
    if declared not in _CHANGES or message is None or is_avro(message):
        return None
    try:
        document = _ANY(open_loose(bytes(message))[0])
    except _BAD:
        return None
    if not isinstance(document, dict):
        return None
    if declared is EventFormat.AUTO and format_of(document) is EventFormat.MAXWELL:
        return _MAXWELL
    if format_of(document) is not EventFormat.DEBEZIUM or "op" in document or "status" in document:
        return None  # an envelope, a record of a transaction topic or another format
    ddl = "" if ddl_topics else " and DDL (kafka.ddl_topics is empty)"
    says_deletes = tombstone_deletes or any(name.endswith("deleted") for name in document)
    deletes = (
        "" if says_deletes else ", and deletes come without a value alone (source.debezium.tombstone_deletes is off)"
    )
    return f"TRUNCATE{ddl} does not come in the flat form{deletes}: {_STAY}"
