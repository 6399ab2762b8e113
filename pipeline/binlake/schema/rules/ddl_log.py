"""The known DDL statements and their effect on names: to which lake table the rows of a source table go.

A lake table belongs to the first name of its source table. After RENAME TABLE (policy ``follow``) rows under the new
name still go to it. A table that is then created under the old name gets another lake table (``t@@2``).

Online schema changes (pt-online-schema-change, gh-ost) fill a shadow of the table and swap the two. A shadow of ``t``
that is created while ``t`` exists gets the lake table that the next table called ``t`` gets, so it has the rules of
``t`` from its first row on; the swap is a RENAME TABLE like any other. Where the shadow's rows do not come, the
statements about it are applied to the table at the swap, and what they did to rows is not determined.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType

from binlake.decode.changes import FILE_BITS, POSITION_BITS, SourceTable
from binlake.decode.ddl.clauses import EVERY_TABLE, Action, AddColumn, ChangeKey, Clause, TableEffect, UnloggedChange
from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.ddl.partitions import ChangePartitions
from binlake.decode.ddl.row_statements import AS_STATEMENT, changes_rows
from binlake.decode.ddl.statements import parse_ddl
from binlake.schema.rules.plan import Name, name_at
from binlake.schema.rules.row_places import has_binlog_place
from binlake.schema.rules.shadows import (
    IN_PLACE,
    ShadowFacts,
    has_notes,
    renamed_unseen,
    shadowed,
    swapped_unseen,
    swaps,
)
from binlake.schema.rules.tables_there import UNWRITTEN, StatementPart, TablesThere, VersionsOf, in_database
from binlake.schema.rules.undetermined import UndeterminedEffect
from binlake.settings.schema_changes import SchemaChangeSettings
from binlake.settings.templates import later_table, plain_table

#: Policy of a source table.
RuleOf = Callable[[SourceTable], SchemaChangeSettings]
_parsed = lru_cache(maxsize=4096)(parse_ddl)
NO_FACTS = ShadowFacts()
#: How long a tool takes at most from the creation of its copy to the statements that alter it.
_MADE_WITHIN_S = 60


@dataclass(frozen=True, slots=True)
class DdlEvent:
    """A statement that was carried out at ordering value ``order``; ``place`` is the same position in readable form.

    ``seconds``: its time since the Unix epoch; None if it is not known. ``recorded``: the statement's digest, if
    ``text`` is not the statement's own text. ``mariadb``: the record shows that the server is a MariaDB. ``previous``:
    the former name of the renamed table, where the record tells it. ``exact``: names without a database are of
    ``database``, for certain.
    """

    order: int
    seconds: int | None
    place: str
    text: str
    database: str
    recorded: str = ""
    mariadb: bool = False
    previous: SourceTable | None = None
    exact: bool = False

    @property
    def digest(self) -> str:
        """A hash of the statement: it distinguishes statements of one position, and recognizes a repeated one."""
        return self.recorded or hashlib.blake2b(self.text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a statement on one lake table's source.

    ``old``, ``to``: names of RENAME; of CREATE, ``to`` is the name that a later table of that name was created under.
    ``note``: a remark. ``keys``: the table's key before and after the statement, as the source's definitions give it;
    None where they do not tell. ``empties``: of DROP, whether the rows go whatever the policy is: a tool has made or
    put away the table. ``unfilled``: of ALTER, whether the table has no rows yet: a tool has just
    made it. ``undetermined``: what the statement leaves open.
    """

    event: DdlEvent
    action: Action
    clauses: tuple[Clause, ...] = ()
    old: SourceTable | None = None
    to: SourceTable | None = None
    note: str = ""
    keys: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    empties: bool = False
    unfilled: bool = False
    undetermined: tuple[UndeterminedEffect, ...] = ()

    @property
    def changes_rows(self) -> bool:
        """Whether rows change by it, in the log as a statement."""
        return self.clauses == (AS_STATEMENT,)

    @property
    def lacks_rows(self) -> bool:
        """Whether the table may have rows by it of which no row is in the log."""
        return any(
            (isinstance(clause, UnloggedChange) and clause.brings)
            or (isinstance(clause, ChangePartitions) and clause.brings_rows)
            for clause in self.clauses
        )


