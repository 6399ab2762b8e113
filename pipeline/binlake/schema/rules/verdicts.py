"""Judges a DDL statement for a lake table: a verdict for each of its clauses, by the table's policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from binlake.decode.ddl.clauses import (
    AddColumn,
    ChangeKey,
    Clause,
    ConvertCharset,
    DropColumn,
    ModifyColumn,
    RenameColumn,
    UnloggedChange,
    renames_of,
)
from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.ddl.constants import UNREAD, constant_of
from binlake.decode.ddl.foreign_keys import Cascade
from binlake.decode.ddl.partitions import ChangePartitions
from binlake.decode.types.mysql_types import MysqlType
from binlake.schema.rules.generated_verdicts import computes, follow_bases
from binlake.schema.rules.judged import (
    ClauseVerdict,
    Judgement,
    TableSchemaState,
    is_fixed,
    known_column,
    refuse,
    say,
    why_left_out,
)
from binlake.schema.rules.key_verdicts import (
    SourceKeys,
    change_key,
    follow_key,
    give_key,
    loses_key,
    may_lose_key,
    rewrite_texts,
)
from binlake.schema.rules.partition_clauses import (
    change_partitions,
    note_cascade,
)
from binlake.schema.rules.retyping import assumed_type, is_rewritten
from binlake.schema.rules.steps import Compute, Convert, Fill
from binlake.schema.rules.time_defaults import with_session
from binlake.schema.rules.type_verdicts import (
    convert_charset,
    copied_lake_type,
    copy_column,
    fits,
    modify,
    note_unheld,
    replace_type,
    settle,
    widen,
)
from binlake.schema.rules.undetermined import UndeterminedEffect
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import known_as, lake_name


def judge_clauses(
    clauses: Sequence[Clause], order: int, state: TableSchemaState, keys: SourceKeys | None = None
) -> Judgement:
    """Judge a statement's clauses in order, and update the state.

    ``keys``: the source's key before and after the statement, where its definitions tell them.
    """
    judged = Judgement()
    state.rename_open(renames_of(clauses))  # an expression reads the columns as they are after the statement
    key: ChangeKey | None = None
    before = state.key
    renamed = [clause.old for clause in clauses if isinstance(clause, RenameColumn)]
    formers = _FormerColumns({name: state.type_before(name, order) for name in renamed}, state.schema)
    for clause in sorted(clauses, key=_turn):
        if not isinstance(clause, DropColumn | RenameColumn):
            formers.rename_key(state)
        if isinstance(clause, AddColumn):
            _add(clause.column, order, state, judged)
        elif isinstance(clause, DropColumn):
            _drop(clause.name, order, state, judged)
        elif isinstance(clause, RenameColumn):
            _rename(clause, formers, order, state, judged)
        elif isinstance(clause, ModifyColumn):
            modify(clause.column, order, state, judged)
        elif isinstance(clause, ConvertCharset):
            convert_charset(clause, order, state, judged)
        elif isinstance(clause, ChangePartitions):
            change_partitions(clause, order, state, judged)
        elif isinstance(clause, Cascade):
            note_cascade(clause, judged)
        elif isinstance(clause, UnloggedChange):
            _note_unlogged(clause, state, judged)
        elif isinstance(clause, ChangeKey):
            key = clause
    formers.rename_key(state)
    follow_bases(clauses, order, state, judged)
    filled = {lake_name(step.column.name) for step in judged.steps if isinstance(step, Fill | Compute)}
    added = {lake_name(clause.column.name) for clause in clauses if isinstance(clause, AddColumn)}
    state.unfilled = frozenset(added - filled)
    if state.rules.kind == "upsert":
        if key is None and (keys is None or keys[0] == keys[1]) and loses_key(clauses, before, order, state):
            keys, key = (keys[0], ()) if keys is not None else None, ChangeKey(())
        elif key is None and (left_open := may_lose_key(clauses, keys, state)) is not None:
            judged.undetermined.append(left_open)
            say(judged, ClauseVerdict.KEEP, left_open.why)
        _judge_key(keys, key, before, order, state, judged)
    for clause in clauses:  # names that one clause removes and another one adds
        new = clause.new if isinstance(clause, RenameColumn) else None
        new = clause.column.name if isinstance(clause, AddColumn) else new
        state.gone.discard(known_column(new, state) or "" if new is not None else "")
    refuse_unread(clauses, order, state, judged)
    return judged


def _turn(clause: Clause) -> int:
    """The order in which clauses are judged: the name of a dropped or renamed column is free for others, and an
    expression reads the columns as they are after the statement."""
    column = clause.column if isinstance(clause, AddColumn | ModifyColumn | RenameColumn) else None
    if column is not None and column.expression:
        return 3
    return 0 if isinstance(clause, DropColumn) else 1 if isinstance(clause, RenameColumn) else 2


def refuse_unread(clauses: Sequence[Clause], order: int, state: TableSchemaState, judged: Judgement) -> None:
    """Refuse rows of ENUM and SET columns whose definition the connector could not read: their values come from it."""
    for clause in clauses:
        column = clause.column if isinstance(clause, AddColumn | ModifyColumn | RenameColumn) else None
        if column is None or column.type is None or why_left_out(column.name, state) is not None:
            continue
        if any(UNREAD in option for option in column.type.options):
            why = (
                f"the connector could not read the characters of {column.name} {column.type_text}: run Kafka Connect "
                "with -Dfile.encoding=UTF-8, let it take its snapshot again, and resync the table"
            )
            refuse(known_column(column.name, state) or lake_name(column.name), why, order, state, judged)


def _judge_key(
    keys: SourceKeys | None,
    key: ChangeKey | None,
    before: tuple[str, ...],
    order: int,
    state: TableSchemaState,
    judged: Judgement,
) -> None:
    """Judge what a statement does to the record key. ``keys`` as above; ``key``: its clause about the key, if it has
    one; ``before``: the key before it."""
    if keys is not None:
        follow_key(keys, before, order, state, judged)
    elif key is not None:
        change_key(key, before, order, state, judged)
    elif state.key != before:
        give_key(state.key, before, order, state, judged)
    if judged.rekeyed and judged.rewrite is None:
        rewrite_texts(order, state, judged)


def define(clauses: Sequence[Clause], state: TableSchemaState) -> None:
    """Set the state from the CREATE TABLE of a table that is otherwise unknown."""
    for clause in clauses:
        if isinstance(clause, AddColumn) and clause.column.type is not None:
            settle(clause.column, None, state)
        elif isinstance(clause, ChangeKey) and state.rules.key is None:
            state.key = tuple(map(lake_name, clause.columns))


def judge_definition(clauses: Sequence[Clause], order: int, state: TableSchemaState) -> Judgement:
    """Judge a table that is created again: compare its columns with the lake's. Rows before it are not its rows."""
    judged, named, key = Judgement(), set[str](), None
    emptied = state.rules.schema_changes.recreate_table == "delete"
    for clause in clauses:
        if isinstance(clause, ChangeKey):
            key = clause
        elif isinstance(clause, AddColumn) and clause.column.type is not None:
            name = known_column(clause.column.name, state)
            before = state.schema.field(name).type if name is not None else None
            if name is None or fits(clause.column, name, order, state, judged, emptied=emptied):
                settle(clause.column, name, state)
            if name is not None and before is not None and is_rewritten(before, state.schema.field(name).type):
                judged.steps.append(Convert(clause.column, None, state.session))
            named.add(name or lake_name(clause.column.name))
    if named:
        state.gone |= set(state.schema.names) - named
        state.unfilled = frozenset()
        if state.rules.kind == "upsert":
            change_key(key or ChangeKey(()), state.key, order, state, judged)
    refuse_unread(clauses, order, state, judged)
    if judged.rewrite is not None:
        judged.rewrite = replace(judged.rewrite, held=state.rules.schema_changes.recreate_table == "keep")
    judged.rulings = [r for r in judged.rulings if r.verdict in (ClauseVerdict.REFUSE, ClauseVerdict.REWRITE)]
    return judged


