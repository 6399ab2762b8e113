"""Judges another primary key: the lake table is written anew under it, if the policy and the rows before allow it."""

from __future__ import annotations

from collections.abc import Sequence

from binlake.decode.ddl.clauses import ChangeKey, Clause, DropIndex
from binlake.schema.rules.conversion.lossless import keeps_values
from binlake.schema.rules.judged import (
    KEY_OF_TABLE,
    ClauseVerdict,
    Judgement,
    KeyChange,
    TableSchemaState,
    known_column,
    refuse,
    say,
)
from binlake.schema.rules.steps import Convert, Copy, Step
from binlake.schema.rules.undetermined import WHOLE_ROWS, UndeterminedEffect
from hudilake.format.definition.column_names import lake_name

#: The source's key before and after a statement.
SourceKeys = tuple[tuple[str, ...], tuple[str, ...]]


def change_key(
    clause: ChangeKey, before: tuple[str, ...], order: int, state: TableSchemaState, judged: Judgement
) -> None:
    """Judge the key that a statement's text gives the table."""
    mine = tuple(name for name in before if name != state.shard)
    # A column that is dropped and added again in one statement is another one of the same name.
    same = _lake_key(clause.columns, state) == mine and not (state.unfilled & set(mine) and state.key != before)
    if state.rules.key is not None or same:
        state.refused.pop(KEY_OF_TABLE, None)
        say(judged, ClauseVerdict.APPLY, "the key is the same in the lake")
    else:
        give_key(clause.columns, before, order, state, judged)


def follow_key(
    keys: SourceKeys, before: tuple[str, ...], order: int, state: TableSchemaState, judged: Judgement
) -> None:
    """Judge the key that the source's definitions give the table. A lake table whose key is not the source's (the
    settings or the connector name another one) keeps its key."""
    old, new = (_lake_key(key, state) for key in keys)
    mine = tuple(name for name in before if name != state.shard)
    if state.rules.key is not None or set(old) != set(mine):
        if state.key != before:
            give_key(state.key, before, order, state, judged)
    elif new == mine and state.key == before:
        state.refused.pop(KEY_OF_TABLE, None)
        if old != new:
            say(judged, ClauseVerdict.APPLY, "the key is the same in the lake")
    else:
        give_key(keys[1], before, order, state, judged)


def loses_key(clauses: Sequence[Clause], before: tuple[str, ...], order: int, state: TableSchemaState) -> bool:
    """Whether a statement drops the last index that held the lake table's rows apart. A connector may not say so."""
    if state.rules.key is not None or not any(isinstance(clause, DropIndex) for clause in clauses):
        return False
    indexes, mine = state.indexes.before(order), tuple(name for name in before if name != state.shard)
    if indexes is None or not mine:
        return False
    return indexes.hold_apart(mine) and not indexes.after(clauses).hold_apart(state.key)


def may_lose_key(
    clauses: Sequence[Clause], keys: SourceKeys | None, state: TableSchemaState
) -> UndeterminedEffect | None:
    """What is open where a statement drops an index of a table whose indexes no log tells: a connector goes on with the
    columns of one that was the key. ``keys``: as the definitions have them."""
    dropped = [clause.name for clause in clauses if isinstance(clause, DropIndex)]
    goes_on = keys is not None and bool(keys[0]) and keys[0] == keys[1]
    if state.untold is None or state.rules.key is not None or not dropped or not goes_on:
        return None
    why = f"no log tells what the table took over from {state.untold}: "
    return UndeterminedEffect(WHOLE_ROWS, f"{why}{', '.join(dropped)} may have held its rows apart")


def _lake_key(columns: Sequence[str], state: TableSchemaState) -> tuple[str, ...]:
    """The lake's columns of a key."""
    return tuple(known_column(name, state) or lake_name(name) for name in columns)


def give_key(
    columns: Sequence[str], before: tuple[str, ...], order: int, state: TableSchemaState, judged: Judgement
) -> None:
    """Give the lake table another key, if the policy and the rows before allow it."""
    key, state.key = _lake_key(columns, state), before
    what = f"the key becomes ({', '.join(columns)}), the lake has ({', '.join(before)})"
    lacking = [name for name in key if name in state.unfilled and not state.empty]
    if state.rules.schema_changes.key == "refuse":
        refuse(KEY_OF_TABLE, what, order, state, judged)
    elif state.keeps_key is not None:
        refuse(KEY_OF_TABLE, f"{what}, and {state.keeps_key}", order, state, judged)
    elif state.shard is not None:
        refuse(KEY_OF_TABLE, f"{what}, and it holds rows of several source tables", order, state, judged)
    elif absent := [name for name in key if known_column(name, state) is None]:
        why = f"{what}, and the lake has no column {', '.join(absent)}"
        refuse(KEY_OF_TABLE, f"{why}: {_way_out(before)}", order, state, judged)
    elif lacking:
        why = f"{what}, and only the source knows the values of {', '.join(lacking)} in rows before"
        # The rows keep the key that they have: as null, all of them would be one.
        judged.steps = [step for step in judged.steps if not _gives(step, lacking)]
        refuse(KEY_OF_TABLE, f"{why}: {_way_out(before)}", order, state, judged)
    else:
        renamed = {lake_name(s.old): lake_name(s.new) for s in judged.steps if isinstance(s, Copy)}
        held = not {renamed.get(name, name) for name in before} <= set(key) or not before
        held |= bool(judged.rekeyed) or any(_alters(step, key) for step in judged.steps)
        judged.rewrite, state.key = KeyChange(key, held and not state.empty), key
        state.refused.pop(KEY_OF_TABLE, None)
        say(judged, ClauseVerdict.REWRITE, f"{what}: the lake table is written anew")


def _way_out(before: tuple[str, ...]) -> str:
    """What a person can do where the values of a new key are in no event."""
    if not before:
        return "load the table again under a new path"
    return (
        f"if ({', '.join(before)}) still tells rows apart, name it as the table's key in tables.overrides, restart, "
        "run binlake quarantine replay, then binlake verify --repair; else load the table again under a new path"
    )


def _gives(step: Step, columns: Sequence[str]) -> bool:
    return isinstance(step, Convert) and lake_name(step.column.name) in columns


def _alters(step: Step, key: tuple[str, ...]) -> bool:
    """Whether a step may give two values of a key column one value."""
    if not isinstance(step, Convert) or lake_name(step.column.name) not in key:
        return False
    return step.old is None or step.column.type is None or not keeps_values(step.old, step.column.type)


def rewrite_texts(order: int, state: TableSchemaState, judged: Judgement) -> None:
    """Write the lake table anew under the same key, whose values are other texts in their new types."""
    columns = ", ".join(sorted(judged.rekeyed))
    if state.keeps_key is not None:
        what = f"the key is made of other texts of {columns}"
        refuse(KEY_OF_TABLE, f"{what}, and {state.keeps_key}", order, state, judged)
        return
    judged.rewrite = KeyChange(state.key, held=True)
    say(judged, ClauseVerdict.REWRITE, f"the key is made of other texts of {columns}: the lake table is written anew")
