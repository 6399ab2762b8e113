"""The effect of DDL statements on names: to which lake table the rows of a source table go.

A lake table belongs to the first name of its source table. After RENAME TABLE (policy ``follow``) rows under the new
name still go to it. A table that is then created under the old name gets another lake table (``t@@2``).

Online schema changes (pt-online-schema-change, gh-ost) fill a shadow of the table and swap the two. A shadow of ``t``
that is created while ``t`` exists gets the lake table that the next table called ``t`` gets, so it has the rules of
``t`` from its first row on; the swap is a RENAME TABLE like any other. Where the shadow's rows do not come, the
statements about it are applied to the table at the swap, and what they did to rows is not determined.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import EVERY_TABLE, Action, Clause, TableEffect, UntoldModel
from binlake.decode.ddl.row_statements import changes_rows
from binlake.decode.schemas.schemas import SchemaVersion
from binlake.schema.rules.created import declared, is_defined, taken_over
from binlake.schema.rules.ddl_effects import DatedName, DdlEvent, DdlHistory, Effect, TableEnd, VersionsOf
from binlake.schema.rules.plan import Name, name_at
from binlake.schema.rules.shadows import (
    IN_PLACE,
    ShadowFacts,
    has_notes,
    renamed_unseen,
    shadowed,
    swapped_unseen,
    swaps,
)
from binlake.schema.rules.table_charsets import TableCharsets
from binlake.schema.rules.tables_there import in_database
from binlake.schema.rules.undetermined import UndeterminedEffect
from binlake.settings.schema_changes import SchemaChangeSettings
from binlake.settings.templates import later_table, plain_table

#: Policy of a source table.
RuleOf = Callable[[SourceTable], SchemaChangeSettings]
#: How long a tool takes at most from the creation of its copy to the statements that alter it.
_MADE_WITHIN_S = 60


@dataclass(frozen=True, slots=True)
class QualifiedPart:
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


@dataclass
class HistoryBuilder:
    """``holders``: the name that each table in the lake has at the source now, None after DROP TABLE. ``emptied``:
    those whose rows went with it. ``begun``: where the first statement about a name is one that makes it, its place.
    ``made``: where statements give a name to another table, in order. ``charsets``: those that the statements give to
    tables."""

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
    charsets: TableCharsets = field(default_factory=TableCharsets)

    def note_beginnings(self, named: QualifiedPart) -> None:
        """Note which names a part of a statement makes, if it is the first one about them. Call it in order, before
        any part is taken."""
        for ddl in (*named.done, *named.left_open):
            self.begun.setdefault(ddl.source, named.event.order if ddl.action is Action.CREATE else None)
            if ddl.to is not None:
                self.begun.setdefault(ddl.to, named.event.order)
            if ddl.to is not None or ddl.action is Action.CREATE:
                self.made.setdefault(ddl.to or ddl.source, []).append(named.event.order)

    def take(self, named: QualifiedPart) -> None:
        """Take in a part of a statement."""
        if len(named.databases) > 1:
            self._leave_open(named.event, named.left_open, named.databases)
        event = named.event
        done = self.charsets.completed(event, named.done, self.versions_of)
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
        versions = self._versions(source, event)
        before = [v for v in versions if v.since < event.order]
        after = [v for v in versions if v.since == event.order]
        known = bool(before and after) and not before[-1].dropped and not after[-1].dropped
        return (before[-1].key, after[-1].key) if known else None

    def _versions(self, source: SourceTable, event: DdlEvent) -> Sequence[SchemaVersion]:
        """The definitions of the table that has a name at a statement."""
        identity = self.history.identity(source, event.order).identity
        return self.history.versions(identity, self.versions_of) if identity is not None else ()

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
        that have it: it is the one that comes next, else the model's by its statements, else the name's last one."""
        until = next((order for order in self.made.get(ddl.source, ()) if order > event.order), None)
        mine = [v for v in self.versions_of(ddl.source) if v.columns]
        known = [v for v in mine if v.since >= event.order and (until is None or v.since < until)][:1]
        model_versions = self._versions(ddl.like, event) if ddl.like is not None else ()
        model = self.history.identity(ddl.like, event.order).identity if ddl.like is not None else None
        effects = self.history.effects.get(model, ()) if model is not None else ()
        if ddl.like is not None:
            by_model = declared(model_versions, effects, event.order)
            known += [by_model] if by_model is not None else [v for v in mine if v.since < event.order][-1:]
        is_open = ddl.like is not None and not is_defined(model_versions, effects, event.order)
        untold = (UntoldModel(ddl.like),) if is_open and ddl.like is not None else ()
        return (*(taken_over(known[0], model_versions, effects, event.order) if known else ()), *untold)

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