def _add(column: ColumnDefinition, order: int, state: TableSchemaState, judged: Judgement) -> None:
    policy, name = state.rules.schema_changes, known_column(column.name, state)
    left_out = why_left_out(column.name, state)
    if left_out is not None:
        say(judged, ClauseVerdict.ADD, f"{column.name} is new; {left_out}")
        return
    if policy.add == "refuse":
        refuse(lake_name(column.name), f"column {column.name} is new", order, state, judged)
        return
    if column.type is None:
        say(judged, ClauseVerdict.ADD, f"{column.name} is new; its type {column.type_text} has no place in the lake")
        return
    returns = name in state.gone if name is not None else False
    replaced = returns and name is not None and replace_type(column.type.lake_type, name, state)
    if name is not None and not replaced and not fits(column, name, order, state, judged, follows=False):
        return
    settle(column, name, state)
    if policy.add == "null":
        say(judged, ClauseVerdict.ADD, f"{column.name} is null in rows before")
        return
    try:
        if computes(column, order, state, judged):
            say(judged, ClauseVerdict.FILL, f"{column.name} is {column.expression} in rows before")
            return
        column = with_session(column, state.session)
        constant = constant_of(column)
    except UnsupportedError as error:
        judged.undetermined.append(UndeterminedEffect(column.name, error.what))
        judged.steps += [Convert(column, None, state.session)] if returns else []
        say(judged, ClauseVerdict.ADD, f"{column.name} is null in rows before, as {error.what}")
        return
    if constant.is_valid or returns:
        judged.steps.append(Fill(column))
        say(judged, ClauseVerdict.FILL, f"{column.name} is {_shown(constant)} in rows before")
    else:
        say(judged, ClauseVerdict.ADD, f"{column.name} is null in rows before")


