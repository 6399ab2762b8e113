"""A table as the source's server describes it, and the SQL that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.decode.types.mysql_types import TEXT_BASES, MysqlType, parse_type
from hudilake.errors import ConfigError, UnsupportedError

if TYPE_CHECKING:
    from binlake.source.database.connection import SourceConnection

_FLOATS = frozenset({"float", "double"})
_SHORT_YEAR = 2
_COLUMNS = (
    "SELECT column_name, column_type, is_nullable, character_set_name FROM information_schema.columns "
    "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"
)
#: Databases of the servers themselves: their tables are nobody's data.
OWN_DATABASES = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
_KEYS = (
    "SELECT s.index_name, s.column_name, s.nullable FROM information_schema.statistics s "
    "WHERE s.table_schema = %s AND s.table_name = %s AND s.non_unique = 0 "
    "ORDER BY s.index_name <> 'PRIMARY', s.index_name, s.seq_in_index"
)
_ROWS = (
    "SELECT table_rows, engine, table_type FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
)
_TABLES = (
    "SELECT table_schema, table_name FROM information_schema.tables "
    "WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
)


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the source. ``type`` is None where the lake does not support it (``type_text``). ``charset``: of its
    text; None for other types."""

    name: str
    type_text: str
    type: MysqlType | None
    nullable: bool
    charset: str | None = None

    @property
    def selected(self) -> str:
        """The expression that gives the whole value: MySQL prints a FLOAT with six digits only, and as a DOUBLE with
        all of them (measured: a product keeps the sign of -0.0, a sum does not). Of a YEAR(2) MariaDB prints two
        digits; the function YEAR has four, and 1900 for 0000 (measured)."""
        name = quoted(self.name)
        if self.type is not None and self.type.base in _FLOATS:
            return f"{name} * 1e0"
        if self.type is not None and self.type.base == "year" and self.type.length == _SHORT_YEAR:
            return f"IF(YEAR({name}) = 1900, 0, YEAR({name}))"
        if self.type is not None and self.type.lake_type == pa.bool_():
            return f"{name} + 0"
        return name


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A table of the source.

    Args:
        name: of the table.
        columns: all of them, generated and invisible ones too, in the server's order.
        key: the primary key, else the first unique key without nullable columns; empty for a table without either.
        rows: the server's estimate.
        engine: what stores it (``InnoDB``); empty for a view.
        versioned: whether MariaDB keeps the former versions of its rows in it.
    """

    name: SourceTable
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    rows: int
    engine: str = ""
    versioned: bool = False

    @property
    def sql_name(self) -> str:
        """The quoted name."""
        return f"{quoted(self.name.database)}.{quoted(self.name.table)}"

    def column(self, name: str) -> SourceColumn:
        """The column of that name. Raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def describe(connection: SourceConnection, name: SourceTable) -> DescribedTable:
    """Ask the server for a table. Raises ConfigError if it has none of that name, TransientError."""
    where = (name.database, name.table)
    columns = tuple(_column(*row) for row in connection.rows(_COLUMNS, where))
    if not columns:
        raise ConfigError(
            "the source has no such table, or its user may not see it",
            do_next="if the table was dropped or renamed, name the tables that there are; else grant SELECT on it",
            table=str(name),
            server=connection.place,
        )
    [[rows, engine, kind]] = connection.rows(_ROWS, where)
    key, versioned = _key(connection.rows(_KEYS, where)), kind == "SYSTEM VERSIONED"
    return DescribedTable(name, columns, key, int(rows or 0), engine or "", versioned)


def tables_of(connection: SourceConnection) -> list[SourceTable]:
    """All tables that the user sees, by name."""
    return sorted((SourceTable(str(database), str(table)) for database, table in connection.rows(_TABLES)), key=str)


def tables_with(connection: SourceConnection, types: Sequence[str]) -> set[SourceTable]:
    """The tables that have a column of one of these types, as ``information_schema`` calls them."""
    listed = ", ".join(["%s"] * len(types))
    question = f"SELECT DISTINCT table_schema, table_name FROM information_schema.columns WHERE data_type IN ({listed})"  # noqa: S608
    return {SourceTable(str(database), str(table)) for database, table in connection.rows(question, tuple(types))}


def quoted(name: str) -> str:
    """An identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


def _column(name: object, type_text: object, nullable: object, charset: object) -> SourceColumn:
    try:
        kind: MysqlType | None = parse_type(str(type_text))
    except UnsupportedError:
        kind = None
    of_text = kind is not None and kind.base in TEXT_BASES and charset is not None
    return SourceColumn(str(name), str(type_text), kind, nullable == "YES", str(charset) if of_text else None)


def _key(rows: Sequence[Sequence[str | None]]) -> tuple[str, ...]:
    """The columns of the first unique index without nullable columns; the primary key comes first."""
    indexes: dict[str, list[tuple[str, bool]]] = {}
    for index, column, nullable in rows:
        unknown = column is None  # MySQL: an expression in place of a column
        indexes.setdefault(str(index), []).append((str(column), unknown or nullable == "YES"))
    for columns in indexes.values():
        if not any(nullable for _, nullable in columns):
            return tuple(column for column, _ in columns)
    return ()