@dataclass(frozen=True, slots=True)
class DatedName:
    """A name that a table has at the source since the statement at ``place``; "" for its first name. ``since``: the
    statement's ordering value."""

    name: SourceTable
    place: str = ""
    since: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class TableEnd:
    """A statement after which the source has a lake table's source table no more; ``how``: in words."""

    how: str
    place: str
    since: int


@dataclass
class DdlHistory:
    """The effects of all statements, table by table.

    ``effects``: by the table's first name. ``names``: the names of tables that were ever renamed. ``shadows``: the
    tables of schema change tools whose rows are not taken. ``called``: the names of each lake table, in order, if it
    ever had another one than its first. ``gone``: lake tables that no table of the source feeds any more. ``unsure``:
    lake tables whose names the statements do not determine, and why.
    """

    effects: dict[SourceTable, list[Effect]] = field(default_factory=dict)
    names: dict[SourceTable, list[Name]] = field(default_factory=dict)
    shadows: set[SourceTable] = field(default_factory=set)
    called: dict[SourceTable, list[DatedName]] = field(default_factory=dict)
    gone: dict[SourceTable, TableEnd] = field(default_factory=dict)
    unsure: dict[SourceTable, str] = field(default_factory=dict)

    def identity(self, source: SourceTable, order: int) -> Name:
        """The table to which rows of that name and ordering value belong."""
        return name_at(self.names.get(source, ()), order) or Name(-1, source)


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
        builder = _HistoryBuilder(rule_of, known, versions_of, facts)
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


@dataclass(frozen=True, slots=True)
class _QualifiedPart:
    """A part of a statement whose names have their databases.

    Args:
        event: the part.
        done: its effects.
        left_open: those on tables of one of several databases, without it.
        databases: those that the names without one may be of.
    """

    event: DdlEvent
    done: tuple[TableEffect, ...]
    left_open: tuple[TableEffect, ...]
    databases: Sequence[str]


def _named(parts: Sequence[DdlEvent], there: TablesThere, said: Mapping[str, str]) -> Iterator[_QualifiedPart]:
    """The parts of a statement; ``there`` has the tables before it and, once all are taken, those after it. Rows are
    said to change in tables that are there: any other is a temporary table."""
    database = said.get(parts[0].place, parts[0].database if parts[0].exact else None)
    databases = [database] if database is not None else there.databases([_part(event) for event in parts])
    for event in parts:
        written = _parsed(event.text, UNWRITTEN)
        if changes_rows(written):  # the record names the session's database
            changed = tuple(in_database(ddl, event.database) for ddl in written)
            changed = tuple(ddl for ddl in changed if ddl.source.table == EVERY_TABLE or ddl.source in there.names)
            yield _QualifiedPart(event, changed, (), [event.database])
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
        yield _QualifiedPart(event, done, left_open, databases)