def _shown(constant: pa.Scalar) -> str:
    text = repr(constant.as_py()) if isinstance(constant.as_py(), (str, bytes)) else str(constant.as_py())
    return text if len(text) <= 40 else text[:37] + "..."


def _drop(column: str, order: int, state: TableSchemaState, judged: Judgement) -> None:
    name = known_column(column, state)
    if is_fixed(name, state):
        refuse(str(name), f"key or partition column {column} is dropped", order, state, judged)
    elif state.rules.schema_changes.drop == "refuse":
        refuse(lake_name(column), f"column {column} is dropped", order, state, judged)
    else:
        state.refused.pop(name or lake_name(column), None)
        if name is not None:
            state.gone.add(name)
            state.key = tuple(other for other in state.key if other != name)
        say(judged, ClauseVerdict.KEEP, f"{column} stays, null in new rows")


def _note_unlogged(clause: UnloggedChange, state: TableSchemaState, judged: Judgement) -> None:
    """Note what the log does not say of rows. A key of one column is left out: no two of its rows hold 0, none null."""
    name = known_column(clause.column, state) if clause.column else None
    if not clause.column or (name is not None and state.key != (name,)):
        judged.undetermined.append(UndeterminedEffect(clause.column, clause.why))
        say(judged, ClauseVerdict.KEEP, f"{clause.column or 'rows'}: {clause.why}")


@dataclass
class _FormerColumns:
    """The columns before a statement: its clauses refer to them, and may swap two names. ``types``: the MySQL types of
    those that it renames. ``schema``: of the lake. ``moved``: lake name -> new one, of the renames that were judged."""

    types: Mapping[str, MysqlType | None]
    schema: pa.Schema
    moved: dict[str, str] = field(default_factory=dict)

    def leaves(self, name: str) -> bool:
        """Whether a column of the lake gets another name, so that its own is free."""
        return any(lake_name(old).lower() == name.lower() for old in self.types)

    def rename_key(self, state: TableSchemaState) -> None:
        """Name the columns of the key as the renames up to now do."""
        state.key = tuple(self.moved.get(name, name) for name in state.key)
        self.moved.clear()


def _take_unheld(
    clause: RenameColumn, name: str, former: MysqlType | None, order: int, state: TableSchemaState, judged: Judgement
) -> None:
    """Judge the rename of a column that the lake does not hold, to a name that is free at the source: the lake has it
    as ``name``, with the values of another one. ``former``: the type of the renamed column."""
    column = clause.column or ColumnDefinition(clause.new, former.text if former is not None else "", former)
    if column.type is not None:
        replaced = replace_type(column.type.lake_type, name, state)
        if not replaced and not fits(column, name, order, state, judged, follows=False):
            return
        settle(column, name, state)
    null = _nulled(clause.new, name, column.type, order, state)
    if null is None:
        refuse(name, f"{clause.old} becomes {clause.new}, which the lake has of another column", order, state, judged)
        return
    if column.type is None:
        state.forget_type(clause.new, order)
        state.gone.discard(name)
    why = f"the lake has no values of {clause.old}, which has this name now"
    judged.steps.append(null)
    judged.undetermined.append(UndeterminedEffect(clause.new, why))
    say(judged, ClauseVerdict.CONVERT, f"{clause.new} is null in rows before, as {why}")


