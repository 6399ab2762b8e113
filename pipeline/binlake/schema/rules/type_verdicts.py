"""Judges changes of type: what the lake's column becomes, and how rows from before the statement are converted."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from binlake.decode.ddl.clauses import ConvertCharset, RenameColumn
from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.types.mysql_types import (
    TEXT_BASES,
    MysqlType,
    parse_type,
    without_charset,
)
from binlake.schema.rules.conversion.lossless import keeps_values
from binlake.schema.rules.evolution import TypeChange, common_type
from binlake.schema.rules.generated_verdicts import computes
from binlake.schema.rules.judged import (
    ClauseVerdict,
    Judgement,
    TableSchemaState,
    is_fixed,
    is_placed,
    known_column,
    refuse,
    say,
    why_left_out,
)
from binlake.schema.rules.retyping import conversion, is_rewritten, keeps_key_texts, takes_key_texts
from binlake.schema.rules.stepping import copied_type, is_null
from binlake.schema.rules.steps import Convert, Copy
from binlake.schema.rules.table_charsets import taking_all
from binlake.schema.rules.undetermined import WHOLE_ROWS, UndeterminedEffect
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import lake_name


def settle(column: ColumnDefinition, name: str | None, state: TableSchemaState) -> None:
    """Note a column that the lake has or will have."""
    assert column.type is not None
    if name is None:
        field = pa.field(lake_name(column.name), column.type.lake_type)
        state.schema = state.schema.append(field)
    lake = name or lake_name(column.name)
    state.note_type(column.name, column.type)
    state.gone.discard(lake)
    state.refused.pop(lake, None)


def fits(
    column: ColumnDefinition,
    name: str,
    order: int,
    state: TableSchemaState,
    judged: Judgement,
    *,
    follows: bool = True,
    emptied: bool = False,
) -> bool:
    """Whether the lake's column can hold the new type, or takes it if it ``follows``; changes its type in the state.
    Adds a refusal if it must not. ``emptied``: the statement deletes all rows before it, whatever their keys are."""
    policy, kind = state.rules.schema_changes, state.schema.field(name).type
    new = column.type.lake_type if column.type is not None else kind
    common, change = common_type(kind, new, policy)
    what = f"{column.name} becomes {column.type_text}, the lake has {kind}"
    if common is None and follows and policy.convert == "follow" and state.shard is None:
        common = new
    if common is None:
        refuse(name, f"column {what}", order, state, judged)
        return False
    for wrong, refused in ((TypeChange.WIDER, policy.widen), (TypeChange.NARROWER, policy.narrow)):
        if change is wrong and refused == "refuse":
            refuse(name, f"column {what}", order, state, judged)
            return False
    placed = is_placed(name, state) and not (emptied and name in state.key and not is_fixed(name, state))
    if placed and not _keeps_place(column, name, common, order, state, judged):
        refuse(name, f"key or partition column {what}", order, state, judged)
        return False
    field_index = state.schema.get_field_index(name)
    state.schema = state.schema.set(field_index, state.schema.field(field_index).with_type(common))
    return True


def _keeps_place(
    column: ColumnDefinition,
    name: str,
    after: pa.DataType,
    order: int,
    state: TableSchemaState,
    judged: Judgement,
) -> bool:
    """Whether rows can be found by a key or partition column in its new type: their texts stay, or they are rekeyed."""
    kind, old = state.schema.field(name).type, state.type_before(column.name, order)
    changes = common_type(kind, after)[1] is TypeChange.OTHER
    if keeps_key_texts(column, old, kind):
        return name in state.key or not changes
    if not is_fixed(name, state) and takes_key_texts(column, old, kind, after, state.session):
        judged.rekeyed.add(name)
        return True
    new = column.type.lake_type if column.type is not None else kind
    if changes or (pa.types.is_decimal(new) and new.scale != kind.scale):
        return False
    judged.undetermined.append(UndeterminedEffect(column.name, "rows before keep the values that place them"))
    return True


def replace_type(new: pa.DataType, name: str, state: TableSchemaState) -> bool:
    """Give a column that was dropped and comes back its new lake type; the values before are no longer of interest."""
    kind, policy = state.schema.field(name).type, state.rules.schema_changes.convert
    if policy != "follow" or state.shard is not None or common_type(kind, new)[0] is not None:
        return False
    state.schema = state.schema.set(state.schema.get_field_index(name), pa.field(name, new))
    return True


def widen(new: pa.DataType, name: str, state: TableSchemaState) -> None:
    """Give a column the type that holds its values and those of ``new``, if there is one and the policy allows it."""
    policy = state.rules.schema_changes
    common, change = common_type(state.schema.field(name).type, new, policy)
    if common is not None and not (change is TypeChange.WIDER and policy.widen == "refuse"):
        state.schema = state.schema.set(state.schema.get_field_index(name), pa.field(name, common))


def modify(column: ColumnDefinition, order: int, state: TableSchemaState, judged: Judgement) -> None:
    """Judge MODIFY COLUMN."""
    name = known_column(column.name, state)
    if name is None or column.type is None or why_left_out(column.name, state) is not None:
        say(judged, ClauseVerdict.APPLY, f"{column.name} becomes {column.type_text}; the lake holds no such values")
        note_unheld(column, state.type_before(column.name, order), state, judged)
        return
    before, old = state.schema.field(name).type, state.type_before(column.name, order)
    if not fits(column, name, order, state, judged):
        return
    state.refused.pop(name, None)
    state.note_type(column.name, column.type)
    note_reread(column, old, judged)
    after = state.schema.field(name).type
    as_text = state.rules.schema_changes.convert == "string" and after == pa.string()
    if as_text and (before != after or column.type.lake_type != after):
        judged.texts.append(column.name)
        say(judged, ClauseVerdict.CONVERT, f"{column.name} becomes {column.type_text}: text in the lake")
    elif column.generated and not is_placed(name, state):
        _generate(column, order, state, judged)
    elif (not is_placed(name, state) or is_rewritten(before, after) or name in judged.rekeyed) and _convert(
        column, old, (before, after), state, judged
    ):
        return
    elif after != before:
        verdict = ClauseVerdict.CONVERT if is_rewritten(before, after) else ClauseVerdict.WIDEN
        say(judged, verdict, f"{column.name} becomes {after} in the lake, was {before}")
    elif column.type.lake_type != after:
        say(judged, ClauseVerdict.KEEP, f"{column.name} becomes {column.type_text}: {after} in the lake as before")
    else:
        say(judged, ClauseVerdict.APPLY, f"{column.name} becomes {column.type_text}: {after} in the lake as before")


def note_reread(column: ColumnDefinition, old: MysqlType | None, judged: Judgement) -> None:
    """Note that expressions may give another value for equal values of a column. ``old``: its former type."""
    from binlake.schema.rules.expression_kinds import same_meaning  # needs an SQL engine

    if column.type is not None and (old is None or not same_meaning(old, column.type)):
        judged.reread[column.name.lower()] = old


def note_unheld(
    column: ColumnDefinition, old: MysqlType | None, state: TableSchemaState, judged: Judgement, former: str = ""
) -> None:
    """Note that a column which the lake does not hold as the source has it may have other values. ``old``, ``former``:
    its former type, and its former name if that is another one."""
    from binlake.schema.rules.expression_kinds import same_meaning  # needs an SQL engine

    new = column.type
    fills = not column.nullable and not state.is_never_null(former or column.name)
    if fills or new is None or old is None or not (same_meaning(old, new) and keeps_values(old, new)):
        judged.reread[column.name.lower()] = None


def _generate(column: ColumnDefinition, order: int, state: TableSchemaState, judged: Judgement) -> None:
    """MODIFY of a generated column: rows before hold the values of its expression."""
    try:
        computes(column, order, state, judged)
        say(judged, ClauseVerdict.FILL, f"{column.name} becomes {column.expression} in rows before")
    except UnsupportedError as error:
        judged.undetermined.append(UndeterminedEffect(column.name, error.what))
        judged.steps.append(Convert(column, None, state.session))
        say(judged, ClauseVerdict.CONVERT, f"{column.name} is null in rows before, as {error.what}")


def _conversion(
    column: ColumnDefinition,
    old: MysqlType | None,
    lake_types: tuple[pa.DataType, pa.DataType],
    state: TableSchemaState,
    *,
    never_null: bool,
    rekeys: bool = False,
) -> tuple[Convert | None, UndeterminedEffect | None]:
    """As ``conversion``, upon what earlier statements leave open: NOT NULL gives NULL a value, but a null that stands
    for other values is kept. ``never_null``: whether the column had no NULL."""
    taking, still_open = taking_all(column, strict=state.strict), None
    if not column.nullable and column.name.lower() in state.open_columns:
        why = "null becomes a value, but null stands for values in the lake that an earlier statement left open"
        still_open = None if never_null else UndeterminedEffect(column.name, why)
        taking = replace(taking, nullable=True)
    step, undetermined = conversion(taking, old, *lake_types, state.session, rekeys=rekeys, never_null=never_null)
    return step, undetermined or still_open


def _convert(
    column: ColumnDefinition,
    old: MysqlType | None,
    lake_types: tuple[pa.DataType, pa.DataType],
    state: TableSchemaState,
    judged: Judgement,
) -> bool:
    """Whether rows before the statement are converted: adds the step, and what it cannot determine."""
    rekeys = known_column(column.name, state) in judged.rekeyed
    never_null = state.is_never_null(column.name)
    step, undetermined = _conversion(column, old, lake_types, state, never_null=never_null, rekeys=rekeys)
    if step is None:
        judged.undetermined += [undetermined] if undetermined is not None else []
        return False
    judged.steps.append(step)
    what = f"{column.name} becomes {column.type_text}, {lake_types[1]} in the lake"
    if undetermined is None:
        say(judged, ClauseVerdict.CONVERT, f"{what}: rows before are converted")
    else:
        judged.undetermined.append(undetermined)
        fate = "hold null" if is_null(step) else "are converted"
        say(judged, ClauseVerdict.CONVERT, f"{what}: rows before {fate}, {undetermined}")
    return True


def convert_charset(clause: ConvertCharset, order: int, state: TableSchemaState, judged: Judgement) -> None:
    """CONVERT TO CHARACTER SET: every text column of the source is converted, as by MODIFY."""
    texts = state.all_types_before(order)
    for name, kind in texts.items():
        lake = known_column(name, state)
        if kind.base in TEXT_BASES and lake not in state.gone:
            text = f"{without_charset(kind.text or kind.base)} character set {clause.charset}"
            modify(ColumnDefinition(lake or name, text, parse_type(text)), order, state, judged)
    if not texts and not clause.charset.startswith("utf8mb4"):
        judged.undetermined.append(
            UndeterminedEffect(WHOLE_ROWS, f"text becomes {clause.charset}, and no column is known")
        )
        say(
            judged,
            ClauseVerdict.KEEP,
            f"text becomes {clause.charset} in the source; no column is known, the rows stay",
        )


def copied_lake_type(clause: RenameColumn, before: pa.DataType, state: TableSchemaState) -> pa.DataType | None:
    """The lake type of a renamed column, which was ``before``; None if its values are not carried over."""
    column = clause.column
    plain = copied_type(before, column)
    follows = state.rules.schema_changes.convert == "follow" and state.shard is None
    if plain is not None or column is None or column.type is None or not follows:
        return plain
    return common_type(before, column.type.lake_type)[0] or column.type.lake_type


def copy_column(
    clause: RenameColumn,
    lake_types: tuple[pa.DataType, pa.DataType],
    former: MysqlType | None,
    order: int,
    state: TableSchemaState,
    judged: Judgement,
) -> None:
    """Judge a rename whose values are carried over, and converted if the column gets another type; those of a generated
    column are computed."""
    what, column = f"{clause.old} becomes {clause.new}", clause.column
    step, undetermined = None, None
    if column is not None:
        note_reread(column, former, judged)
    if column is not None and column.generated:
        _generate(column, order, state, judged)
        return
    if column is not None and column.type is not None and state.rules.schema_changes.convert == "follow":
        never_null = state.is_never_null(clause.old)
        step, undetermined = _conversion(column, former, lake_types, state, never_null=never_null)
    copied = Copy(clause.old, clause.new, column if step is None else None, move=not state.key)
    judged.steps += [copied] if step is None else [copied, step]
    say(judged, ClauseVerdict.COPY, f"{what}: rows before get {clause.new} from {clause.old}")
    if undetermined is not None:
        judged.undetermined.append(undetermined)
        fate = "null" if step is None or is_null(step) else "converted"
        say(judged, ClauseVerdict.CONVERT, f"{clause.new} is {fate} in rows before, {undetermined}")
