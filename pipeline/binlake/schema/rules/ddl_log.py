"""The known DDL statements, and what their names mean: which table of which database a part of a statement is about."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import EVERY_TABLE, Action, TableEffect
from binlake.decode.ddl.row_statements import changes_rows
from binlake.decode.ddl.statements import parse_ddl
from binlake.schema.rules.ddl_effects import DdlEvent, DdlHistory, VersionsOf
from binlake.schema.rules.ddl_names import HistoryBuilder, QualifiedPart, RuleOf
from binlake.schema.rules.row_places import has_binlog_place
from binlake.schema.rules.shadows import ShadowFacts
from binlake.schema.rules.tables_there import UNWRITTEN, StatementPart, TablesThere, in_database

_parsed = lru_cache(maxsize=4096)(parse_ddl)
NO_FACTS = ShadowFacts()


@dataclass
class DdlLog:
    """Statements by ordering value. They may be added repeatedly and in any order."""

    events: list[DdlEvent] = field(default_factory=list)
    revision: int = 0
    _known: set[tuple[int, str]] = field(default_factory=set)

    def add(self, event: DdlEvent, also: Iterable[str] = ()) -> bool:
        """Add a statement; False if it was known. ``also``: digests of further parts that it stands for."""
        key = (event.order, event.digest)
        if key in self._known:
            return False
        self._known |= {key, *((event.order, digest) for digest in also)}
        if not _is_covered(self.events, event):
            bisect.insort(self.events, event, key=lambda known: known.order)
        self.revision += 1
        return True

    def has_statement(self, table: SourceTable, after: int, until: int) -> bool:
        """Whether a statement about a table of this name stands behind one ordering value, and not behind another."""
        first = bisect.bisect_right(self.events, after, key=lambda known: known.order)
        last = bisect.bisect_right(self.events, until, key=lambda known: known.order)
        return any(
            table in (part.source, part.to)
            for event in self.events[first:last]
            if not event.by_rows
            for part in (in_database(written, event.database) for written in _parsed(event.text, UNWRITTEN))
        )

    def history(
        self,
        rule_of: RuleOf,
        known: Iterable[SourceTable] = (),
        recorded: Mapping[tuple[str, str, int | None], int] | None = None,
        versions_of: VersionsOf = lambda source: (),
        facts: ShadowFacts = NO_FACTS,
        there: Iterable[SourceTable] | None = None,
        said: Mapping[str, str] = MappingProxyType({}),
    ) -> DdlHistory:
        """The effects of the statements.

        Args:
            rule_of: the policy of each source table.
            known: existing tables besides those that statements name.
            recorded: ordering values under which statements (place, digest, seconds) were carried out; they are kept
                even if the epoch in the settings has been raised since.
            versions_of: the definitions of a table, ascending by ordering value: what a statement's text does not say.
            facts: what is known of the tables of schema change tools.
            there: the known tables by their names at the source; None for ``known``.
            said: place of a statement -> the database of its names without one, as the settings say it.
        """
        orders, known = recorded or {}, set(known)
        events = [replace(e, order=orders.get((e.place, e.digest, e.seconds), e.order)) for e in self.events]
        events.sort(key=lambda event: event.order)
        tables = TablesThere.at_first(known if there is None else there, map(_part, events), versions_of)
        named = [one for statement in _statements(events) for one in _named(statement, tables, said)]
        builder = HistoryBuilder(rule_of, known, versions_of, facts)
        for one in named:
            builder.note_beginnings(one)
        for one in named:
            builder.take(one)
        builder.history.shadows -= builder.history.names.keys()
        return builder.history


def _part(event: DdlEvent) -> StatementPart:
    return StatementPart(event.order, event.database, _parsed(event.text, UNWRITTEN), event.previous)


def _statements(events: Iterable[DdlEvent]) -> Iterator[list[DdlEvent]]:
    """The parts of each statement, which have one position. Kafka's offsets may be those of several partitions."""
    for order, parts in itertools.groupby(events, key=lambda event: event.order):
        if has_binlog_place(order):
            yield list(parts)
        else:
            yield from ([part] for part in parts)


def _is_covered(events: list[DdlEvent], event: DdlEvent) -> bool:
    """Whether a later statement leaves open what this one does; those that this one so covers are taken out. Only such
    as change rows do, and no other statement is between them: a log may have any number of them."""
    changed = _changed_by(event)
    first = bisect.bisect_right(events, event.order, key=lambda known: known.order)
    if not changed:
        return False
    for later in itertools.takewhile(_changed_by, itertools.islice(events, first, None)):
        if _changed_by(later) == changed:
            return True
    for index in range(first - 1, -1, -1):
        former = _changed_by(events[index])
        if former == changed:
            del events[index]
        if former is None or former == changed:
            break
    return False


def _changed_by(event: DdlEvent) -> tuple[str, tuple[TableEffect, ...]] | None:
    """The tables that a statement changes rows of, and the database of names without one; None for any other."""
    effects = _parsed(event.text, UNWRITTEN)
    return (event.database, effects) if changes_rows(effects) else None


def _named(parts: Sequence[DdlEvent], there: TablesThere, said: Mapping[str, str]) -> Iterator[QualifiedPart]:
    """The parts of a statement; ``there`` has the tables before it and, once all are taken, those after it. Rows are
    said to change in tables that are there: any other is a temporary table."""
    database = said.get(parts[0].place, parts[0].database if parts[0].exact else None)
    databases = [database] if database is not None else there.databases([_part(event) for event in parts])
    for event in parts:
        written = _parsed(event.text, UNWRITTEN)
        if changes_rows(written):  # the record names the session's database
            changed = tuple(in_database(ddl, event.database) for ddl in written)
            changed = tuple(ddl for ddl in changed if ddl.source.table == EVERY_TABLE or ddl.source in there.names)
            yield QualifiedPart(event, changed, (), [event.database])
            continue
        if len(databases) == 1:
            done = tuple(in_database(ddl, databases[0]) for ddl in written)
        else:
            done = tuple(ddl for ddl in written if ddl.source.database != UNWRITTEN)
        left_open = tuple(ddl for ddl in written if ddl not in done) if len(databases) != 1 else ()
        if not databases:  # from a database of which nothing is known
            done += tuple(TableEffect(Action.CREATE, ddl.to) for ddl in left_open if ddl.to is not None)
            left_open = ()
        there.names.update(ddl.to for ddl in left_open if ddl.to is not None)
        there.take(done)
        yield QualifiedPart(event, done, left_open, databases)
