"""The DDL of one lake table: statements that its commits record as carried out, pending statements, and verdicts."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import (
    Action,
    AddColumn,
    DropColumn,
    IndexClause,
    RenameColumn,
    TableDefault,
    UnloggedChange,
    UntoldModel,
    in_lake_form,
    renames_of,
)
from binlake.decode.ddl.foreign_keys import Cascade
from binlake.decode.ddl.row_statements import AS_STATEMENT
from binlake.schema.rules.ddl_effects import Effect
from binlake.schema.rules.definitions import Definition
from binlake.schema.rules.entries import DdlEntry
from binlake.schema.rules.judged import KEY_OF_TABLE, ClauseVerdict, Judgement, Ruling, TableSchemaState, say
from binlake.schema.rules.partition_clauses import note_cascade
from binlake.schema.rules.restatement import Refusal, SourceDdl
from binlake.schema.rules.row_places import has_binlog_place
from binlake.schema.rules.steps import Step
from binlake.schema.rules.undetermined import UndeterminedEffect
from binlake.schema.rules.verdicts import define, judge_clauses, judge_definition, refuse_unread
from hudilake.format.definition.column_names import lake_name
from hudilake.format.definition.merging import Merging

_SHOWN = 160


@dataclass
class JudgedDdl:
    """The judged DDL of one source table. ``entries``: all, in order; ``news``: those not recorded yet. ``held``: a
    statement that waits until all rows before it are applied; it and later ones are not among the entries.
    ``definitions``: the columns that the statements give the source table."""

    entries: list[DdlEntry] = field(default_factory=list)
    news: list[DdlEntry] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    held: DdlEntry | None = None
    definitions: tuple[Definition, ...] = ()

    @property
    def plan(self) -> SourceDdl:
        """The DDL for the tasks."""
        restatements = tuple(one for e in self.entries for one in e.restatements())
        texts = tuple(dict.fromkeys(name for e in self.entries for name in e.texts))
        last = next((e for e in reversed(self.entries) if e.rewrite is not None), None)
        key = last.rewrite.columns if last is not None and last.rewrite is not None else None
        return SourceDdl(
            restatements,
            texts,
            tuple(self.refusals),
            key,
            held=(self.held.order, self.held.seconds) if self.held is not None else None,
            keyless_since=(last.order, last.seconds) if last is not None and key == () else None,
            definitions=self.definitions,
        )


def judge_table(
    source: SourceTable,
    effects: Sequence[Effect],
    recorded: Iterable[DdlEntry],
    state: TableSchemaState,
    reached: int = -1,
) -> JudgedDdl:
    """Judge the statements about the table of ``source``, in order. Recorded verdicts stay, except refusals.

    ``reached``: all rows before statements up to this ordering value are applied.
    """
    known = {entry.key: entry for entry in recorded}
    waiting: dict[tuple[int, str], list[Effect]] = {}
    effects = [replace(effect, clauses=in_lake_form(effect.clauses, state.zero_dates)) for effect in effects]
    for effect in effects:  # a statement may have several: CREATE OR REPLACE, ALTER with RENAME
        waiting.setdefault((effect.event.order, effect.event.digest), []).append(effect)
    _leave_newest(known, waiting)
    judged_ddl, opened = JudgedDdl(), list[Refusal]()
    for key in sorted({*known, *waiting}):
        entry, mine = known.get(key), waiting.get(key, [])
        if entry is not None and not (entry.is_refusal and mine):
            _take_over(entry, state)
            state.rename_open(entry.renames or renames_of(clause for effect in mine for clause in effect.clauses))
            for effect in mine:
                state.take_over_types(entry.order, effect.clauses)
            _note_definition(mine, state)
        elif not all(_is_repeated(effect, [*known.values(), *judged_ddl.news], state) for effect in mine):
            before, unchanged = entry, copy.copy(state)
            refused = dict(state.refused)
            entry = _judged(source, mine, state)
            if mine[0].event.by_rows and _is_no_news(entry, refused, known):
                state.key, state.refused = unchanged.key, refused
                continue
            if entry.rewrite is not None and entry.rewrite.held and entry.order > reached:
                judged_ddl.held = entry
                state.schema, state.key = unchanged.schema, unchanged.key
                break
            _note_definition(mine, state)
            if entry != before:
                judged_ddl.news.append(entry)
        if entry is not None:
            judged_ddl.entries.append(entry)
            if any(effect.action is Action.CREATE for effect in mine):
                state.open_columns.clear()
            state.note_open(entry.undetermined)
        seconds = entry.seconds if entry is not None else mine[0].event.seconds
        _note_refusals(key[0], seconds, state, opened, judged_ddl)
    judged_ddl.refusals += opened
    judged_ddl.definitions = tuple(one for one in state.definitions.known if one.columns)
    return judged_ddl


def _leave_newest(known: dict[tuple[int, str], DdlEntry], waiting: dict[tuple[int, str], list[Effect]]) -> None:
    """Leave, of the statements that change rows alone, the newest: it leaves open all that those before it do."""
    leaves_open = (UndeterminedEffect(AS_STATEMENT.column, AS_STATEMENT.why),)
    keys = [key for key, entry in known.items() if entry.undetermined == leaves_open]
    keys += [key for key, mine in waiting.items() if all(effect.changes_rows for effect in mine)]
    for key in sorted(set(keys))[:-1]:
        known.pop(key, None)
        waiting.pop(key, None)


def _is_repeated(effect: Effect, known: Iterable[DdlEntry], state: TableSchemaState) -> bool:
    """Whether a statement that is ordered by its Kafka offset is a redelivery: it was carried out at a lower offset,
    and the columns already have its effect."""
    event, gone = effect.event, {name.lower() for name in state.gone}
    if has_binlog_place(event.order) or not any(e.digest == event.digest and e.order < event.order for e in known):
        return False
    for clause in effect.clauses:
        if isinstance(clause, AddColumn | RenameColumn):
            new = clause.column.name if isinstance(clause, AddColumn) else clause.new
            if lake_name(new).lower() in gone:
                return False
        elif isinstance(clause, DropColumn) and lake_name(clause.name).lower() not in gone:
            return False
    return effect.action is not Action.DROP or state.dropped is not None


def _is_no_news(entry: DdlEntry, refused: Mapping[str, object], known: Collection[tuple[int, str]]) -> bool:
    """Whether the key that rows come with is the lake's, or what is known of it is said: an earlier statement refused
    it, or one behind it is carried out. ``refused``: before it."""
    if entry.rewrite is None:
        return set(entry.refused) == refused.keys()
    return KEY_OF_TABLE in refused or any(key > entry.key for key in known)


def _take_over(entry: DdlEntry, state: TableSchemaState) -> None:
    state.gone, state.dropped = set(entry.gone), entry.dropped
    if entry.rewrite is not None:
        state.key = entry.rewrite.columns
    for name in [name for name in state.refused if name not in entry.refused]:
        del state.refused[name]


def _note_refusals(
    order: int, seconds: int | None, state: TableSchemaState, opened: list[Refusal], found: JudgedDdl
) -> None:
    if state.refused and not opened:
        why = "; ".join(why for _, why in state.refused.values())
        opened.append(Refusal(order, None, why, seconds))
    elif opened and not state.refused:
        found.refusals.append(replace(opened.pop(), until=order, until_seconds=seconds))


def _note_definition(effects: Iterable[Effect], state: TableSchemaState) -> None:
    for effect in effects:
        if effect.action is Action.CREATE:
            state.untold = next((one.model for one in effect.clauses if isinstance(one, UntoldModel)), None)
        state.partitions.note(effect.event.order, effect.action, effect.clauses)
        state.indexes.note(effect.event.order, effect.action, effect.clauses)
        state.generated.note(effect.event.order, effect.action, effect.clauses)
        state.collations.note(effect.event.order, effect.action, effect.clauses)
        state.definitions.note(effect.event.order, effect.event.seconds, effect.action, effect.clauses)


def _judged(source: SourceTable, effects: Sequence[Effect], state: TableSchemaState) -> DdlEntry:
    """The statement of these effects, judged."""
    event, rulings, steps = effects[0].event, list[Ruling](), list[Step]()
    texts, deleted, renamed, rewrite = list[str](), None, None, None
    undetermined: list[UndeterminedEffect] = []
    state.session = replace(state.session, mariadb=event.mariadb, seconds=event.seconds)
    state.strict = event.strict
    for effect in effects:
        state.empty = effect.unfilled
        judged, removed = _by_action(effect, state)
        rulings += [Ruling(ClauseVerdict.APPLY, effect.note)] if effect.note else []
        rulings += judged.rulings
        steps += judged.steps
        texts += judged.texts
        undetermined += judged.undetermined if not effect.unfilled else ()
        undetermined += effect.undetermined if state.rules.kind != "append" else ()
        deleted, rewrite = removed or deleted, judged.rewrite or rewrite
        renamed = (effect.old or source, effect.to) if effect.to is not None else renamed
    clauses = [clause for effect in effects for clause in effect.clauses if effect.action is Action.ALTER]
    return DdlEntry(
        source=source,
        order=event.order,
        seconds=event.seconds,
        place=event.place,
        digest=event.digest,
        statement=_short(event.text),
        rulings=tuple(rulings) or (Ruling(ClauseVerdict.APPLY, "nothing that concerns the lake"),),
        steps=tuple(steps),
        texts=tuple(texts),
        gone=tuple(sorted(state.gone)),
        dropped=state.dropped,
        refused=tuple(sorted(state.refused)),
        renamed=renamed,
        deleted=deleted,
        rewrite=rewrite,
        undetermined=tuple(undetermined),
        renames=renames_of(clauses),
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 3] + "..."


def _by_action(effect: Effect, state: TableSchemaState) -> tuple[Judgement, tuple[int, int | None] | None]:
    """The judged statement, and the DROP TABLE (ordering value, time) that deletes rows."""
    order, policy = effect.event.order, state.rules.schema_changes
    if state.merging.by_writer and effect.action is not Action.RENAME:
        return _kept(effect, state.merging), None
    if effect.action is Action.ALTER:
        return judge_clauses(effect.clauses, order, state, effect.keys), None
    if effect.action is Action.RENAME:
        return _renamed(effect, state), None
    if effect.action is Action.DROP:
        state.dropped = (order, effect.event.seconds)
        state.refused.clear()
        if effect.empties and state.rules.kind != "append":
            return Judgement(
                [Ruling(ClauseVerdict.DELETE, "a tool's table was dropped: its rows are deleted")]
            ), state.dropped
        if policy.drop_table == "delete":
            return Judgement(
                [Ruling(ClauseVerdict.DELETE, "the table was dropped: its rows are deleted")]
            ), state.dropped
        return Judgement([Ruling(ClauseVerdict.KEEP, "the table was dropped: the lake table stays as it is")]), None
    if effect.action is Action.CREATE and state.dropped is not None:
        return _made_again(effect, state)
    if effect.action is Action.CREATE and not len(state.schema):
        define(effect.clauses, state)
    if effect.action is Action.CREATE and effect.to is not None:
        return Judgement(
            [Ruling(ClauseVerdict.FOLLOW, f"another table is now called {effect.to}: its rows go here")]
        ), None
    judged = Judgement()
    for clause in effect.clauses if effect.action is Action.CREATE else ():
        if isinstance(clause, Cascade):
            note_cascade(clause, judged)
    if effect.action is Action.CREATE:
        refuse_unread(effect.clauses, order, state, judged)
    return judged, None


def _kept(effect: Effect, merging: Merging) -> Judgement:
    """The statement about a table that is merged by its writer: nothing that is stored changes."""
    judged = Judgement()
    if effect.action is Action.DROP:
        say(judged, ClauseVerdict.KEEP, "the table was dropped: what it gave the lake table stays as it is")
    for clause in effect.clauses if effect.action is Action.ALTER else ():
        if isinstance(clause, IndexClause | TableDefault):
            continue
        if isinstance(clause, AddColumn):
            what = f"column {clause.column.name!r} comes with its rows; rows from before have null"
        elif isinstance(clause, RenameColumn):
            what = f"column {clause.old!r} stays, and {clause.new!r} is another column{_untracked(clause.old, merging)}"
        elif isinstance(clause, UnloggedChange):
            judged.undetermined.append(UndeterminedEffect(clause.column, clause.why))
            what = clause.why
        elif isinstance(clause, DropColumn):
            what = f"column {clause.name!r} stays; new rows have null{_untracked(clause.name, merging)}"
        else:
            what = "rows from before the statement stay as they are"
        say(judged, ClauseVerdict.KEEP, f"merged by its writer: {what}")
    return judged


def _untracked(column: str, merging: Merging) -> str:
    """What it means for a history that the source has a column no more."""
    if not merging.tracks or not merging.is_tracked(lake_name(column)):
        return ""
    if merging.tracked is None:
        return ". Its change to null makes a version of each row that had a value, with its next event"
    return (
        ". The history tracks it: its change to null makes a version of each row that had a value, with its next "
        "event, and no change of it comes after that. To track other columns begin another history table"
    )


def _renamed(effect: Effect, state: TableSchemaState) -> Judgement:
    policy = state.rules.schema_changes.rename_table
    if policy == "follow" or effect.note:
        return Judgement([Ruling(ClauseVerdict.FOLLOW, f"rows of {effect.to} go on to this table")])
    if policy == "new":
        return Judgement([Ruling(ClauseVerdict.KEEP, f"the table stays as it is; {effect.to} gets one of its own")])
    return Judgement([Ruling(ClauseVerdict.REFUSE, f"rows of {effect.to} go to quarantine")])


def _made_again(effect: Effect, state: TableSchemaState) -> tuple[Judgement, tuple[int, int | None] | None]:
    dropped = state.dropped
    judged = judge_definition(effect.clauses, effect.event.order, state)
    state.dropped = None
    if state.rules.schema_changes.recreate_table == "keep":
        judged.rulings.append(Ruling(ClauseVerdict.KEEP, "the table was made again: the rows of the dropped one stay"))
        return judged, None
    judged.rulings.append(
        Ruling(ClauseVerdict.DELETE, "the table was made again: the rows of the dropped one are deleted")
    )
    return judged, dropped
