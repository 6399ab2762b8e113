"""The tables of a script as the server describes them at a moment, and their rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from demo.truth import Cell, TruthColumn, TruthTable
from demo.values import BINARIES, SPATIAL


class Queries(Protocol):
    """A connection to the server."""

    def query(self, sql: str) -> tuple[tuple[str | None, ...], ...]:
        """The rows of a statement that must succeed."""


@dataclass(frozen=True)
class Column:
    """A column as information_schema spells it: ``type`` with its length; ``generated``: by an expression."""

    name: str
    type: str
    nullable: bool
    default: str | None
    extra: str
    generated: bool
    charset: str | None

    @property
    def data_type(self) -> str:
        """The type's bare name."""
        return TruthColumn(self.name, self.type).data_type


@dataclass
class Table:
    """A table: its columns in order, its primary key, its other indexes (name -> unique?, columns) and partitions."""

    database: str
    name: str
    columns: list[Column] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    indexes: dict[str, tuple[bool, list[str]]] = field(default_factory=dict)
    method: str | None = None
    expression: str = ""
    partitions: list[str] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def plain(self) -> list[Column]:
        """The columns that statements give values to."""
        return [c for c in self.columns if not c.generated]

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(c for c in self.columns if c.name == name)


def read_tables(session: Queries, database: str, named: str) -> list[Table]:
    """The base tables of a database, in order of their names; they say that their database is ``named``."""
    where, kinds = f"WHERE table_schema = '{database}'", "'BASE TABLE', 'SYSTEM VERSIONED'"
    tables = {
        str(name): Table(named, str(name))
        for [name] in session.query(
            f"SELECT table_name FROM information_schema.tables {where} AND table_type IN ({kinds}) ORDER BY 1"
        )
    }
    _read_columns(session, where, tables)
    indexes = "SELECT table_name, index_name, non_unique, column_name FROM information_schema.statistics"
    for table, index, non_unique, column in session.query(f"{indexes} {where} ORDER BY 1, 2, seq_in_index"):
        held = tables[str(table)]
        if index == "PRIMARY":
            held.key.append(str(column))
        else:
            held.indexes.setdefault(str(index), (non_unique == "0", []))[1].append(str(column))
    partitions = (
        "SELECT table_name, partition_method, partition_expression, partition_name, partition_description"
        f" FROM information_schema.partitions {where} AND partition_name IS NOT NULL"
    )
    for table, method, expression, name, limit in session.query(f"{partitions} ORDER BY 1, partition_ordinal_position"):
        held = tables[str(table)]
        held.method, held.expression = str(method), expression or ""
        if name not in held.partitions:
            held.partitions.append(str(name))
            held.limits.append(limit or "")
    return list(tables.values())


def _read_columns(session: Queries, where: str, tables: dict[str, Table]) -> None:
    described = session.query(
        "SELECT table_name, column_name, column_type, is_nullable, column_default, extra, generation_expression,"
        f" character_set_name FROM information_schema.columns {where} ORDER BY table_name, ordinal_position"
    )
    for table, name, kind, nullable, default, extra, expression, charset in described:
        if str(table) in tables:
            column = Column(str(name), str(kind), nullable == "YES", default, extra or "", bool(expression), charset)
            tables[str(table)].columns.append(column)


def read_truth(session: Queries, database: str, table: Table) -> TruthTable:
    """``SELECT *`` of a table. Cells come in hexadecimal, which no client and no character set alters."""
    columns = tuple(TruthColumn(c.name, c.type, c.nullable) for c in table.columns)
    floats = [c for c in columns if c.data_type == "float"]
    chosen = [_as_hex(c) for c in columns] + [f"CAST({_quoted(c.name)} AS DOUBLE)" for c in floats]
    rows = session.query(f"SELECT {', '.join(chosen)} FROM {_quoted(database)}.{_quoted(table.name)}")
    cells = [tuple(_cell(c, text) for c, text in zip(columns, row, strict=False)) for row in rows]
    exact = {c.name: [row[len(columns) + at] for row in rows] for at, c in enumerate(floats)}
    return TruthTable(database, table.name, columns, tuple(table.key), cells, exact)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _is_bytes(column: TruthColumn) -> bool:
    return column.data_type in BINARIES | SPATIAL


def _as_hex(column: TruthColumn) -> str:
    name = _quoted(column.name)
    if _is_bytes(column):
        return f"HEX({name})"
    if column.data_type == "bit":
        return f"LPAD(HEX({name} + 0), {2 * ((column.length + 7) // 8)}, '0')"
    return f"HEX(CONVERT(CAST({name} AS CHAR) USING utf8mb4))"


def _cell(column: TruthColumn, text: str | None) -> Cell:
    if text is None:
        return None
    raw = bytes.fromhex(text)
    return raw if _is_bytes(column) or column.data_type == "bit" else raw.decode()
