"""The shapes of Canal's messages, and what one says of its table: name, types and key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from binlake.decode.changes import SourceTable
from binlake.decode.messages.chunk import DecodeChunk, reject_invalid, reject_misfit
from binlake.decode.messages.envelopes import Long
from binlake.decode.options import EventFormat
from binlake.decode.quarantine import Buffer, Fault, Reason, json_fault
from binlake.decode.schemas.schemas import ALWAYS, SchemaVersion
from binlake.decode.types.mysql_types import parse_type
from hudilake.errors import UnsupportedError

_NULL = b"null"
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
MEMBERS = dict.fromkeys(
    (b'"data":', b'"old":', b'"database":', b'"table":', b'"type":', b'"mysqlType":', b'"pkNames":'), 1
)


class _Loose(msgspec.Struct, gc=False, rename="camel"):
    """A message. ``data`` and ``old`` hold a row image for every row."""

    type: str
    database: str | None = None
    table: str | None = None
    data: list[msgspec.Raw] | None = None
    old: list[msgspec.Raw] | None = None
    mysql_type: msgspec.Raw = msgspec.Raw(_NULL)
    pk_names: tuple[str, ...] | None = None
    is_ddl: bool | None = None
    sql: str | None = None
    gtid: str | None = None
    es: Long | None = None
    sql_type: msgspec.Raw = msgspec.Raw(_NULL)


class CanalMessage(msgspec.Struct, gc=False, rename="camel"):
    """The same with every member that distinguishes it from messages of other formats."""

    type: str
    database: str | None
    table: str | None
    data: list[msgspec.Raw] | None
    old: list[msgspec.Raw] | None
    mysql_type: msgspec.Raw
    pk_names: tuple[str, ...] | None
    is_ddl: bool | None
    sql: str | None
    es: Long | None
    sql_type: msgspec.Raw
    gtid: str | None = None


AnyMessage = CanalMessage | _Loose
STRICT = msgspec.json.Decoder(CanalMessage).decode
_LOOSE = msgspec.json.Decoder(_Loose).decode
TYPES = msgspec.json.Decoder(dict[str, str]).decode


def inner_parts(message: AnyMessage) -> Iterator[Buffer]:
    """The parts of a message in which a member name is data."""
    yield from message.data or ()
    yield from message.old or ()
    yield message.mysql_type
    yield message.sql_type


def heads_of(chunk: DecodeChunk, live: list[int]) -> list[tuple[int, AnyMessage]]:
    """The records that are messages, with these; others are settled."""
    heads: list[tuple[int, AnyMessage]] = []
    for index in live:
        value = chunk.records.values[index] or b""
        try:
            heads.append((index, STRICT(value)))
        except _BAD:
            if (head := _loose(chunk, index, value)) is not None:
                heads.append((index, head))
    return heads


def _loose(chunk: DecodeChunk, at: int, value: bytes) -> AnyMessage | None:
    """A message with missing members; None for any other value, which is settled here."""
    if not reject_invalid(chunk, at, value, EventFormat.CANAL):
        try:
            return _LOOSE(value)
        except _BAD as error:
            reject_misfit(chunk, at, value, str(error))
    return None


def source_of(message: AnyMessage) -> SourceTable | None:
    """The table that a message names; None if MySQL can have none of that name."""
    return _named(message.database, message.table)


@lru_cache(maxsize=4096)
def _named(database: str | None, table: str | None) -> SourceTable | None:
    return SourceTable.named(bare_name(database), bare_name(table)) if database and table else None


def bare_name(name: str) -> str:
    """A name without backticks."""
    quoted = len(name) > 2 and name[0] == name[-1] == "`"
    return name[1:-1].replace("``", "`") if quoted else name


@lru_cache(maxsize=1024)
def version_of(types: bytes, key: tuple[str, ...] | None) -> SchemaVersion | Fault | None:
    """The schema that ``mysqlType`` describes; None where there is none."""
    if types == _NULL:
        return None
    if (fault := json_fault(types, 2)) is not None:
        return fault
    try:
        texts = TYPES(types)
    except _BAD as error:
        return Fault(Reason.BAD_VALUE, f"mysqlType: {error}")
    columns, unsupported = [], []
    for name, text in texts.items():
        try:
            columns.append((name, parse_type(text)))
        except UnsupportedError:
            unsupported.append(name)
    return SchemaVersion(ALWAYS, tuple(columns), key or (), tuple(unsupported)) if texts else None
