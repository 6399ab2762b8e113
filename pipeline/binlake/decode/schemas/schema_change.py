"""The connector's schema-change records (from the DDL topic, or its own schema history) as table changes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from binlake.decode.changes import SourceTable
from binlake.decode.types.mysql_types import CHARACTER_TYPES, MysqlType, enum_type, parse_type
from hudilake.errors import UnsupportedError


class ChangeKind(StrEnum):
    """The ``type`` of one table change."""

    CREATE = "CREATE"
    ALTER = "ALTER"
    DROP = "DROP"


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One table's new definition, from a binlog position on.

    ``columns`` is empty for DROP. ``unsupported`` names the columns whose type the lake does not support (they are not
    in ``columns``). ``previous`` is the former name when the statement renamed the table. ``server_id`` and ``gtid``
    select an epoch. ``incomplete``: columns whose digits or length the record lacks, each with the table and the column
    whose previous type has them.
    """

    kind: ChangeKind
    source: SourceTable
    file: str
    position: int
    server_id: int | None
    gtid: str | None
    columns: tuple[tuple[str, MysqlType], ...]
    key: tuple[str, ...]
    statement: str
    previous: SourceTable | None = None
    unsupported: tuple[str, ...] = ()
    incomplete: tuple[tuple[str, SourceTable, str], ...] = ()


class _ColumnText(msgspec.Struct, rename="camel"):
    name: str
    type_name: str = ""
    type_expression: str | None = None
    charset_name: str | None = None
    length: int | None = None
    scale: int | None = None
    enum_values: list[str] | None = None


class _Table(msgspec.Struct, rename="camel"):
    columns: list[_ColumnText]
    primary_key_column_names: list[str] = msgspec.field(default_factory=list)


class _Change(msgspec.Struct, rename="camel"):
    type: str
    id: str
    previous_id: str | None = None
    table: _Table | None = None


_MARIADB_GTID = re.compile(r"\d+-\d+-\d+(,\d+-\d+-\d+)*")


class _SourceBlock(msgspec.Struct):
    connector: str | None = None
    file: str | None = None
    pos: int | None = None
    server_id: int | None = None
    gtid: str | None = None
    gtids: str | None = None
    table: str | None = None
    snapshot: str | bool | None = None
    ts_ms: int | None = None
    ts_sec: int | None = None
    exact_database: bool = False
    strict: bool = False
    charset: str = ""

    @property
    def of_snapshot(self) -> bool:
        """Whether the connector generated the statement for a snapshot: nobody has executed it."""
        return self.snapshot not in (None, False, "false")

    @property
    def mariadb(self) -> bool:
        """Whether the server is a MariaDB, by the connector's name or the form of its GTIDs."""
        gtid = self.gtid or self.gtids
        return self.connector == "mariadb" or (gtid is not None and _MARIADB_GTID.fullmatch(gtid) is not None)

    @property
    def seconds(self) -> int | None:
        """The time of execution in seconds since the Unix epoch; None if it is not recorded."""
        return self.ts_sec if self.ts_ms is None else self.ts_ms // 1000


class _HistoryRecord(msgspec.Struct, rename="camel"):
    source: _SourceBlock
    database_name: str | None = None
    ddl: str | None = None
    table_changes: list[_Change] | None = None
    position: _SourceBlock | None = None


class _RecordEnvelope(msgspec.Struct):
    payload: _HistoryRecord


_PLAIN = msgspec.json.Decoder(_HistoryRecord)
_ENVELOPED = msgspec.json.Decoder(_RecordEnvelope)


@dataclass(frozen=True, slots=True)
class Statement:
    """A DDL statement and its place. ``source.table`` is as recorded: RENAME joins both names with a comma."""

    source: SourceTable
    file: str
    position: int
    server_id: int | None
    gtid: str | None
    text: str


def schema_changes(value: bytes | memoryview) -> list[SchemaChange]:
    """The table changes of one schema-change record, with or without embedded schema; [] if it names no table.

    Raises msgspec.MsgspecError if the value is not such a record.
    """
    record = _record(value)
    place = record.position if record.position is not None else record.source
    if place.file is None or place.pos is None:
        return []
    return [_change(record, place, change) for change in record.table_changes or [] if change.type in set(ChangeKind)]


def statement_of(value: bytes | memoryview) -> Statement:
    """The statement of a schema-change record about a table. Raises msgspec.MsgspecError for any other value."""
    record = _record(value)
    place = record.source
    if place.file is None or place.pos is None or not place.table or place.of_snapshot:
        raise msgspec.ValidationError("a schema-change record without file, pos or table, or a snapshot's")
    source = SourceTable(record.database_name or "", place.table)
    return Statement(source, place.file, place.pos, place.server_id, place.gtid, record.ddl or "")


