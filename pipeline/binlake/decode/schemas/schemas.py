"""Sources of a table's MySQL types, for messages that do not carry them or carry too little."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import AddColumn, AddUnique, ChangeKey, TableDefault
from binlake.decode.ddl.foreign_keys import Cascade
from binlake.decode.ddl.partitions import ChangePartitions
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.options import DecodeOptions
from binlake.decode.order import binlog_order
from binlake.decode.schemas.schema_change import ChangeKind, SchemaChange, schema_changes
from binlake.decode.types.mysql_types import MysqlType, parse_type

#: What a CREATE TABLE has that defines more than columns and a key.
_TELLING = re.compile(r"PARTITION|REFERENCES|\bAS\b|\bUNIQUE\b|\bSERIAL\b", re.IGNORECASE)
#: A ``since`` before every position.
ALWAYS = -1


Columns = tuple[tuple[str, MysqlType], ...]
#: What a CREATE TABLE defines beside its columns.
Defined = ChangePartitions | Cascade | AddColumn | AddUnique | ChangeKey | TableDefault


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """A table's columns from the ordering value ``since`` on. ``dropped``: the table does not exist from there on.
    ``created``: it comes from a CREATE TABLE, which has ``defined`` these partitions, foreign keys,
    generated columns with those of text, and default collation; and its unique indexes, with the primary key beside
    them."""

    since: int
    columns: tuple[tuple[str, MysqlType], ...] = ()
    key: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    dropped: bool = False
    created: bool = False
    defined: tuple[Defined, ...] = ()


class SchemaSource(Protocol):
    """Gives the decoder the known facts about a table. Implementations are picklable: they are sent to the tasks."""

    def versions(self, source: SourceTable) -> tuple[SchemaVersion, ...]:
        """The known versions by ascending ``since`` (of equal ones the last is in force); empty if unknown."""
        ...

    def key(self, source: SourceTable) -> tuple[str, ...] | None:
        """The declared key columns, which overrule those of the message; None if none are declared."""
        ...


@dataclass(frozen=True)
class NoSchemas:
    """Has no schemas: every message must carry its own."""

    def versions(self, source: SourceTable) -> tuple[SchemaVersion, ...]:
        """Always empty."""
        return ()

    def key(self, source: SourceTable) -> tuple[str, ...] | None:
        """Always None."""
        return None


@dataclass(frozen=True)
class DeclaredTable:
    """A table as the settings describe it. ``columns`` None: only the key is declared."""

    columns: tuple[tuple[str, MysqlType], ...] | None = None
    key: tuple[str, ...] | None = None


@dataclass(frozen=True)
class DeclaredSchemas:
    """Tables from the settings, the same at every position."""

    tables: Mapping[SourceTable, DeclaredTable]

    def versions(self, source: SourceTable) -> tuple[SchemaVersion, ...]:
        """One version if columns are declared."""
        table = self.tables.get(source)
        if table is None or table.columns is None:
            return ()
        return (SchemaVersion(ALWAYS, table.columns, table.key or ()),)

    def key(self, source: SourceTable) -> tuple[str, ...] | None:
        """The declared key."""
        table = self.tables.get(source)
        return table.key if table is not None else None


def declared_table(columns: Mapping[str, str] | None, key: Iterable[str] | None) -> DeclaredTable:
    """From settings: column name -> MySQL type text, and the key. Raises UnsupportedError for an unknown type."""
    parsed = None if columns is None else tuple((name, parse_type(text)) for name, text in columns.items())
    return DeclaredTable(parsed, None if key is None else tuple(key))


@dataclass(frozen=True)
class LayeredSchemas:
    """Several sources: the first that knows a table answers, separately for columns and key."""

    layers: tuple[SchemaSource, ...]

    def versions(self, source: SourceTable) -> tuple[SchemaVersion, ...]:
        """From the first layer that has any."""
        return next((layer_versions for layer in self.layers if (layer_versions := layer.versions(source))), ())

    def key(self, source: SourceTable) -> tuple[str, ...] | None:
        """From the first layer that has one."""
        return next((layer_key for layer in self.layers if (layer_key := layer.key(source)) is not None), None)


def _defined(statement: str) -> tuple[Defined, ...]:
    """The partitions, foreign keys, generated columns and unique indexes that a CREATE TABLE defines; beside generated
    columns also those of text, which they may compare."""
    if not _TELLING.search(statement):
        return ()
    clauses = [clause for ddl in parse_ddl(statement, "") for clause in ddl.clauses]
    defining = [c for c in clauses if isinstance(c, Defined)]
    computes = any(isinstance(c, AddColumn) and c.column.generated for c in defining)
    return tuple(
        c for c in defining if not isinstance(c, AddColumn) or c.column.generated or (computes and c.column.is_text)
    )


@dataclass
class SchemaHistory:
    """Table versions learned from schema-change records, kept by binlog position.

    Records may come again, in any order; known changes have no effect. ``revision`` grows with every new change, so
    that a stale copy elsewhere can be recognised. Snapshot records (server id 0) belong to the static epoch, as do
    the rows after them.
    """

    tables: dict[SourceTable, list[SchemaVersion]] = field(default_factory=dict)
    revision: int = 0

    def learn(self, value: bytes, options: DecodeOptions) -> list[SchemaChange]:
        """Add one record's value; returns its changes. Raises msgspec.MsgspecError if it is not such a record."""
        changes = schema_changes(value)
        for change in changes:
            self.apply(change, options)
        return changes

    def apply(self, change: SchemaChange, options: DecodeOptions) -> bool:
        """Add one change; False if it was known. Raises OverflowError if its position does not fit the order."""
        epoch = options.epoch_for(change.server_id, change.gtid)
        since = binlog_order(epoch, change.file, change.position)
        dropped = change.kind is ChangeKind.DROP
        columns, unsupported = self._completed(change, since)
        created = change.kind is ChangeKind.CREATE
        defined = _defined(change.statement) if created else ()
        version = SchemaVersion(since, columns, change.key, unsupported, dropped, created, defined)
        known = self.tables.setdefault(change.source, [])
        index = bisect.bisect_right(known, since, key=attrgetter("since"))
        same_place = bisect.bisect_left(known, since, key=attrgetter("since"))
        if version in known[same_place:index]:
            return False
        known.insert(index, version)
        self.revision += 1
        return True

    def _completed(self, change: SchemaChange, since: int) -> tuple[Columns, tuple[str, ...]]:
        """The columns, incomplete ones completed from earlier versions; and the names that stay incomplete."""
        columns = dict(change.columns)
        unsupported = list(change.unsupported)
        for name, table, former in change.incomplete:
            index = bisect.bisect_left(self.tables.get(table, []), since, key=attrgetter("since"))
            known = next((v for v in reversed(self.tables.get(table, [])[:index]) if not v.dropped), None)
            kind = dict(known.columns).get(former) if known is not None else None
            if kind is not None and kind.base == columns[name].base:
                columns[name] = kind
            else:
                del columns[name]
                unsupported.append(name)
        return tuple(columns.items()), tuple(unsupported)

    def versions(self, source: SourceTable) -> tuple[SchemaVersion, ...]:
        """All versions learned so far."""
        return tuple(self.tables.get(source, ()))

    def key(self, source: SourceTable) -> tuple[str, ...] | None:
        """None: a key learned from DDL does not overrule the message's."""
        return None

    def only(self, sources: Iterable[SourceTable]) -> SchemaHistory:
        """A copy with these tables alone, to be sent to tasks."""
        return SchemaHistory({s: list(self.tables[s]) for s in sources if s in self.tables}, self.revision)
