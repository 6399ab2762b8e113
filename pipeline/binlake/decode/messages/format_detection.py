"""Detects the format of a message by its shape alone."""

from __future__ import annotations

from typing import Any

import msgspec

from binlake.decode.options import EventFormat
from binlake.decode.quarantine import Buffer

_ANY = msgspec.json.Decoder().decode
_CANAL = frozenset({"database", "table", "type", "data"})
_CANAL_ALONE = frozenset({"isDdl", "mysqlType", "pkNames"})
_MAXWELL = frozenset({"database", "type", "ts"})
_BIGTABLE = frozenset({"rowKey", "modType", "columnFamily", "commitTimestamp", "sourceTable"})
#: Types of Maxwell's messages without a row.
MAXWELL_DDL = frozenset(
    {"database-create", "database-alter", "database-drop", "table-create", "table-alter", "table-drop"}
)
_DDL_TYPES = tuple(MAXWELL_DDL)  # a type may be any value, hashable or not
#: A zero byte, a schema id of four bytes, and the record.
AVRO_HEAD_BYTES = 5


def is_avro(value: Buffer) -> bool:
    """Whether a value has the head of Confluent's wire format. JSON never begins with a zero byte."""
    return len(value) > AVRO_HEAD_BYTES and value[0] == 0


def format_of(document: dict[str, Any]) -> EventFormat:
    """The format of a decoded JSON object. One of no other format goes to Debezium's reader."""
    names = document.keys()
    if "source" in names and "op" in names:
        return EventFormat.DEBEZIUM
    if names >= _CANAL and names & _CANAL_ALONE and isinstance(document["data"], list | None):
        return EventFormat.CANAL
    if names >= _MAXWELL and (isinstance(document.get("data"), dict) or document["type"] in _DDL_TYPES):
        return EventFormat.MAXWELL
    if _is_wal_entry(document):
        return EventFormat.HBASE_WAL
    return EventFormat.BIGTABLE if names >= _BIGTABLE else EventFormat.DEBEZIUM


def _is_wal_entry(document: dict[str, Any]) -> bool:
    """Whether an object looks like a WAL entry of HBase. Columns of MySQL are no objects in any format."""
    key, edit = document.get("key"), document.get("edit")
    return isinstance(key, dict) and isinstance(edit, dict) and "tablename" in key and "cells" in edit


def detect_format(value: Buffer) -> EventFormat:
    """The format of one message. An invalid message goes to Debezium's reader, which finds the fault."""
    if is_avro(value):
        return EventFormat.DEBEZIUM_AVRO
    try:
        document = _ANY(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return EventFormat.DEBEZIUM
    return format_of(document) if isinstance(document, dict) else EventFormat.DEBEZIUM


def has_schema(value: Buffer) -> bool:
    """Whether a message carries its schema: in JSON beside its payload, in Avro by an id."""
    return is_avro(value) or {"schema", "payload"} <= _document(value).keys()


def has_statement(value: Buffer) -> bool:
    """Whether a message has a statement in place of a row: of Debezium's schema change topic, or of its own history."""
    document = _document(value)
    inner = document.get("payload", document)
    return isinstance(inner, dict) and "ddl" in inner and "databaseName" in inner


def _document(value: Buffer) -> dict[str, Any]:
    try:
        document = _ANY(value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return {}
    return document if isinstance(document, dict) else {}
