"""Judges another primary key: the lake table is written anew under it, if the policy and the rows before allow it."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.decode.ddl.statements import ChangeKey
from pipeline.hudi.definition.column_names import lake_name
from pipeline.schema_changes.rules.judged import (
    KEY_OF_TABLE,
    Judged,
    KeyChange,
    TableSchemaState,
    Verdict,
    known_column,
    refuse,
    say,
)
from pipeline.schema_changes.rules.steps import Copy

#: The source's key before and after a statement.
SourceKeys = tuple[tuple[str, ...], tuple[str, ...]]


def change_key(clause: ChangeKey, before: tuple[str, ...], order: int, state: TableSchemaState, judged: Judged) -> None:
    """Judge the key that a statement's text gives the table."""
    mine = tuple(name for name in before if name != state.shard)
    if state.rules.key is not None or _lake_key(clause.columns, state) == mine:
        state.refused.pop(KEY_OF_TABLE, None)
        say(judged, Verdict.APPLY, "the key is the same in the lake")
    else:
        give_key(clause.columns, before, order, state, judged)


def follow_key(keys: SourceKeys, before: tuple[str, ...], order: int, state: TableSchemaState, judged: Judged) -> None:
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
            say(judged, Verdict.APPLY, "the key is the same in the lake")
    else:
        give_key(keys[1], before, order, state, judged)


def _lake_key(columns: Sequence[str], state: TableSchemaState) -> tuple[str, ...]:
    """The lake's columns of a key."""
    return tuple(known_column(name, state) or lake_name(name) for name in columns)


def give_key(
    columns: Sequence[str], before: tuple[str, ...], order: int, state: TableSchemaState, judged: Judged
) -> None:
    """Give the lake table another key, if the policy and the rows before allow it."""
    key, state.key = _lake_key(columns, state), before
    what = f"the key becomes ({', '.join(columns)}), the lake has ({', '.join(before)})"
    lacking = [name for name in key if name in state.unfilled]
    if state.rules.schema_changes.key == "refuse":
        refuse(KEY_OF_TABLE, what, order, state, judged)
    elif state.shard is not None:
        refuse(KEY_OF_TABLE, f"{what}, and it holds rows of several source tables", order, state, judged)
    elif lacking:
        why = f"{what}, and only the source knows the values of {', '.join(lacking)} in rows before"
        refuse(KEY_OF_TABLE, why, order, state, judged)
    else:
        renamed = {lake_name(s.old): lake_name(s.new) for s in judged.steps if isinstance(s, Copy)}
        held = not {renamed.get(name, name) for name in before} <= set(key) or not before
        judged.rewrite, state.key = KeyChange(key, held), key
        state.refused.pop(KEY_OF_TABLE, None)
        say(judged, Verdict.REWRITE, f"{what}: the lake table is written anew")
