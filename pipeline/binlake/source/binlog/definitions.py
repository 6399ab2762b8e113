"""Definitions and statements of the binlog as records of schema changes, in the form that Debezium gives them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import in_charset
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.types.mysql_types import UNDETERMINED_CHARSET
from binlake.source.binlog.charsets import Charset
from binlake.source.binlog.dump import BinlogEvent
from binlake.source.binlog.places import offset_of
from binlake.source.binlog.statements import LoggedStatement
from binlake.source.binlog.table_map import FieldType, LoggedColumn, LoggedTable, definition_of, table_of
from binlake.source.binlog.tables_then import TableThen
from binlake.source.database.source_table import OWN_DATABASES, DescribedTable, SourceColumn
from hudilake.errors import BadInputError, UnsupportedError

_log = logging.getLogger(__name__)

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


def statement_record(statement: LoggedStatement, place: StatementPlace, charset: str = "") -> bytes:
    """The record of a DDL statement, without the definitions that it leads to. ``charset``: of text columns that name
    none."""
    source = place.source() | {"strict": statement.strict} | ({"charset": charset} if charset else {})
    return _ENCODE({"source": source, "databaseName": statement.database, "ddl": statement.text})


def definition_record(table: LoggedTable, place: StatementPlace) -> bytes:
    """The record of a table's definition from a place on. Columns that cannot be read have no type that is known."""
    columns = []
    for column in (one for one in table.columns if not one.hidden):
        text = type_text(column)
        members, charset = [_literal(one) for one in column.members], column.charset
        columns.append(_column(column.name, text or "unreadable", members, charset.name if charset else None))
    return _definition("ALTER", table.source, columns, table.key, "", place)


def loaded_record(table: DescribedTable, created: str, place: StatementPlace) -> bytes:
    """The record of a table as a first load finds it. ``created``: the text of SHOW CREATE TABLE, which alone has
    foreign keys, partitions and generated columns."""
    columns = []
    for column in table.columns:
        members = [_literal(one) for one in column.type.options] if column.type is not None else []
        columns.append(_column(column.name, column.type_text, members, column.charset))
    return _definition("CREATE", table.name, columns, table.key, created, place)


def _column(name: str, type_text: str, members: Sequence[str], charset: str | None) -> dict[str, object]:
    return {"name": name, "typeName": type_text, "enumValues": members or None, "charsetName": charset}


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


@dataclass(frozen=True)
class DefinitionReader:
    """Reads definitions, and asks for what the binlog of a MariaDB leaves open.

    Args:
        charsets: by the id of the collation.
        mariadb: whether the server is a MariaDB.
        then: what a definition at an offset leaves open, as ``TablesThen.at``.
        default_charset: that of a table behind the statement at an offset, as ``DefaultCharsets.after``.
        selects: whether a table is taken into the lake.
    """

    charsets: Mapping[int, Charset]
    mariadb: bool
    then: Callable[[LoggedTable, int], TableThen]
    default_charset: Callable[[SourceTable, LoggedStatement, int], str]
    selects: Callable[[SourceTable], bool]

    def charset_in(self, statement: LoggedStatement, offset: int) -> str:
        """The character set of text columns that the statement at an offset defines and that name none; "" if it has
        none such of a table that is taken."""
        for effect in parse_ddl(statement.text, statement.database):
            takes = self.selects(effect.source) and effect.source.database not in OWN_DATABASES
            if takes and in_charset(effect.clauses, lambda name: UNDETERMINED_CHARSET) != effect.clauses:
                return self.default_charset(effect.source, statement, offset)
        return ""

    def read(self, mapped: BinlogEvent) -> LoggedTable | None:
        """The definition of a TABLE_MAP event; None if the table's rows are not read.

        Raises BadInputError as ``definition_of``, and where a column has or may have digits of a second in a form that
        does not say how many; not for a table that is not taken.
        """
        _, source = table_of(mapped.body)
        if source.database in OWN_DATABASES:
            return None
        try:
            table = definition_of(mapped.body, self.charsets, mapped.place, mariadb=self.mariadb)
            if not self.mariadb or not (table.open_columns or table.may_be_versioned):
                return table
            return _completed(table, self.then(table, offset_of(mapped.file, mapped.start)), mapped.place)
        except BadInputError:
            if self.selects(source):
                raise
            return None


def _completed(table: LoggedTable, then: TableThen, place: str) -> LoggedTable:
    for column in table.columns:
        words = (then.types.get(column.name.lower()) or "").lower().split()
        if column.may_have_digits and words[:1] != [_PLAIN[column.kind]]:
            raise BadInputError(
                f"column {column.name} of {table.source} at {place} of the binlog may have digits of a second in the "
                "form of MariaDB before 10.1 (mysql56_temporal_format = OFF), which does not say how many",
                do_next="leave the table out (tables.exclude); or ALTER TABLE ... FORCE with mysql56_temporal_format = "
                "ON, and load it anew under another stream",
            )
    columns = tuple(_completed_column(column, then, in_period=table.may_be_versioned) for column in table.columns)
    if open_ones := [one.name for one in columns if one.opaque and _is_open(one, then)]:
        fields = {"event": "binlog_undetermined", "table": str(table.source), "columns": open_ones, "place": place}
        _log.warning(
            "the binlog does not say what %s of %s was at %s, and a later statement changed it: rows go to quarantine",
            ", ".join(open_ones),
            table.source,
            place,
            extra=fields,
        )
    return replace(table, columns=columns)


def _completed_column(column: LoggedColumn, then: TableThen, *, in_period: bool) -> LoggedColumn:
    """What is not determined is not read."""
    kind = then.types.get(column.name.lower())
    is_opaque = column.may_be_opaque and (kind is None or kind.lower() in OPAQUE_TYPES)
    is_period = in_period and column.may_be_period and then.versioned is not False
    is_own = column.may_be_hidden and column.name.lower() not in then.types
    may_be_own = column.may_be_hidden and kind is None and not is_own
    return replace(column, opaque=is_opaque or is_period or may_be_own, hidden=is_own)


def _is_open(column: LoggedColumn, then: TableThen) -> bool:
    if column.may_be_opaque or column.may_be_hidden:
        return then.types.get(column.name.lower()) is None
    return then.versioned is None


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
