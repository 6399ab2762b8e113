"""Which tables the source has at a position, and in which database a statement looks up a name written without one.

Debezium cuts a statement into its parts, and names one database a part: that of the name which the part ends with. Of
``RENAME TABLE t TO other.u`` it says ``other``, and nothing says where ``t`` was (recorded with Debezium 3 and MariaDB;
its own history of schemas names the former table of RENAME TABLE, the topic of statements does not). Then the tables
decide that the source has at that position. More than one answer is possible; none of them is taken then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import EVERY_TABLE, Action, TableEffect
from binlake.decode.ddl.row_statements import changes_rows
from binlake.decode.schemas.schemas import SchemaVersion
from binlake.schema.rules.ddl_effects import VersionsOf

#: Stands for the database of a name that is written without one.
UNWRITTEN = ""


@dataclass(frozen=True, slots=True)
class StatementPart:
    """What one record tells of a statement.

    Args:
        order: the statement's ordering value.
        database: that the record names.
        done: the effects, with the names as they are written.
        previous: the former name of the renamed table, where the record tells it.
    """

    order: int
    database: str
    done: tuple[TableEffect, ...]
    previous: SourceTable | None = None

    @property
    def ends(self) -> Iterator[SourceTable]:
        """The names that the record's database belongs to, if they are written without one."""
        renamed = [ddl.to for ddl in self.done if ddl.to is not None]
        yield from renamed or [ddl.source for ddl in self.done[:1]]

    def recorded_databases(self) -> set[str]:
        """The database of names without one, if the record says it; empty otherwise."""
        if self.previous is not None and any(ddl.source == _unwritten(self.previous) for ddl in self.done):
            return {self.previous.database}
        ends = {name.database for name in self.ends}
        return {self.database} if UNWRITTEN in ends or self.database not in ends else set()


@dataclass
class TablesThere:
    """The tables that the source has, statement by statement.

    ``names``: before the next statement. ``versions_of``: the definitions of a table.
    """

    names: set[SourceTable]
    versions_of: VersionsOf

    @staticmethod
    def at_first(known: Iterable[SourceTable], parts: Iterable[StatementPart], versions_of: VersionsOf) -> TablesThere:
        """Those of the known tables that were there before the first statement: they were defined, or a statement used
        them, before a statement made one of that name."""
        made, used = dict[SourceTable, int](), set[SourceTable]()
        for part in parts:
            for ddl in part.done:
                if ddl.action is not Action.CREATE and ddl.source not in made and not changes_rows([ddl]):
                    used.add(ddl.source)
                new = ddl.to if ddl.to is not None else ddl.source if ddl.action is Action.CREATE else None
                if new is not None:
                    made.setdefault(_in(new, part.database), part.order)
        there = set()
        for name in known:
            first = next((version.since for version in versions_of(name)), None)
            if name not in made or name in used or (first is not None and first < made[name]):
                there.add(name)
        return TablesThere(there, versions_of)

    def databases(self, parts: Sequence[StatementPart]) -> list[str]:
        """The databases in which the statement of these parts may look up names without one: one that the records
        tell, or else all that have such tables at this position; empty if none is known to."""
        recorded = set().union(*(part.recorded_databases() for part in parts))
        if len(recorded) == 1:
            return list(recorded)
        if not any(UNWRITTEN in (ddl.source.database, ddl.to and ddl.to.database) for p in parts for ddl in p.done):
            return [parts[0].database]
        known = sorted({table.database for table in self.names})
        return [one for one in known if self._fits(parts, one)]

    def take(self, done: Iterable[TableEffect]) -> bool:
        """Note what a statement does; False if it renames or alters a table that is not there."""
        possible = True
        for ddl in done:
            if ddl.action is Action.RENAME and ddl.to is not None:
                possible &= ddl.source in self.names and ddl.source != ddl.to
                self.names.discard(ddl.source)
                self.names.add(ddl.to)
            elif ddl.action is Action.CREATE:
                self.names.add(ddl.source)
            elif ddl.action is Action.DROP and ddl.source.table == EVERY_TABLE:
                self.names = {name for name in self.names if name.database != ddl.source.database}
            elif ddl.action is Action.DROP:
                self.names.discard(ddl.source)
            elif ddl.source.table != EVERY_TABLE:
                possible &= ddl.source in self.names
        return possible

    def _fits(self, parts: Sequence[StatementPart], database: str) -> bool:
        """Whether the statement can have looked its names up in a database."""
        done = [in_database(ddl, database) for part in parts for ddl in part.done]
        return TablesThere(set(self.names), self.versions_of).take(done) and all(
            self._same(ddl, parts[0].order) for ddl in done if not _changes_columns(done, ddl.source)
        )

    def _same(self, ddl: TableEffect, order: int) -> bool:
        """Whether the definitions before and after allow that a table was only renamed."""
        if ddl.action is not Action.RENAME or ddl.to is None or ddl.source not in self.names:
            return True
        before = [version for version in self.versions_of(ddl.source) if version.since < order]
        after = [version for version in self.versions_of(ddl.to) if version.since == order]
        if not before or not after or before[-1].dropped or after[-1].dropped:
            return True
        return _definition(before[-1]) == _definition(after[-1])


def in_database(ddl: TableEffect, database: str) -> TableEffect:
    """The effect with its unwritten names in a database."""
    if not any(name.database == UNWRITTEN for name in _names(ddl)):
        return ddl
    to, like = ddl.to and _in(ddl.to, database), ddl.like and _in(ddl.like, database)
    return replace(ddl, source=_in(ddl.source, database), to=to, like=like)


def _names(ddl: TableEffect) -> Iterator[SourceTable]:
    yield from (name for name in (ddl.source, ddl.to, ddl.like) if name is not None)


def _in(name: SourceTable, database: str) -> SourceTable:
    return SourceTable(database, name.table) if name.database == UNWRITTEN else name


def _unwritten(name: SourceTable) -> SourceTable:
    return SourceTable(UNWRITTEN, name.table)


def _changes_columns(done: Sequence[TableEffect], source: SourceTable) -> bool:
    return any(ddl.source == source and ddl.clauses for ddl in done)


def _definition(version: SchemaVersion) -> tuple[object, ...]:
    return version.columns, version.key, version.unsupported
