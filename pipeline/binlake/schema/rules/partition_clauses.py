"""Judges clauses that change rows without naming columns: partitions, and foreign keys that cascade."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from binlake.decode.ddl.foreign_keys import Cascade
from binlake.decode.ddl.partitions import ChangePartitions, Method, PartitionAction, PartitionDefinition
from binlake.schema.rules.judged import (
    PARTITIONS_OF_TABLE,
    ClauseVerdict,
    Judgement,
    TableSchemaState,
    refuse,
    say,
)
from binlake.schema.rules.partitions.known import PartitioningPeriod
from binlake.schema.rules.partitions.members import Removal, check_removal
from binlake.schema.rules.steps import Remove
from binlake.schema.rules.undetermined import WHOLE_ROWS, UndeterminedEffect, undetermined_by
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import lake_name

#: The values of a LIST's DEFAULT partition, and the name of a part for values that no new partition takes.
_ANY, _NO_PLACE = "DEFAULT", "(no place)"
_SPACES = re.compile(r" +(?=')")
_REMOVES = frozenset({PartitionAction.DROP, PartitionAction.TRUNCATE})


def changes_rows(clause: ChangePartitions) -> bool:
    """Whether a clause removes or replaces rows, and not only moves them between partitions."""
    return clause.action in _REMOVES or clause.brings_rows


def removal_of(
    clause: ChangePartitions, known: PartitioningPeriod | None, schema: pa.Schema, open_columns: Collection[str] = ()
) -> Removal:
    """The rows that a clause removes.

    Args:
        clause: one that ``changes_rows``.
        known: the table's definition before it.
        schema: the lake's columns.
        open_columns: those (in lower case) that are not determined in all rows.

    Raises UnsupportedError, with the reason, where the rows are not known exactly.
    """
    if clause.brings_rows:
        raise UnsupportedError("the rows of the other table take the place of the partition's rows", do_next="")
    if known is None or known.partitioning is None:
        raise UnsupportedError("the table's partition definition is not known", do_next="")
    removal = Removal(known.partitioning, () if clause.every else clause.names)
    check_removal(removal, schema, open_columns)
    return removal


def without_place(
    clause: ChangePartitions, known: PartitioningPeriod | None, schema: pa.Schema, open_columns: Collection[str] = ()
) -> Removal | None:
    """The rows that REORGANIZE deletes because no new partition of a LIST takes them, as the server does without an
    error (measured with MariaDB 11.4); None if there are none. Other arguments as ``removal_of``.

    Raises UnsupportedError, with the reason, where they are not known exactly.
    """
    if known is None or known.partitioning is None:
        raise UnsupportedError("the table's partition definition is not known", do_next="")
    former = {name.lower() for name in clause.names}
    old = [text for part in known.partitioning.parts if part.name.lower() in former for text in part.values]
    new = {text for part in clause.parts for text in part.values}
    left = tuple(text for text in old if text not in new)
    if known.partitioning.method is not Method.LIST:
        return None
    if _ANY in new | set(old):  # MariaDB 11.4.5 loses rows that a new DEFAULT partition should take (measured)
        raise UnsupportedError("which rows a DEFAULT partition takes is not known", do_next="")
    if not left:
        return None
    if _may_be_equal(left, new, schema, known.partitioning.columns):
        raise UnsupportedError("whether a new partition takes a text depends on a collation", do_next="")
    stay = (part for part in known.partitioning.parts if part.name.lower() not in former)
    # Of equal values in other texts the last one counts.
    parts = (PartitionDefinition(_NO_PLACE, left), *clause.parts, *stay)
    removal = Removal(replace(known.partitioning, parts=parts, sub=None), (_NO_PLACE,))
    check_removal(removal, schema, open_columns)
    return removal


def _may_be_equal(left: Collection[str], new: Collection[str], schema: pa.Schema, columns: Collection[str]) -> bool:
    """Whether listed texts that differ may be equal by some collation: in case, spaces at the end, or other letters."""
    names = {lake_name(name).lower() for name in columns}
    if not any(pa.types.is_string(field.type) for field in schema if field.name.lower() in names):
        return False
    alike = {_SPACES.sub("", text.casefold()) for text in new}
    plain = all(text.isascii() for text in (*left, *new))
    return not plain or any(_SPACES.sub("", text.casefold()) in alike for text in left)


def partitions_text(clause: ChangePartitions) -> str:
    """The clause in words, for verdicts."""
    if not clause.names and clause.action is PartitionAction.EXCHANGE:
        return "exchange with a partition of another table"
    names = "all partitions" if clause.every else f"partition {', '.join(clause.names)}"
    return f"{clause.action} {names}"


def change_partitions(clause: ChangePartitions, order: int, state: TableSchemaState, judged: Judgement) -> None:
    """Judge a partition clause: the rows that it removes are deleted, or it is refused where they are not known."""
    policy, what = state.rules.schema_changes.partitions, partitions_text(clause)
    if clause.action is PartitionAction.REORGANIZE and clause.parts:
        _reorganize(clause, order, state, judged)
    elif not changes_rows(clause):
        say(judged, ClauseVerdict.APPLY, "the partitions of the source change, and no row")
    elif policy == "keep":
        judged.undetermined.append(UndeterminedEffect(WHOLE_ROWS, f"{what}: the rows stay in the lake"))
        say(judged, ClauseVerdict.KEEP, f"{what}: the rows stay in the lake")
    elif policy == "refuse":
        refuse(PARTITIONS_OF_TABLE, what, order, state, judged)
    else:
        try:
            removal = removal_of(clause, state.partitions.before(order), state.schema, state.open_columns)
        except UnsupportedError as error:
            refuse(PARTITIONS_OF_TABLE, f"{what}: {error.what}", order, state, judged)
            return
        judged.steps.append(Remove(removal))
        say(judged, ClauseVerdict.DELETE, f"{what}: the rows from before are deleted")


def _reorganize(clause: ChangePartitions, order: int, state: TableSchemaState, judged: Judgement) -> None:
    """Judge REORGANIZE: rows that no new partition takes go, by the policy of other clauses that remove rows."""
    policy, what = state.rules.schema_changes.partitions, partitions_text(clause)
    try:
        removal = without_place(clause, state.partitions.before(order), state.schema, state.open_columns)
    except UnsupportedError as error:
        why = f"{what}: rows that no new partition takes go: {error.what}"
        judged.undetermined.append(UndeterminedEffect(WHOLE_ROWS, why))
        say(judged, ClauseVerdict.KEEP, why)
        return
    if removal is None:
        say(judged, ClauseVerdict.APPLY, "the partitions of the source change, and no row")
    elif policy == "follow":
        judged.steps.append(Remove(removal))
        say(judged, ClauseVerdict.DELETE, f"{what}: the rows from before that no new partition takes are deleted")
    elif policy == "keep":
        judged.undetermined.append(UndeterminedEffect(WHOLE_ROWS, f"{what}: the rows stay in the lake"))
        say(judged, ClauseVerdict.KEEP, f"{what}: the rows stay in the lake")
    else:
        refuse(PARTITIONS_OF_TABLE, what, order, state, judged)


def note_cascade(clause: Cascade, judged: Judgement) -> None:
    """Note that a foreign key changes rows without an event."""
    said = undetermined_by(clause)
    judged.undetermined.append(said)
    say(judged, ClauseVerdict.APPLY, str(said))
