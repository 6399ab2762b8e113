"""Judges generated columns: what a statement that changes the columns which they read does to their values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from binlake.decode.ddl.clauses import AddColumn, Clause
from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.types.mysql_types import TEXT_BASES, MysqlType
from binlake.schema.rules.conversion.declared import TypeGroup, kind_of
from binlake.schema.rules.generated_columns import changed, reading, words
from binlake.schema.rules.judged import (
    ClauseVerdict,
    Judgement,
    TableSchemaState,
    is_placed,
    known_column,
    say,
    why_left_out,
)
from binlake.schema.rules.steps import Compute, Convert, Fill, Follow
from binlake.schema.rules.time_defaults import is_time
from binlake.schema.rules.undetermined import WHOLE_ROWS, UndeterminedEffect
from hudilake.errors import UnsupportedError

_NOT_SAID = "{}: whether the server computes it anew, no log says"
_OPEN = "it reads {}, which is not determined in all rows"


def computes(column: ColumnDefinition, order: int, state: TableSchemaState, judged: Judgement) -> bool:
    """Whether rows before get the value of an expression over their columns: adds the step. Raises UnsupportedError for
    an expression that cannot be computed."""
    if not column.expression or is_time(column):
        return False
    from binlake.schema.rules.generated import check_expression, why_open  # needs an SQL engine

    types = dict(state.all_types_before(order))
    check_expression(column.expression, column.type, state.schema, types)
    if masked := sorted(word for word in words(column.expression) & types.keys() if why_left_out(word, state)):
        raise UnsupportedError(f"it reads {', '.join(masked)}, whose values the lake does not hold", do_next="")
    open_columns = state.open_columns | {name.lower() for one in judged.undetermined for name in one.column.split(", ")}
    if reads := sorted(words(column.expression) & open_columns):
        raise UnsupportedError(_OPEN.format(", ".join(reads)), do_next="")
    read = sorted(words(column.expression) & types.keys())
    scales = tuple((name, types[name].scale or 0) for name in read if types[name].base == "decimal")
    judged.steps.append(Compute(column, column.expression, state.session, scales))
    why = why_open(column.expression, column.type, types)
    judged.undetermined += [UndeterminedEffect(column.name, why)] if why is not None else []
    return True


def follow_bases(clauses: Sequence[Clause], order: int, state: TableSchemaState, judged: Judgement) -> None:
    """Judge the generated columns that read a column whose values a statement changes, or gives another meaning."""
    conversions = {step.column.name.lower(): step for step in judged.steps if isinstance(step, Convert)}
    computed = {step.column.name.lower() for step in judged.steps if isinstance(step, Compute)}
    types = state.all_types_before(order)
    texts = [name for name, kind in types.items() if kind.base in TEXT_BASES]
    turned = state.collations.turned(clauses, order, texts) - judged.reread.keys()
    values_change = conversions.keys() | computed | judged.reread.keys()
    changes = values_change | turned
    judged.undetermined += _untold(clauses, order, state, judged, conversions.keys() | computed, changes)
    columns = changed(state.generated.before(order), clauses) if changes else {}
    settled = {s.column.name.lower() for s in judged.steps if isinstance(s, Compute | Convert | Fill)}
    settled |= {one.column.lower() for one in judged.undetermined}
    compared, anew = set[str](), set[str]()
    for column, read in reading(columns, changes):
        direct = words(column.expression)
        if not compared.isdisjoint(direct) or _compares(column, direct & turned):
            compared.add(column.name.lower())
        bases = read if column.name.lower() in compared else read & values_change
        name = known_column(column.name, state)
        is_out = name is None or column.type is None or why_left_out(column.name, state) is not None
        if is_out or column.name.lower() in settled or not bases:
            continue
        formers = {base: judged.reread[base] for base in bases if base in judged.reread}
        formers |= {base: types.get(base) for base in bases & turned - conversions.keys()}
        stays = {base: old for base, old in formers.items() if _may_stay(old, state.types.get(base))}
        changes_values = len(stays) < len(bases) or not bases.isdisjoint(conversions) or not anew.isdisjoint(direct)
        if not changes_values and _is_known(column, order, state, stays) and _is_known(column, order, state, {}):
            continue
        anew.add(column.name.lower())
        if is_placed(name, state):
            judged.undetermined.append(UndeterminedEffect(column.name, "rows before keep the values that place them"))
            say(judged, ClauseVerdict.KEEP, f"{column.name} reads {', '.join(sorted(bases))}, and places rows")
            continue
        try:
            if not _is_known(column, order, state, stays):
                raise UnsupportedError(_NOT_SAID.format(column.expression), do_next="")
            computes(column, order, state, judged)
            say(judged, ClauseVerdict.FILL, f"{column.name} becomes {column.expression} in rows before")
        except UnsupportedError as error:
            judged.undetermined.append(UndeterminedEffect(column.name, error.what))
            kept = [base for base in bases if base not in conversions or _keeps_meaning(conversions[base])]
            if len(kept) == len(bases) and not bases & (judged.reread.keys() | turned):
                judged.steps.append(Follow(column, tuple(sorted(bases))))
                what = f"{column.name} is null where {', '.join(sorted(bases))} becomes another value"
            else:
                judged.steps.append(Convert(column, None, state.session))
                what = f"{column.name} is null in rows before"
            say(judged, ClauseVerdict.CONVERT, f"{what}, as {error.what}")
    _settle_computed(judged, state)


def _untold(
    clauses: Sequence[Clause],
    order: int,
    state: TableSchemaState,
    judged: Judgement,
    converted: set[str],
    changes: set[str],
) -> list[UndeterminedEffect]:
    """What is not determined for want of the table's definition: columns that are generated from those whose values
    (``converted``), or at least whose meaning (``changes``) a statement changes. Where no CREATE TABLE is in the log,
    only the former count: each longer VARCHAR may have another collation."""
    if state.untold is not None:
        what = f"what the table took over from {state.untold}"
    elif state.generated.is_known(order) or any(one.column == WHOLE_ROWS for one in judged.undetermined):
        return []
    else:
        added = {clause.column.name.lower() for clause in clauses if isinstance(clause, AddColumn)}
        what, changes = "how the table was made", converted - added
    why = f"no log tells {what}: columns may be generated from {', '.join(sorted(changes))}"
    return [UndeterminedEffect(WHOLE_ROWS, why)] if changes else []


def _settle_computed(judged: Judgement, state: TableSchemaState) -> None:
    """Let each column be computed after those that it reads; not at all if one of them is not determined."""
    waiting = {step.column.name.lower(): step for step in judged.steps if isinstance(step, Compute)}
    left_open = {name.lower() for one in judged.undetermined for name in one.column.split(", ")}
    judged.steps = [step for step in judged.steps if not isinstance(step, Compute)]
    while waiting:
        ready = [name for name, step in waiting.items() if not words(step.expression) & (waiting.keys() - {name})]
        for name in ready or list(waiting):
            step = waiting.pop(name)
            if reads := sorted((words(step.expression) - {name}) & left_open):
                judged.undetermined.append(UndeterminedEffect(step.column.name, _OPEN.format(", ".join(reads))))
                judged.steps.append(Convert(step.column, None, state.session))
                left_open.add(name)
            else:
                judged.steps.append(step)


def _compares(column: ColumnDefinition, turned: Collection[str]) -> bool:
    """Whether a generated column may compare the text of columns whose collation may be another one."""
    from binlake.schema.rules.compared_text import compares_text  # needs an SQL engine

    return bool(turned) and compares_text(column.expression, turned)


def _is_known(
    column: ColumnDefinition, order: int, state: TableSchemaState, formers: Mapping[str, MysqlType | None]
) -> bool:
    """Whether the expression of a generated column is computed as at the server where columns have their former types.
    With the former type and with the new one it has the same value then."""
    from binlake.schema.rules.generated import check_expression  # needs an SQL engine

    types = dict(state.all_types_before(order))
    if None in formers.values():
        return False
    types |= {base: old for base, old in formers.items() if old is not None}
    try:
        check_expression(column.expression, column.type, state.schema, types)
    except UnsupportedError:
        return False
    return True


def _may_stay(old: MysqlType | None, new: MysqlType | None) -> bool:
    """Whether a server may change a type without a new copy of the rows: what it has stored of expressions stays then,
    and virtual columns do not (measured with MariaDB 11.4: ZEROFILL, character sets and collations)."""
    if old is None or new is None:
        return True
    return {old.base, new.base} <= TEXT_BASES or (
        kind_of(old) is kind_of(new) is TypeGroup.EXACT and old.scale == new.scale
    )


def _keeps_meaning(step: Convert) -> bool:
    """Whether a value that a conversion leaves equal is the same to an expression: an ENUM of equal text is not."""
    from binlake.schema.rules.expression_kinds import same_meaning  # needs an SQL engine

    return step.old is not None and step.column.type is not None and same_meaning(step.old, step.column.type)
