"""Judges a DDL statement for a lake table: a verdict for each of its clauses, by the table's policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import pyarrow as pa

from pipeline.decode.ddl.columns import ColumnDefinition
from pipeline.decode.ddl.constants import constant_of
from pipeline.decode.ddl.statements import AddColumn, ChangeKey, Clause, DropColumn, ModifyColumn, RenameColumn
from pipeline.errors import UnsupportedError
from pipeline.hudi.definition.column_names import lake_name
from pipeline.schema_changes.rules.evolution import TypeChange, common_type
from pipeline.schema_changes.rules.restatement import Copy, Fill, Step, copied_type
from pipeline.settings import TableRules

#: The source's key before and after a statement.
SourceKeys = tuple[tuple[str, ...], tuple[str, ...]]
#: The name of a refusal of the whole table, among the refusals of its columns.
KEY_OF_TABLE = ""


class Verdict(StrEnum):
    """The verdict on a clause."""

    ADD = "add"
    FILL = "fill"
    COPY = "copy"
    WIDEN = "widen"
    CONVERT = "convert"
    KEEP = "keep"
    APPLY = "apply"
    DELETE = "delete"
    REWRITE = "rewrite"
    FOLLOW = "follow"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Ruling:
    """One clause's verdict, and its meaning in words."""

    verdict: Verdict
    text: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """The lake table gets the record key ``columns`` (lake names; none: whole rows are kept).

    ``held``: rows after the statement wait until all rows before it are applied under the former key. Rows that are
    told apart by the former key alone could otherwise be taken for one row.
    """

    columns: tuple[str, ...]
    held: bool = False


@dataclass
class TableSchemaState:
    """The state of a lake table between two DDL statements; each statement changes it.

    ``schema``: the lake's columns. ``key``, ``partition``, ``shard``: lake names of the columns of the record key (none
    if whole rows are kept), of the partition, and of the shard, which distinguishes merged tables. ``gone``: columns
    that the source no longer has. ``dropped``: ordering value and time of a DROP TABLE after which there is no table.
    ``refused``: lake column -> the ordering value from which on rows are refused, and the reason. ``unfilled``: columns
    that the statement adds with values that its text does not determine.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    partition: str | None
    rules: TableRules
    gone: set[str] = field(default_factory=set)
    shard: str | None = None
    dropped: tuple[int, int | None] | None = None
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    unfilled: frozenset[str] = frozenset()


@dataclass
class Judged:
    """The result of a statement. ``texts``: columns that are integers at the source and text in the lake. ``rewrite``:
    the new key of the lake table."""

    rulings: list[Ruling] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    rewrite: KeyChange | None = None


def judge_clauses(
    clauses: Sequence[Clause], order: int, state: TableSchemaState, keys: SourceKeys | None = None
) -> Judged:
    """Judge a statement's clauses in order, and update the state.

    ``keys``: the source's key before and after the statement, where its definitions tell them.
    """
    judged = Judged()
    key: ChangeKey | None = None
    before = state.key
    for clause in clauses:
        if isinstance(clause, AddColumn):
            _add(clause.column, order, state, judged)
        elif isinstance(clause, DropColumn):
            _drop(clause.name, order, state, judged)
        elif isinstance(clause, RenameColumn):
            _rename(clause, order, state, judged)
        elif isinstance(clause, ModifyColumn):
            _modify(clause.column, order, state, judged)
        else:
            key = clause
    filled = {lake_name(step.column.name) for step in judged.steps if isinstance(step, Fill)}
    added = {lake_name(clause.column.name) for clause in clauses if isinstance(clause, AddColumn)}
    state.unfilled = frozenset(added - filled)
    if keys is not None:
        _follow_key(keys, before, order, state, judged)
    elif key is not None:
        _change_key(key, before, order, state, judged)
    elif state.key != before:
        _rewrite(state.key, before, order, state, judged)
    for clause in clauses:  # names that one clause removes and another one adds
        new = clause.new if isinstance(clause, RenameColumn) else None
        new = clause.column.name if isinstance(clause, AddColumn) else new
        state.gone.discard(_known(new, state) or "" if new is not None else "")
    return judged


def define(clauses: Sequence[Clause], state: TableSchemaState) -> None:
    """Set the state from the CREATE TABLE of a table that is otherwise unknown."""
    for clause in clauses:
        if isinstance(clause, AddColumn) and clause.column.type is not None:
            _settle(clause.column, None, state)
        elif isinstance(clause, ChangeKey) and state.rules.key is None:
            state.key = tuple(map(lake_name, clause.columns))


def judge_definition(clauses: Sequence[Clause], order: int, state: TableSchemaState) -> Judged:
    """Judge a table that is created again: compare its columns with the lake's. Rows before it are not its rows."""
    judged, named, key = Judged(), set[str](), None
    for clause in clauses:
        if isinstance(clause, ChangeKey):
            key = clause
        elif isinstance(clause, AddColumn) and clause.column.type is not None:
            name = _known(clause.column.name, state)
            if name is None or _fits(clause.column, name, order, state, judged):
                _settle(clause.column, name, state)
            named.add(name or lake_name(clause.column.name))
    if named:
        state.gone |= set(state.schema.names) - named
        state.unfilled = frozenset()
        _change_key(key or ChangeKey(()), state.key, order, state, judged)
    if judged.rewrite is not None:
        judged.rewrite = replace(judged.rewrite, held=state.rules.schema_changes.recreate_table == "keep")
    judged.rulings = [r for r in judged.rulings if r.verdict in (Verdict.REFUSE, Verdict.REWRITE)]
    return judged