@dataclass
class _HistoryBuilder:
    """``holders``: the name that each table in the lake has at the source now, None after DROP TABLE. ``emptied``:
    those whose rows went with it. ``begun``: where the first statement about a name is one that makes it, its place.
    ``made``: where statements give a name to another table, in order."""

    rule_of: RuleOf
    known: set[SourceTable]
    versions_of: VersionsOf
    facts: ShadowFacts
    history: DdlHistory = field(default_factory=DdlHistory)
    shadow_clauses: dict[SourceTable, list[Clause]] = field(default_factory=dict)
    holders: dict[SourceTable, SourceTable | None] = field(default_factory=dict)
    emptied: set[SourceTable] = field(default_factory=set)
    begun: dict[SourceTable, int | None] = field(default_factory=dict)
    made: dict[SourceTable, list[int]] = field(default_factory=dict)

    def note_beginnings(self, named: _QualifiedPart) -> None:
        """Note which names a part of a statement makes, if it is the first one about them. Call it in order, before
        any part is taken."""
        for ddl in (*named.done, *named.left_open):
            self.begun.setdefault(ddl.source, named.event.order if ddl.action is Action.CREATE else None)
            if ddl.to is not None:
                self.begun.setdefault(ddl.to, named.event.order)
            if ddl.to is not None or ddl.action is Action.CREATE:
                self.made.setdefault(ddl.to or ddl.source, []).append(named.event.order)

    def take(self, named: _QualifiedPart) -> None:
        """Take in a part of a statement."""
        if len(named.databases) > 1:
            self._leave_open(named.event, named.left_open, named.databases)
        event, done = named.event, named.done
        swapped = self._swapped_in_place(event, done)
        for ddl in done:
            if ddl.source in swapped or (ddl.to is not None and ddl.to in swapped):
                continue
            if ddl.action is Action.RENAME and ddl.to is not None:
                self._rename(event, ddl.source, ddl.to)
            elif ddl.source.table == EVERY_TABLE:
                for source in sorted(self.known, key=str):
                    if source.database == ddl.source.database:
                        self._effect(source, Effect(event, ddl.action, ddl.clauses))
            elif self._is_left_out(ddl.source, event, made=ddl.action is Action.CREATE):
                self._alter_shadow(ddl)
            elif ddl.action is Action.CREATE:
                self._create(event, ddl)
            else:
                self.known.add(ddl.source)
                self._effect(ddl.source, self._about(event, ddl))

    def _about(self, event: DdlEvent, ddl: TableEffect) -> Effect:
        keys, tools = self._keys(event, ddl.source), self._is_tools(ddl.source, event)
        unfilled = tools and not changes_rows([ddl]) and self._is_being_made(ddl.source, event)
        return Effect(event, ddl.action, ddl.clauses, keys=keys, empties=tools, unfilled=unfilled)

    def _is_being_made(self, source: SourceTable, event: DdlEvent) -> bool:
        """Whether a table was created just now under the name that it has, and has only been altered since. A tool
        alters its copy at once; a table that somebody fills before may not pass for empty."""
        identity = self.history.identity(source, event.order).identity or source
        effects = self.history.effects.get(identity, ())
        made = next((e for e in reversed(effects) if e.action is not Action.ALTER or e.changes_rows), None)
        if made is None or made.action is not Action.CREATE or None in (made.event.seconds, event.seconds):
            return False
        return (event.seconds or 0) - (made.event.seconds or 0) <= _MADE_WITHIN_S

    def _shadowed(self, source: SourceTable) -> SourceTable | None:
        """The table whose shadow a table may be, by its name; None where shadows are tables like any other."""
        base = shadowed(source)
        if base is None or base not in self.known or self.rule_of(base).shadow_tables != "filter":
            return None
        return base

    def _is_left_out(self, source: SourceTable, event: DdlEvent, *, made: bool = False) -> bool:
        """Whether the rows of a tool's table are not taken. One that has a lake table is taken, whatever its name.
        ``made``: whether the statement creates it; the lake table of any other has the rules of its own name."""
        base = self._shadowed(source)
        name = name_at(self.history.names.get(source, ()), event.order)
        if base is None or source in self.facts.lake or (name is not None and name.identity is not None):
            return False
        versions = self.versions_of(source)
        defined = [name for name, _ in next((v.columns for v in versions if v.columns), ())]
        fits = made or not self.facts.has_rules(source, base)
        if fits and self.facts.rows_come(source, base) and not has_notes(source, defined):
            return False
        self.history.shadows.add(source)
        return True

    def _is_tools(self, source: SourceTable, event: DdlEvent) -> bool:
        """Whether a tool has made a table, or put it away: another name's lake table has a shadow's name now."""
        base, identity = self._shadowed(source), self.history.identity(source, event.order).identity
        return base is not None and identity is not None and plain_table(identity.table) == base.table

    def _alter_shadow(self, ddl: TableEffect) -> None:
        clauses = self.shadow_clauses.setdefault(ddl.source, [])
        if ddl.action is Action.ALTER:
            clauses += ddl.clauses
        else:
            clauses.clear()

    def _swapped_in_place(self, event: DdlEvent, done: tuple[TableEffect, ...]) -> set[SourceTable]:
        """Swap shadows whose rows do not come with their tables: the definition changes and the rows stay. Returns the
        names of these tables and shadows."""
        renames = {d.source: d.to for d in done if d.action is Action.RENAME and d.to is not None}
        concerned: set[SourceTable] = set()
        for shadow, base in renames.items():
            if self._shadowed(shadow) != base or not self._is_unseen(shadow, event):
                continue
            concerned |= {shadow, base, *(new for old, new in renames.items() if old == base and swaps(old, new))}
            self._bring_back(base, event)
            self._effect(
                base,
                Effect(
                    event,
                    Action.ALTER,
                    tuple(self.shadow_clauses.pop(shadow, ())),
                    note=f"{IN_PLACE}{shadow}",
                    keys=self._keys(event, base),
                    undetermined=swapped_unseen(shadow),
                ),
            )
            if self._is_tools(shadow, event):  # it was not known yet when it was created
                self._effect(shadow, Effect(event, Action.DROP, empties=True))
        return concerned

    def _is_unseen(self, shadow: SourceTable, event: DdlEvent) -> bool:
        return (event.order, event.digest) in self.facts.in_place or self._is_left_out(shadow, event)

    def _bring_back(self, base: SourceTable, event: DdlEvent) -> None:
        """Give a table its name back that an earlier statement has put away for its shadow."""
        if self.history.identity(base, event.order).identity is None:
            away = [n for n in self.holders.values() if n is not None and shadowed(n) == base]
            if away:
                self._rename(event, away[-1], base)

    def _keys(self, event: DdlEvent, source: SourceTable) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The keys of a table before and after a statement, if its definitions tell both."""
        before = [v for v in self.versions_of(source) if v.since < event.order]
        after = [v for v in self.versions_of(source) if v.since == event.order]
        known = bool(before and after) and not before[-1].dropped and not after[-1].dropped
        return (before[-1].key, after[-1].key) if known else None

    def _effect(self, source: SourceTable, effect: Effect) -> None:
        identity = self.history.identity(source, effect.event.order).identity
        if identity is None:
            return
        self.history.effects.setdefault(identity, []).append(effect)
        if effect.action is Action.DROP:
            self.holders[identity] = None
            self.history.gone[identity] = TableEnd("dropped", effect.event.place, effect.event.order)
            if effect.empties or self.rule_of(source).drop_table == "delete":
                self.emptied.add(identity)

    def _create(self, event: DdlEvent, ddl: TableEffect, unseen: tuple[UndeterminedEffect, ...] = ()) -> None:
        """A table is created. If the lake table of its name goes on under another name, it gets another one.
        ``unseen``: what is not known of the rows that it already has."""
        source = ddl.source
        clauses = ddl.clauses or self._defined(event, ddl)
        bound = self.history.identity(source, event.order).identity
        identity = bound if bound is not None and self.holders.get(bound, source) == source else None
        base = self._shadowed(source)
        if base is not None and source not in self.facts.lake and self._is_there(base, event):
            if bound not in self.holders or identity is None:
                identity = next(one for one in _lines(base) if self._is_free(one, base))
        elif identity is None:  # its line goes on elsewhere, or ended with DROP TABLE
            identity = next(one for one in _lines(source) if self.holders.get(one) is None)
        self.emptied.discard(identity)
        effect = Effect(event, Action.CREATE, clauses, to=source if identity != source else None, undetermined=unseen)
        self.known.add(source)
        self._call(identity, source, event)
        if bound != identity:
            self.history.called.setdefault(identity, [DatedName(source, event.place, event.order)])
            self._name(source, Name(event.order, identity, seconds=event.seconds))
        self.history.effects.setdefault(identity, []).append(effect)

    def _is_there(self, source: SourceTable, event: DdlEvent) -> bool:
        """Whether a table of that name exists at a statement."""
        identity, begun = self.history.identity(source, event.order).identity, self.begun.get(source)
        there = identity is not None and self.holders.get(identity, source) == source
        return there and (begun is None or begun < event.order)

    def _is_free(self, line: SourceTable, base: SourceTable) -> bool:
        """Whether a lake table may hold the next table of a name: rows of another one are not left in it."""
        if line not in self.holders:
            return line != base
        gone = line in self.emptied or self.rule_of(base).recreate_table == "delete"
        return gone and self.holders[line] is None

    def _defined(self, event: DdlEvent, ddl: TableEffect) -> tuple[Clause, ...]:
        """The definition that CREATE TABLE ... LIKE does not spell. A binlog tells a definition with the first rows
        that have it: it is the one that comes next, else the model's, else the name's last one."""
        until = next((order for order in self.made.get(ddl.source, ()) if order > event.order), None)
        mine = [v for v in self.versions_of(ddl.source) if v.columns]
        known = [v for v in mine if v.since >= event.order and (until is None or v.since < until)][:1]
        if ddl.like is not None:
            for versions in (self.versions_of(ddl.like), mine):
                known += [v for v in versions if v.columns and v.since < event.order][-1:]
        if not known:
            return ()
        columns = [AddColumn(ColumnDefinition(name, kind.text, kind)) for name, kind in known[0].columns]
        return (*columns, ChangeKey(known[0].key))

    def _leave_open(self, event: DdlEvent, written: Iterable[TableEffect], databases: Sequence[str]) -> None:
        """Effects on tables of one of several databases: none of the tables that they may be about goes on."""
        for ddl in written:
            may_be = [in_database(ddl, one).source for one in databases]
            if ddl.to is not None and all(self.rule_of(source).rename_table == "new" for source in may_be):
                self._create(event, TableEffect(Action.CREATE, ddl.to))
            else:
                text = " ".join(event.text.split())
                tables = " or ".join(map(str, may_be))
                why = f"the log does not say whether {text!r} at {event.place} is about {tables}"
                self._open(event, why, may_be, ddl.to)

    def _open(self, event: DdlEvent, why: str, sources: Iterable[SourceTable], made: SourceTable | None) -> None:
        concerned = set(sources)
        if made is not None:
            self._create(event, TableEffect(Action.CREATE, made))
            concerned.add(made)
        for source in concerned:
            identity = self.history.identity(source, event.order).identity
            if identity is not None:
                self.history.unsure.setdefault(identity, why)

    def _rename(self, event: DdlEvent, old: SourceTable, new: SourceTable) -> None:
        identity, policy = self.history.identity(old, event.order).identity, self.rule_of(old).rename_table
        note = f"swapped: {old} is called {new} now" if new == self._shadowed(old) or old == self._shadowed(new) else ""
        policy = "follow" if note else policy
        self.known |= {old, new}
        if identity is None:
            return
        if policy == "follow" and self.facts.takes(new) and not self.facts.takes(identity):
            self._create(event, TableEffect(Action.CREATE, new), renamed_unseen(old))  # its rows come from now on
            return
        effects, first = self.history.effects.setdefault(identity, []), old
        if effects and effects[-1].event is event and effects[-1].old is not None:  # by way of a third name
            first = effects.pop().old or old
        names = {first, old, *(called.name for called in self.history.called.get(identity, ()))}
        came = policy != "follow" or self.facts.rows_came(names, identity, new)
        unseen = () if came else renamed_unseen(first)
        effects.append(Effect(event, Action.RENAME, old=first, to=new, note=note, undetermined=unseen))
        if policy == "follow":
            self._call(identity, new, event)
            self._name(new, Name(event.order, identity, seconds=event.seconds))
            taken = f"the lake table of {identity} goes on as {new}"
            if self.history.identity(old, event.order).identity == identity:
                self._name(old, Name(event.order, None, taken, event.seconds))
            return
        self.history.gone[identity] = TableEnd(f"renamed to {new}", event.place, event.order)
        if policy == "new":
            self.history.gone.pop(new, None)
        elif policy == "refuse":
            self._name(new, Name(event.order, None, f"{old} became {new}", event.seconds))

    def _call(self, identity: SourceTable, name: SourceTable, event: DdlEvent) -> None:
        """Note the name that a lake table has at the source from now on."""
        self.holders[identity] = name
        self.history.gone.pop(identity, None)
        first = [DatedName(identity)] if plain_table(identity.table) == identity.table else []
        known = self.history.called.get(identity, first)
        if known and known[-1].place == event.place:  # by way of a third name
            known = known[:-1]
        if not known or known[-1].name != name:
            known = [*known, DatedName(name, event.place, event.order)]
        if identity in self.history.called or known[-1].place:
            self.history.called[identity] = known

    def _name(self, source: SourceTable, name: Name) -> None:
        self.history.names.setdefault(source, []).append(name)


def _lines(source: SourceTable) -> Iterator[SourceTable]:
    """The lake tables that tables of one name may have, one after the other: ``t``, ``t@@2``, ``t@@3``."""
    yield source
    for number in itertools.count(2):
        yield SourceTable(source.database, later_table(source.table, number))


def place_of(order: int) -> str:
    """An ordering value in readable form: binlog file number and position, or a Kafka offset."""
    file = (order >> POSITION_BITS) & ((1 << FILE_BITS) - 1)
    position = order & ((1 << POSITION_BITS) - 1)
    return f"{file:06d}:{position}" if file else f"offset {position}"