def _nulled(column: str, name: str, new: MysqlType | None, order: int, state: TableSchemaState) -> Convert | None:
    """The step that takes the values of a former column from rows before; None if the lake's type ``name`` has is not
    known as one of MySQL. ``new``: the type that it gets, if it is known."""
    kind = new or state.type_before(column, order) or assumed_type(state.schema.field(name).type)
    return Convert(ColumnDefinition(column, kind.text, kind), None, state.session) if kind is not None else None


def _rename_same(
    clause: RenameColumn, former: MysqlType | None, order: int, state: TableSchemaState, judged: Judgement
) -> None:
    """Judge a rename whose new name is the old one in the lake: it differs in case, or in signs that Avro lacks."""
    what = f"{clause.old} becomes {clause.new}"
    say(judged, ClauseVerdict.APPLY, f"{what}: the lake's name is the same")
    state.note_type(clause.new, former)
    if clause.column is not None:
        modify(clause.column, order, state, judged)


def _rename(
    clause: RenameColumn, formers: _FormerColumns, order: int, state: TableSchemaState, judged: Judgement
) -> None:
    """Judge a rename."""
    former, policy = formers.types[clause.old], state.rules.schema_changes
    old = known_as(clause.old, formers.schema.names)
    what = f"{clause.old} becomes {clause.new}"
    if old is not None and known_column(clause.new, state) == old:
        _rename_same(clause, former, order, state, judged)
        return
    hidden = why_left_out(clause.old, state) or why_left_out(clause.new, state)
    if is_fixed(old, state) or (old in state.key and hidden):
        refuse(str(old), f"key or partition column {what}", order, state, judged)
        return
    if policy.rename == "refuse":
        refuse(lake_name(clause.new), f"column {what}", order, state, judged)
        return
    new = known_column(clause.new, state)
    kept_from = why_left_out(clause.old, state)
    if kept_from is not None and why_left_out(clause.new, state) is None:
        why = f"column {what}, and {kept_from} under its old name alone (tables.*.columns)"
        refuse(lake_name(clause.new), why, order, state, judged)
        return
    left_out = kept_from or why_left_out(clause.new, state)
    if old is None and left_out is None and new is not None and new in state.gone:
        _take_unheld(clause, new, former, order, state, judged)
        return
    if old is None or left_out is not None:
        say(judged, ClauseVerdict.APPLY, f"{what}; {left_out or 'the lake has no such column'}")
        if clause.column is not None:
            note_unheld(clause.column, former, state, judged, clause.old)
        return
    before = formers.schema.field(old).type
    kind = copied_lake_type(clause, before, state)
    if clause.column is not None and clause.column.generated and clause.column.type is not None:
        kind = clause.column.type.lake_type
    if old in state.key and kind is None:
        refuse(str(old), f"key or partition column {what}, whose values it cannot take", order, state, judged)
        return
    if new is not None and clause.column is not None and not fits(clause.column, new, order, state, judged):
        return
    state.gone.add(old)
    state.refused.pop(old, None)
    if kind is None or (policy.rename == "keep" and old not in state.key):
        why = (
            "" if kind is not None else f", as the values cannot be had as {clause.column and clause.column.type_text}"
        )
        say(judged, ClauseVerdict.KEEP, f"{what}: rows before keep {clause.old}, and have {clause.new} null{why}")
        if new is not None and new in state.gone:
            taken = clause.column.type if clause.column is not None else former
            null = _nulled(clause.new, new, taken, order, state)
            judged.steps += [null] if null is not None else []
        kind = clause.column.type.lake_type if clause.column and clause.column.type else kind
    else:
        copy_column(clause, (before, kind), former, order, state, judged)
    is_free = new is not None and (new in state.gone or formers.leaves(new))
    if new is not None and is_free and kind is not None and not replace_type(kind, new, state):
        widen(kind, new, state)
    if new is None and kind is not None:
        state.schema = state.schema.append(pa.field(lake_name(clause.new), kind))
    taken = former if clause.column is None else clause.column.type
    if taken is None:
        state.forget_type(clause.new, order)
    state.note_type(clause.new, taken)
    state.gone.discard(new or lake_name(clause.new))
    formers.moved[old] = new or lake_name(clause.new)