@dataclass(frozen=True, slots=True)
class ExecutedStatement:
    """A DDL statement that was executed at the source, or a part of it. ``database``: of the name that the part ends
    with; for most statements that of names written without one. ``mariadb``: the server is a MariaDB. ``previous``: the
    former name of the renamed table; the connector's own history of schemas tells it. ``exact``: names without a
    database are of ``database``, for certain. ``strict``: the session is known to refuse values that do not fit.
    ``charset``: of the text columns that it defines and that name none, where the record tells it."""

    database: str
    file: str
    position: int
    server_id: int | None
    gtid: str | None
    seconds: int | None
    text: str
    mariadb: bool = False
    previous: SourceTable | None = None
    exact: bool = False
    strict: bool = False
    charset: str = ""


def executed(value: bytes | memoryview) -> ExecutedStatement | None:
    """The statement of a schema-change record; None for one that was generated for a snapshot or has no place.

    Raises msgspec.MsgspecError if it is not such a record.
    """
    record = _record(value)
    place = record.position if record.position is not None else record.source
    if place.file is None or place.pos is None or place.of_snapshot or not record.ddl:
        return None
    gtid = place.gtid or place.gtids
    mariadb = record.source.mariadb or place.mariadb
    database = record.database_name or ""
    former = [change.previous_id for change in record.table_changes or [] if change.previous_id]
    return ExecutedStatement(
        database,
        place.file,
        place.pos,
        place.server_id,
        gtid,
        place.seconds,
        record.ddl,
        mariadb,
        _table_of_id(former[0], database) if len(former) == 1 else None,
        record.source.exact_database,
        record.source.strict,
        record.source.charset,
    )


def _record(value: bytes | memoryview) -> _HistoryRecord:
    try:
        return _PLAIN.decode(value)
    except msgspec.ValidationError:
        return _ENVELOPED.decode(value).payload


def _change(record: _HistoryRecord, place: _SourceBlock, change: _Change) -> SchemaChange:
    source = _table_of_id(change.id, record.database_name or "")
    columns: list[tuple[str, MysqlType]] = []
    unsupported: list[str] = []
    for column in change.table.columns if change.table else []:
        try:
            columns.append((column.name, column_type(column)))
        except UnsupportedError:
            unsupported.append(column.name)
    return SchemaChange(
        kind=ChangeKind(change.type),
        source=source,
        file=place.file or "",
        position=place.pos or 0,
        server_id=place.server_id,
        gtid=place.gtid or place.gtids,
        columns=tuple(columns),
        key=tuple(change.table.primary_key_column_names) if change.table else (),
        statement=record.ddl or "",
        previous=_previous(record, change, source),
        unsupported=tuple(unsupported),
    )


def _previous(record: _HistoryRecord, change: _Change, source: SourceTable) -> SourceTable | None:
    """The former name in RENAME: the history has previousId; the DDL topic joins both names with a comma (measured)."""
    if change.previous_id:
        return _table_of_id(change.previous_id, source.database)
    named = record.source.table or ""
    if change.type == ChangeKind.ALTER and named.endswith("," + source.table) and named != source.table:
        return SourceTable(source.database, named[: -len(source.table) - 1])
    return None


def _table_of_id(table_id: str, database: str) -> SourceTable:
    """The table of ``"db"."table"``; quotes inside the names are doubled."""
    parts = [part.replace('""', '"') for part in table_id.strip('"').split('"."')]
    return SourceTable(parts[-2] if len(parts) > 1 else database, parts[-1])


def column_type(column: _ColumnText) -> MysqlType:
    """The type from typeExpression and the separate length, scale and options. Raises UnsupportedError."""
    name = (column.type_expression or column.type_name).strip()
    kind = name.split("(")[0].lower()
    if column.enum_values and kind in ("enum", "set"):  # Debezium keeps the values of a column that is an INT now
        text = f"{name.split('(')[0]}({','.join(column.enum_values)})"
        return enum_type(kind, column.enum_values, text + _in_charset(column))
    if "(" not in name and column.length is not None:
        arguments = f"({column.length},{column.scale})" if column.scale is not None else f"({column.length})"
        first, attributes = _name_and_attributes(name)
        name = f"{first}{arguments}{attributes}"
    if (column.charset_name or "").lower() == "binary" and kind in CHARACTER_TYPES:
        raise UnsupportedError(
            f"{name} of the character set binary comes as text or as bytes, and no message says which",
            do_next="declare the column as BINARY or VARBINARY",
        )
    return parse_type((name + _in_charset(column)).lower())


def _in_charset(column: _ColumnText) -> str:
    return "" if column.charset_name is None else f" character set {column.charset_name.lower()}"


def _name_and_attributes(name: str) -> tuple[str, str]:
    words = name.split()
    cut = next((i for i, word in enumerate(words) if word.upper() in ("UNSIGNED", "SIGNED", "ZEROFILL")), len(words))
    return " ".join(words[:cut]), "".join(f" {word}" for word in words[cut:])


def is_schema_change(document: dict[str, Any]) -> bool:
    """Whether a decoded JSON object has the shape of a schema-change record."""
    return "ddl" in document and "databaseName" in document and isinstance(document.get("source"), dict)
