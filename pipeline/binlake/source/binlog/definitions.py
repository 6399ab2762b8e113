"""Definitions and statements of the binlog as records of schema changes, in the form that Debezium gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from binlake.decode.changes import SourceTable
from binlake.source.binlog.statements import LoggedStatement
from binlake.source.binlog.table_map import FieldType, LoggedColumn, LoggedTable
from binlake.source.database.source_table import DescribedTable, SourceColumn
from hudilake.errors import UnsupportedError

_BLOBS = {1: "tiny", 2: "", 3: "medium", 4: "long"}
_INTEGERS = {
    FieldType.TINY: "tinyint",
    FieldType.SHORT: "smallint",
    FieldType.INT24: "mediumint",
    FieldType.LONG: "int",
    FieldType.LONGLONG: "bigint",
    FieldType.FLOAT: "float",
    FieldType.DOUBLE: "double",
}
_PLAIN = {
    FieldType.YEAR: "year",
    FieldType.DATE: "date",
    FieldType.TIME: "time",
    FieldType.DATETIME: "datetime",
    FieldType.TIMESTAMP: "timestamp",
    FieldType.JSON: "json",
    FieldType.GEOMETRY: "geometry",
}
_FRACTIONAL = {FieldType.TIME2: "time", FieldType.DATETIME2: "datetime", FieldType.TIMESTAMP2: "timestamp"}
#: MariaDB's types that the binlog shows as BINARY.
OPAQUE_TYPES = ("uuid", "inet4", "inet6")
_ENCODE = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """Where a statement or a definition stands.

    Args:
        file, position: of its event.
        seconds: its time since the Unix epoch.
        server_id: of the server on which it happened first.
        gtid: of its transaction; None if it has none.
        mariadb: whether the server is a MariaDB.
        loaded: whether nobody has executed it there: a first load has asked for it.
    """

    file: str
    position: int
    seconds: int
    server_id: int
    gtid: str | None
    mariadb: bool
    loaded: bool = False

    def source(self) -> dict[str, object]:
        """The ``source`` of a record."""
        return {
            "connector": "mariadb" if self.mariadb else "mysql",
            "file": self.file,
            "pos": self.position,
            "ts_ms": self.seconds * 1000,
            "server_id": self.server_id,
            "gtid": self.gtid,
            "snapshot": "true" if self.loaded else "false",
            "exact_database": True,
        }


def statement_record(statement: LoggedStatement, place: StatementPlace) -> bytes:
    """The record of a DDL statement, without the definitions that it leads to."""
    return _ENCODE({"source": place.source(), "databaseName": statement.database, "ddl": statement.text})


def definition_record(table: LoggedTable, place: StatementPlace) -> bytes:
    """The record of a table's definition from a place on. Columns that cannot be read have no type that is known."""
    columns = []
    for column in table.columns:
        text = type_text(column)
        members = [_literal(one) for one in column.members]
        columns.append({"name": column.name, "typeName": text or "unreadable", "enumValues": members or None})
    return _definition("ALTER", table.source, columns, table.key, "", place)


def loaded_record(table: DescribedTable, created: str, place: StatementPlace) -> bytes:
    """The record of a table as a first load finds it. ``created``: the text of SHOW CREATE TABLE, which alone has
    foreign keys, partitions and generated columns."""
    columns = []
    for column in table.columns:
        members = [_literal(one) for one in column.type.options] if column.type is not None else []
        columns.append({"name": column.name, "typeName": column.type_text, "enumValues": members or None})
    return _definition("CREATE", table.name, columns, table.key, created, place)


def _definition(
    kind: str,
    source: SourceTable,
    columns: Sequence[Mapping[str, object]],
    key: Sequence[str],
    statement: str,
    place: StatementPlace,
) -> bytes:
    change = {
        "type": kind,
        "id": _quoted(source),
        "table": {"columns": columns, "primaryKeyColumnNames": list(key)},
    }
    record = {"source": place.source(), "databaseName": source.database, "ddl": statement, "tableChanges": [change]}
    return _ENCODE(record)


def unreadable_types(columns: Sequence[SourceColumn]) -> UnsupportedError | None:
    """Why changes of a table with these columns would all go to quarantine; None if they would not."""
    odd = [f"{one.name} {one.type_text}" for one in columns if one.type_text.lower() in OPAQUE_TYPES]
    if not odd:
        return None
    return UnsupportedError(
        f"the binlog does not tell the types of {', '.join(odd)} from BINARY: every changed row would go to quarantine",
        do_next="read this server through Debezium and Kafka, or leave the table out (tables.exclude)",
    )


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _quoted(source: SourceTable) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in (source.database, source.table))


def type_text(column: LoggedColumn) -> str | None:
    """The column's type as DDL writes it; None if its values cannot be read."""
    kind, charset = column.kind, column.charset
    if column.opaque or (charset is not None and not charset.codec):
        return None
    sign = " unsigned" if column.unsigned else ""
    if kind in _INTEGERS:
        return _INTEGERS[kind] + sign
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _FRACTIONAL:
        return f"{_FRACTIONAL[kind]}({column.size})" if column.size else _FRACTIONAL[kind]
    if kind is FieldType.DECIMAL:
        return f"decimal({column.size},{column.scale}){sign}"
    if kind is FieldType.BIT:
        return f"bit({column.size})"
    if kind in (FieldType.ENUM, FieldType.SET):
        return kind.name.lower()
    if kind is FieldType.BLOB:
        return _BLOBS[column.size] + ("blob" if charset is None else "text")
    if kind in (FieldType.VARCHAR, FieldType.VAR_STRING, FieldType.STRING):
        stem = "" if kind is FieldType.STRING else "var"
        width = charset.width if charset is not None else 1
        return f"{stem}{'char' if charset is not None else 'binary'}({column.size // width})"
    return None
