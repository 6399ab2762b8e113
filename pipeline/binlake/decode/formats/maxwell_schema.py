"""Maxwell's own DDL messages (``table-create``, ``table-alter``, ``table-drop``) as schema changes.

Where Kafka's offset orders the rows, it orders the statements, too: they have it as their position.

The definition lacks the digits of a DECIMAL and the lengths of BIT and BINARY. They are taken from the statement where
it names the column, else from the table's previous definition (``SchemaChange.incomplete``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from binlake.decode.changes import POSITION_BITS, SourceTable
from binlake.decode.ddl.clauses import EVERY_TABLE, AddColumn, ModifyColumn, RenameColumn
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.quarantine import Buffer
from binlake.decode.schemas.schema_change import ChangeKind, SchemaChange
from binlake.decode.types.mysql_types import CHARACTER_TYPES, MysqlType, parse_type
from hudilake.errors import UnsupportedError

_KINDS = {"table-create": ChangeKind.CREATE, "table-alter": ChangeKind.ALTER, "table-drop": ChangeKind.DROP}
#: In place of the name of a binlog file, before the high part of a Kafka offset.
_OFFSETS = "offset."
_INCOMPLETE = frozenset({"decimal", "bit", "binary"})


class _Column(msgspec.Struct, rename="kebab"):
    name: str
    type: str
    signed: bool = True
    charset: str | None = None
    enum_values: list[str] | None = None
    column_length: int | None = None


class _Definition(msgspec.Struct, rename="kebab"):
    table: str
    database: str
    columns: list[_Column] = []
    primary_key: list[str] = []


class _SchemaRecord(msgspec.Struct):
    type: str
    database: str
    table: str | None = None
    ts: int = 0
    position: str | None = None
    sql: str = ""
    gtid: str | None = None
    definition: _Definition | None = msgspec.field(default=None, name="def")
    old: msgspec.Raw = msgspec.Raw(b"null")


_RECORD = msgspec.json.Decoder(_SchemaRecord).decode
_DOCUMENT = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_DEFINITION = msgspec.json.Decoder(_Definition | None).decode


def definition_changes(value: Buffer) -> list[SchemaChange]:
    """The table changes of one message: two for a table that was renamed; [] if it concerns no table.

    Raises msgspec.MsgspecError if it is not a Maxwell message about a table.
    """
    record = _RECORD(value)
    if record.type == "database-drop":
        return [_change(record, ChangeKind.DROP, SourceTable(record.database, EVERY_TABLE))]
    kind = _KINDS.get(record.type)
    if kind is None:
        return []
    if record.table is None:
        raise msgspec.ValidationError(f"{record.type} without a table")
    source = SourceTable(record.database, record.table)
    if kind is ChangeKind.DROP:
        return [_change(record, ChangeKind.DROP, source)]
    if record.definition is None:
        raise msgspec.ValidationError(f"{record.type} without def")
    old = _DEFINITION(record.old)
    former = SourceTable(old.database, old.table) if old is not None else source
    now = SourceTable(record.definition.database, record.definition.table)
    changes = [_change(record, ChangeKind.DROP, former)] if former != now else []
    return [*changes, _defined(record, record.definition, kind, now, former)]


def at_offset(value: Buffer, offset: int) -> bytes:
    """A message about a table with its Kafka offset as its position, for a stream whose rows are ordered by theirs.

    Raises msgspec.MsgspecError if it is no JSON object.
    """
    position = f"{_OFFSETS}{offset >> POSITION_BITS}:{offset & ((1 << POSITION_BITS) - 1)}"
    return msgspec.json.encode({**_DOCUMENT(value), "position": msgspec.Raw(msgspec.json.encode(position))})


def ordered_by_offset(change: SchemaChange) -> SchemaChange:
    """A change as rows that are ordered by offsets see it: one without an offset is older than all of them."""
    return change if change.file.startswith(_OFFSETS) else replace(change, file=f"{_OFFSETS}0", position=0)


def _place(record: _SchemaRecord) -> tuple[str, int]:
    """The place in the binlog. Where Maxwell writes none, the second, which orders before all places."""
    file, _, position = (record.position or "").rpartition(":")
    return (file, int(position)) if position.isdigit() else ("0", record.ts // 1000)


def _change(record: _SchemaRecord, kind: ChangeKind, source: SourceTable) -> SchemaChange:
    file, position = _place(record)
    return SchemaChange(kind, source, file, position, None, record.gtid, (), (), record.sql)


def _defined(
    record: _SchemaRecord, definition: _Definition, kind: ChangeKind, source: SourceTable, former: SourceTable
) -> SchemaChange:
    said = _said(record)
    columns: list[tuple[str, MysqlType]] = []
    unsupported: list[str] = []
    incomplete: list[tuple[str, SourceTable, str]] = []
    for column in definition.columns:
        try:
            kind_of, whole = _type(column, said)
        except UnsupportedError:
            unsupported.append(column.name)
            continue
        columns.append((column.name, kind_of))
        if not whole:
            incomplete.append((column.name, said.like or former, said.renamed.get(column.name, column.name)))
    file, position = _place(record)
    return SchemaChange(
        kind=kind,
        source=source,
        file=file,
        position=position,
        server_id=None,
        gtid=record.gtid,
        columns=tuple(columns),
        key=tuple(definition.primary_key),
        statement=record.sql,
        previous=former if former != source else None,
        unsupported=tuple(unsupported),
        incomplete=tuple(incomplete),
    )


@dataclass
class _StatementFacts:
    """The facts that a statement gives: types by lower-case name, former names, and the table of LIKE."""

    types: dict[str, MysqlType] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    like: SourceTable | None = None


def _said(record: _SchemaRecord) -> _StatementFacts:
    said = _StatementFacts()
    for ddl in parse_ddl(record.sql, record.database):
        said.like = ddl.like or said.like
        for clause in ddl.clauses:
            if isinstance(clause, RenameColumn):
                said.renamed[clause.new] = clause.old
            column = clause.column if isinstance(clause, AddColumn | ModifyColumn | RenameColumn) else None
            if column is not None and column.type is not None:
                said.types[column.name.lower()] = column.type
    return said


def _type(column: _Column, said: _StatementFacts) -> tuple[MysqlType, bool]:
    """The column's type, and whether it is complete. Raises UnsupportedError for an unknown type."""
    kind = parse_type(_text(column))
    if kind.base not in _INCOMPLETE:
        return kind, True
    stated = said.types.get(column.name.lower())
    return (stated, True) if stated is not None and stated.base == kind.base else (kind, False)


def _text(column: _Column) -> str:
    if column.enum_values is not None:
        options = ",".join("'" + v.replace("\\", "\\\\").replace("'", "''") + "'" for v in column.enum_values)
        return f"{column.type}({options})"
    text = column.type if column.column_length is None else f"{column.type}({column.column_length})"
    if not column.signed:
        text += " unsigned"
    return text + (" character set binary" if column.charset == "binary" and column.type in CHARACTER_TYPES else "")