def _say(judged: Judged, verdict: Verdict, text: str) -> None:
    judged.rulings.append(Ruling(verdict, text))


def _refuse(name: str, why: str, order: int, state: TableSchemaState, judged: Judged) -> None:
    state.refused.setdefault(name, (order, why))
    _say(judged, Verdict.REFUSE, why)


def _known(name: str, state: TableSchemaState) -> str | None:
    """The lake's column of that source name, without regard to case."""
    wanted = lake_name(name).lower()
    return next((n for n in state.schema.names if n.lower() == wanted), None)


def _placed(name: str | None, state: TableSchemaState) -> bool:
    return name is not None and (name in state.key or name == state.partition)


def _fixed(name: str | None, state: TableSchemaState) -> bool:
    """Whether a column must stay because the table's partition, its settings, or a shared lake table need it."""
    if name is not None and name in state.key:
        policy = state.rules.schema_changes.key
        return policy == "refuse" or state.rules.key is not None or state.shard is not None or name == state.partition
    return name is not None and name == state.partition


def _left_out(name: str, state: TableSchemaState) -> str | None:
    """Why a column is not restated: the settings keep its values out of the lake. None for all other columns."""
    rule = state.rules.columns
    if rule is None:
        return None
    if not rule.keeps(name):
        return "the settings leave it out"
    return "the settings mask it" if any(m.column.lower() == name.lower() for m in rule.masks) else None


def _add(column: ColumnDefinition, order: int, state: TableSchemaState, judged: Judged) -> None:
    policy, name = state.rules.schema_changes, _known(column.name, state)
    left_out = _left_out(column.name, state)
    if left_out is not None:
        _say(judged, Verdict.ADD, f"{column.name} is new; {left_out}")
        return
    if policy.add == "refuse":
        _refuse(lake_name(column.name), f"column {column.name} is new", order, state, judged)
        return
    if column.type is None:
        _say(judged, Verdict.ADD, f"{column.name} is new; its type {column.type_text} has no place in the lake")
        return
    if name is not None and not _fits(column, name, order, state, judged):
        return
    returns = name in state.gone if name is not None else False
    _settle(column, name, state)
    if policy.add == "null":
        _say(judged, Verdict.ADD, f"{column.name} is null in rows before")
        return
    try:
        constant = constant_of(column)
    except UnsupportedError as error:
        _say(judged, Verdict.ADD, f"{column.name} is null in rows before, as {error.what}")
        return
    if constant.is_valid or returns:
        judged.steps.append(Fill(column))
        _say(judged, Verdict.FILL, f"{column.name} is {_shown(constant)} in rows before")
    else:
        _say(judged, Verdict.ADD, f"{column.name} is null in rows before")


def _shown(constant: pa.Scalar) -> str:
    text = repr(constant.as_py()) if isinstance(constant.as_py(), (str, bytes)) else str(constant.as_py())
    return text if len(text) <= 40 else text[:37] + "..."


def _settle(column: ColumnDefinition, name: str | None, state: TableSchemaState) -> None:
    """Note a column that the lake has or will have."""
    assert column.type is not None
    if name is None:
        field = pa.field(lake_name(column.name), column.type.lake_type)
        state.schema = state.schema.append(field)
    lake = name or lake_name(column.name)
    state.gone.discard(lake)
    state.refused.pop(lake, None)


def _fits(column: ColumnDefinition, name: str, order: int, state: TableSchemaState, judged: Judged) -> bool:
    """Whether the lake's column can hold the new type; widens it in the state. Adds a refusal if it must not."""
    policy, kind = state.rules.schema_changes, state.schema.field(name).type
    new = column.type.lake_type if column.type is not None else kind
    common, change = common_type(kind, new, policy)
    what = f"{column.name} becomes {column.type_text}, the lake has {kind}"
    if common is None or (change is TypeChange.OTHER and _placed(name, state)):
        _refuse(name, f"column {what}", order, state, judged)
        return False
    if _placed(name, state) and pa.types.is_decimal(kind) and new.scale != kind.scale:
        _refuse(name, f"key or partition column {what}: the keys' texts would be others", order, state, judged)
        return False
    for wrong, refused in ((TypeChange.WIDER, policy.widen), (TypeChange.NARROWER, policy.narrow)):
        if change is wrong and refused == "refuse":
            _refuse(name, f"column {what}", order, state, judged)
            return False
    at = state.schema.get_field_index(name)
    state.schema = state.schema.set(at, state.schema.field(at).with_type(common))
    return True


def _drop(column: str, order: int, state: TableSchemaState, judged: Judged) -> None:
    name = _known(column, state)
    if _fixed(name, state):
        _refuse(str(name), f"key or partition column {column} is dropped", order, state, judged)
    elif state.rules.schema_changes.drop == "refuse":
        _refuse(lake_name(column), f"column {column} is dropped", order, state, judged)
    else:
        state.refused.pop(name or lake_name(column), None)
        if name is not None:
            state.gone.add(name)
            state.key = tuple(other for other in state.key if other != name)
        _say(judged, Verdict.KEEP, f"{column} stays, null in new rows")


def _rename(clause: RenameColumn, order: int, state: TableSchemaState, judged: Judged) -> None:
    policy, old = state.rules.schema_changes, _known(clause.old, state)
    what = f"{clause.old} becomes {clause.new}"
    if _fixed(old, state) or (old in state.key and (_left_out(clause.old, state) or _left_out(clause.new, state))):
        _refuse(str(old), f"key or partition column {what}", order, state, judged)
        return
    if policy.rename == "refuse":
        _refuse(lake_name(clause.new), f"column {what}", order, state, judged)
        return
    new = _known(clause.new, state)
    kept_from = _left_out(clause.old, state)
    if kept_from is not None and _left_out(clause.new, state) is None:
        why = f"column {what}, and {kept_from} under its old name alone (tables.*.columns)"
        _refuse(lake_name(clause.new), why, order, state, judged)
        return
    left_out = kept_from or _left_out(clause.new, state)
    if old is None or left_out is not None:
        _say(judged, Verdict.APPLY, f"{what}; {left_out or 'the lake has no such column'}")
        return
    if new == old:
        _say(judged, Verdict.APPLY, f"{what}: the lake's name is the same")
        return
    kind = copied_type(state.schema.field(old).type, clause.column)
    if old in state.key and kind is None:
        _refuse(str(old), f"key or partition column {what}, whose values it cannot take", order, state, judged)
        return
    if new is not None and clause.column is not None and not _fits(clause.column, new, order, state, judged):
        return
    state.gone.add(old)
    state.refused.pop(old, None)
    if kind is None or (policy.rename == "keep" and old not in state.key):
        why = (
            "" if kind is not None else f", as the values cannot be had as {clause.column and clause.column.type_text}"
        )
        _say(judged, Verdict.KEEP, f"{what}: rows before keep {clause.old}, and have {clause.new} null{why}")
        kind = clause.column.type.lake_type if clause.column and clause.column.type else kind
    else:
        judged.steps.append(Copy(clause.old, clause.new, clause.column, move=not state.key))
        _say(judged, Verdict.COPY, f"{what}: rows before get {clause.new} from {clause.old}")
    if new is None and kind is not None:
        state.schema = state.schema.append(pa.field(lake_name(clause.new), kind))
    state.gone.discard(new or lake_name(clause.new))
    state.key = tuple(new or lake_name(clause.new) if name == old else name for name in state.key)


def _modify(column: ColumnDefinition, order: int, state: TableSchemaState, judged: Judged) -> None:
    name = _known(column.name, state)
    if name is None or column.type is None or _left_out(column.name, state) is not None:
        _say(judged, Verdict.APPLY, f"{column.name} becomes {column.type_text}; the lake holds no such values")
        return
    before = state.schema.field(name).type
    if not _fits(column, name, order, state, judged):
        return
    state.refused.pop(name, None)
    after = state.schema.field(name).type
    if after == pa.string() and (before != after or column.type.lake_type != after):
        judged.texts.append(column.name)
        _say(judged, Verdict.CONVERT, f"{column.name} becomes {column.type_text}: text in the lake")
    elif after != before:
        _say(judged, Verdict.WIDEN, f"{column.name} becomes {after} in the lake, was {before}")
    elif column.type.lake_type != after:
        _say(judged, Verdict.KEEP, f"{column.name} becomes {column.type_text}: {after} in the lake as before")
    else:
        _say(judged, Verdict.APPLY, f"{column.name} becomes {column.type_text}: {after} in the lake as before")


def _change_key(
    clause: ChangeKey, before: tuple[str, ...], order: int, state: TableSchemaState, judged: Judged
) -> None:
    """Judge the key that a statement's text gives the table."""
    mine = tuple(name for name in before if name != state.shard)
    if state.rules.key is not None or _lake_key(clause.columns, state) == mine:
        state.refused.pop(KEY_OF_TABLE, None)
        _say(judged, Verdict.APPLY, "the key is the same in the lake")
    else:
        _rewrite(clause.columns, before, order, state, judged)


def _follow_key(keys: SourceKeys, before: tuple[str, ...], order: int, state: TableSchemaState, judged: Judged) -> None:
    """Judge the key that the source's definitions give the table. A lake table whose key is not the source's (the
    settings or the connector name another one) keeps its key."""
    old, new = (_lake_key(key, state) for key in keys)
    mine = tuple(name for name in before if name != state.shard)
    if state.rules.key is not None or set(old) != set(mine):
        if state.key != before:
            _rewrite(state.key, before, order, state, judged)
    elif new == mine and state.key == before:
        state.refused.pop(KEY_OF_TABLE, None)
        if old != new:
            _say(judged, Verdict.APPLY, "the key is the same in the lake")
    else:
        _rewrite(keys[1], before, order, state, judged)


def _lake_key(columns: Sequence[str], state: TableSchemaState) -> tuple[str, ...]:
    """The lake's columns of a key."""
    return tuple(_known(name, state) or lake_name(name) for name in columns)


def _rewrite(
    columns: Sequence[str], before: tuple[str, ...], order: int, state: TableSchemaState, judged: Judged
) -> None:
    """Give the lake table another key, if the policy and the rows before allow it."""
    key, state.key = _lake_key(columns, state), before
    what = f"the key becomes ({', '.join(columns)}), the lake has ({', '.join(before)})"
    lacking = [name for name in key if name in state.unfilled]
    if state.rules.schema_changes.key == "refuse":
        _refuse(KEY_OF_TABLE, what, order, state, judged)
    elif state.shard is not None:
        _refuse(KEY_OF_TABLE, f"{what}, and it holds rows of several source tables", order, state, judged)
    elif lacking:
        why = f"{what}, and only the source knows the values of {', '.join(lacking)} in rows before"
        _refuse(KEY_OF_TABLE, why, order, state, judged)
    else:
        renamed = {lake_name(s.old): lake_name(s.new) for s in judged.steps if isinstance(s, Copy)}
        held = not {renamed.get(name, name) for name in before} <= set(key) or not before
        judged.rewrite, state.key = KeyChange(key, held), key
        state.refused.pop(KEY_OF_TABLE, None)
        _say(judged, Verdict.REWRITE, f"{what}: the lake table is written anew")
