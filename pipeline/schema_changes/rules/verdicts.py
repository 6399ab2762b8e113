"""Judges a DDL statement for a lake table: a verdict for each of its clauses, by the table's policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa

from pipeline.decode.ddl.columns import ColumnDefinition
from pipeline.decode.ddl.constants import constant_of
from pipeline.decode.ddl.foreign_keys import Cascade
from pipeline.decode.ddl.partitions import ChangePartitions
from pipeline.decode.ddl.statements import (
    AddColumn,
    ChangeKey,
    Clause,
    ConvertCharset,
    DropColumn,
    ModifyColumn,
    RenameColumn,
)
from pipeline.decode.types.mysql_types import MysqlType, parse_type
from pipeline.errors import UnsupportedError
from pipeline.hudi.definition.column_names import lake_name
from pipeline.schema_changes.rules.conversion.declared import without_charset
from pipeline.schema_changes.rules.conversion.session import Session
from pipeline.schema_changes.rules.evolution import TypeChange, common_type
from pipeline.schema_changes.rules.generated import check_expression
from pipeline.schema_changes.rules.partition_clauses import changes_rows, partitions_text, removal_of
from pipeline.schema_changes.rules.partitions.known import KnownPartitions
from pipeline.schema_changes.rules.retyping import conversion, is_rewritten, keeps_key_text
from pipeline.schema_changes.rules.stepping import copied_type
from pipeline.schema_changes.rules.steps import Compute, Convert, Copy, Fill, Remove, Step
from pipeline.schema_changes.rules.time_defaults import at_time, is_time
from pipeline.schema_changes.rules.undetermined import WHOLE_ROWS, Undetermined, undetermined_by
from pipeline.settings import TableRules

#: The name of a refusal of the whole table, among the refusals of its columns.
KEY_OF_TABLE = ""


#: MySQL types by column name (lower case), as they were before an ordering value.
TypesBefore = Callable[[int], Mapping[str, MysqlType]]


def no_types(order: int) -> Mapping[str, MysqlType]:
    """The types of a table that nothing has described."""
    return {}


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
    FOLLOW = "follow"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Ruling:
    """One clause's verdict, and its meaning in words."""

    verdict: Verdict
    text: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}"


@dataclass
class TableSchemaState:
    """The state of a lake table between two DDL statements; each statement changes it.

    ``schema``: the lake's columns. ``key``, ``partition``, ``shard``: lake names of the columns of the record key (none
    if whole rows are kept), of the partition, and of the shard, which distinguishes merged tables. ``gone``: columns
    that the source no longer has. ``dropped``: ordering value and time of a DROP TABLE after which there is no table.
    ``refused``: lake column -> the ordering value from which on rows are refused, and the reason. ``types``: MySQL
    types by column (lower case) as far as statements have given them; ``types_before``: those that were known
    otherwise.
    ``session``: of the statement that is judged. ``partitions``: the source's partition definition.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    partition: str | None
    rules: TableRules
    gone: set[str] = field(default_factory=set)
    shard: str | None = None
    dropped: tuple[int, int | None] | None = None
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    types: dict[str, MysqlType] = field(default_factory=dict)
    types_before: TypesBefore = no_types
    session: Session = field(default_factory=Session)
    partitions: KnownPartitions = field(default_factory=KnownPartitions)

    def type_before(self, column: str, order: int) -> MysqlType | None:
        """The MySQL type of a column before a statement; None if it is not known."""
        known = self.types.get(column.lower())
        return known or self.types_before(order).get(column.lower())

    def note_type(self, column: ColumnDefinition) -> None:
        """Note a column's MySQL type after a statement."""
        if column.type is not None:
            self.types[column.name.lower()] = column.type


@dataclass
class Judged:
    """The result of a statement. ``texts``: columns that are integers at the source and text in the lake.
    ``undetermined``: what it does to rows and the log does not determine."""

    rulings: list[Ruling] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    undetermined: list[Undetermined] = field(default_factory=list)


def judge_clauses(clauses: Sequence[Clause], order: int, state: TableSchemaState) -> Judged:
    """Judge a statement's clauses in order, and update the state."""
    judged = Judged()
    key: ChangeKey | None = None
    for clause in clauses:
        if isinstance(clause, AddColumn):
            _add(clause.column, order, state, judged)
        elif isinstance(clause, DropColumn):
            _drop(clause.name, order, state, judged)
        elif isinstance(clause, RenameColumn):
            _rename(clause, order, state, judged)
        elif isinstance(clause, ModifyColumn):
            _modify(clause.column, order, state, judged)
        elif isinstance(clause, ConvertCharset):
            _convert_charset(clause, order, state, judged)
        elif isinstance(clause, ChangePartitions):
            _change_partitions(clause, order, state, judged)
        elif isinstance(clause, Cascade):
            note_cascade(clause, judged)
        else:
            key = clause
    if key is not None:
        _change_key(key, order, state, judged)
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
    judged, named = Judged(), set[str]()
    for clause in clauses:
        if isinstance(clause, ChangeKey):
            _change_key(clause, order, state, judged)
        elif isinstance(clause, AddColumn) and clause.column.type is not None:
            name = _known(clause.column.name, state)
            before = state.schema.field(name).type if name is not None else None
            if name is None or _fits(clause.column, name, order, state, judged):
                _settle(clause.column, name, state)
            if name is not None and before is not None and is_rewritten(before, state.schema.field(name).type):
                judged.steps.append(Convert(clause.column, None, state.session))
            named.add(name or lake_name(clause.column.name))
    if named:
        state.gone |= set(state.schema.names) - named
    judged.rulings = [ruling for ruling in judged.rulings if ruling.verdict is Verdict.REFUSE]
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
    returns = name in state.gone if name is not None else False
    replaced = returns and name is not None and _replace_type(column, name, state)
    if name is not None and not replaced and not _fits(column, name, order, state, judged, follows=False):
        return
    _settle(column, name, state)
    if policy.add == "null":
        _say(judged, Verdict.ADD, f"{column.name} is null in rows before")
        return
    try:
        if _computes(column, state, judged):
            _say(judged, Verdict.FILL, f"{column.name} is {column.expression} in rows before")
            return
        column = at_time(column, state.session) if is_time(column) else column
        constant = constant_of(column)
    except UnsupportedError as error:
        judged.undetermined.append(Undetermined(column.name, error.what))
        judged.steps += [Convert(column, None, state.session)] if returns else []
        _say(judged, Verdict.ADD, f"{column.name} is null in rows before, as {error.what}")
        return
    if constant.is_valid or returns:
        judged.steps.append(Fill(column))
        _say(judged, Verdict.FILL, f"{column.name} is {_shown(constant)} in rows before")
    else:
        _say(judged, Verdict.ADD, f"{column.name} is null in rows before")


def _computes(column: ColumnDefinition, state: TableSchemaState, judged: Judged) -> bool:
    """Whether rows before get the value of an expression over their columns: adds the step. Raises UnsupportedError for
    an expression that cannot be computed."""
    if not column.expression or is_time(column):
        return False
    check_expression(column.expression, state.schema)
    judged.steps.append(Compute(column, column.expression, state.session))
    return True


def _replace_type(column: ColumnDefinition, name: str, state: TableSchemaState) -> bool:
    """Give a column that was dropped and comes back its new type; the values before are no longer of interest."""
    kind, new = state.schema.field(name).type, column.type
    policy = state.rules.schema_changes.convert
    if new is None or policy != "follow" or state.shard is not None or common_type(kind, new.lake_type)[0] is not None:
        return False
    state.schema = state.schema.set(state.schema.get_field_index(name), pa.field(name, new.lake_type))
    return True


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
    state.note_type(column)
    state.gone.discard(lake)
    state.refused.pop(lake, None)


def _fits(
    column: ColumnDefinition,
    name: str,
    order: int,
    state: TableSchemaState,
    judged: Judged,
    *,
    follows: bool = True,
) -> bool:
    """Whether the lake's column can hold the new type, or takes it if it ``follows``; changes its type in the state.
    Adds a refusal if it must not."""
    policy, kind = state.rules.schema_changes, state.schema.field(name).type
    new = column.type.lake_type if column.type is not None else kind
    common, change = common_type(kind, new, policy)
    what = f"{column.name} becomes {column.type_text}, the lake has {kind}"
    if common is None and follows and policy.convert == "follow" and state.shard is None:
        common = new
    moved = _placed(name, state) and change is TypeChange.OTHER
    if common is None or (moved and (name == state.partition or not _keeps_key(column, kind, order, state))):
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


def _keeps_key(column: ColumnDefinition, kind: pa.DataType, order: int, state: TableSchemaState) -> bool:
    return keeps_key_text(column, state.type_before(column.name, order), kind)


def _drop(column: str, order: int, state: TableSchemaState, judged: Judged) -> None:
    name = _known(column, state)
    if _placed(name, state):
        _refuse(str(name), f"key or partition column {column} is dropped", order, state, judged)
    elif state.rules.schema_changes.drop == "refuse":
        _refuse(lake_name(column), f"column {column} is dropped", order, state, judged)
    else:
        state.refused.pop(name or lake_name(column), None)
        if name is not None:
            state.gone.add(name)
        _say(judged, Verdict.KEEP, f"{column} stays, null in new rows")


def _rename(clause: RenameColumn, order: int, state: TableSchemaState, judged: Judged) -> None:
    policy, old = state.rules.schema_changes, _known(clause.old, state)
    what = f"{clause.old} becomes {clause.new}"
    if _placed(old, state):
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
    kind = _copied_type(clause, old, order, state)
    if new is not None and clause.column is not None and not _fits(clause.column, new, order, state, judged):
        return
    state.gone.add(old)
    state.refused.pop(old, None)
    former = state.type_before(clause.old, order)
    if kind is None or policy.rename == "keep":
        why = (
            "" if kind is not None else f", as the values cannot be had as {clause.column and clause.column.type_text}"
        )
        _say(judged, Verdict.KEEP, f"{what}: rows before keep {clause.old}, and have {clause.new} null{why}")
        kind = clause.column.type.lake_type if clause.column and clause.column.type else kind
    else:
        _copy(clause, (state.schema.field(old).type, kind), former, state, judged)
    if former is not None and clause.column is None:
        state.types[clause.new.lower()] = former
    if new is None and kind is not None:
        state.schema = state.schema.append(pa.field(lake_name(clause.new), kind))
    if clause.column is not None:
        state.note_type(clause.column)
    state.gone.discard(new or lake_name(clause.new))


def _copied_type(clause: RenameColumn, old: str, order: int, state: TableSchemaState) -> pa.DataType | None:
    """The lake type of a renamed column; None if its values are not carried over."""
    column, before = clause.column, state.schema.field(old).type
    plain = copied_type(before, column)
    follows = state.rules.schema_changes.convert == "follow" and state.shard is None
    if plain is not None or column is None or column.type is None or not follows:
        return plain
    return common_type(before, column.type.lake_type)[0] or column.type.lake_type


def _copy(
    clause: RenameColumn,
    lake_types: tuple[pa.DataType, pa.DataType],
    former: MysqlType | None,
    state: TableSchemaState,
    judged: Judged,
) -> None:
    what, column = f"{clause.old} becomes {clause.new}", clause.column
    step, undetermined = None, None
    if column is not None and column.type is not None and state.rules.schema_changes.convert == "follow":
        step, undetermined = conversion(column, former, *lake_types, state.session)
    copied = Copy(clause.old, clause.new, column if step is None else None, move=not state.key)
    judged.steps += [copied] if step is None else [copied, step]
    _say(judged, Verdict.COPY, f"{what}: rows before get {clause.new} from {clause.old}")
    if undetermined is not None:
        judged.undetermined.append(undetermined)
        _say(judged, Verdict.CONVERT, f"{clause.new} is null in rows before, {undetermined}")


def _modify(column: ColumnDefinition, order: int, state: TableSchemaState, judged: Judged) -> None:
    name = _known(column.name, state)
    if name is None or column.type is None or _left_out(column.name, state) is not None:
        _say(judged, Verdict.APPLY, f"{column.name} becomes {column.type_text}; the lake holds no such values")
        return
    before, old = state.schema.field(name).type, state.type_before(column.name, order)
    if not _fits(column, name, order, state, judged):
        return
    state.refused.pop(name, None)
    state.note_type(column)
    after = state.schema.field(name).type
    as_text = state.rules.schema_changes.convert == "string" and after == pa.string()
    if as_text and (before != after or column.type.lake_type != after):
        judged.texts.append(column.name)
        _say(judged, Verdict.CONVERT, f"{column.name} becomes {column.type_text}: text in the lake")
    elif column.generated and not _placed(name, state):
        _generate(column, state, judged)
    elif (not _placed(name, state) or is_rewritten(before, after)) and _convert(
        column, old, (before, after), state, judged
    ):
        return
    elif after != before:
        verdict = Verdict.CONVERT if is_rewritten(before, after) else Verdict.WIDEN
        _say(judged, verdict, f"{column.name} becomes {after} in the lake, was {before}")
    elif column.type.lake_type != after:
        _say(judged, Verdict.KEEP, f"{column.name} becomes {column.type_text}: {after} in the lake as before")
    else:
        _say(judged, Verdict.APPLY, f"{column.name} becomes {column.type_text}: {after} in the lake as before")


def _generate(column: ColumnDefinition, state: TableSchemaState, judged: Judged) -> None:
    """MODIFY of a generated column: rows before hold the values of its expression."""
    try:
        _computes(column, state, judged)
        _say(judged, Verdict.FILL, f"{column.name} becomes {column.expression} in rows before")
    except UnsupportedError as error:
        judged.undetermined.append(Undetermined(column.name, error.what))
        judged.steps.append(Convert(column, None, state.session))
        _say(judged, Verdict.CONVERT, f"{column.name} is null in rows before, as {error.what}")


def _convert(
    column: ColumnDefinition,
    old: MysqlType | None,
    lake_types: tuple[pa.DataType, pa.DataType],
    state: TableSchemaState,
    judged: Judged,
) -> bool:
    """Whether rows before the statement are converted: adds the step, and what it cannot determine."""
    before, after = lake_types
    step, undetermined = conversion(column, old, before, after, state.session)
    if step is None:
        return False
    judged.steps.append(step)
    what = f"{column.name} becomes {column.type_text}, {after} in the lake"
    if undetermined is None:
        _say(judged, Verdict.CONVERT, f"{what}: rows before are converted")
    else:
        judged.undetermined.append(undetermined)
        _say(judged, Verdict.CONVERT, f"{what}: rows before hold null, {undetermined}")
    return True


def _change_key(clause: ChangeKey, order: int, state: TableSchemaState, judged: Judged) -> None:
    key = {lake_name(name) for name in clause.columns}
    if state.rules.key is not None or key == set(state.key) - {state.shard}:
        state.refused.pop(KEY_OF_TABLE, None)
        _say(judged, Verdict.APPLY, "the key is the same in the lake")
    else:
        why = f"the key becomes ({', '.join(clause.columns)}), the lake has ({', '.join(state.key)})"
        _refuse(KEY_OF_TABLE, why, order, state, judged)


def _change_partitions(clause: ChangePartitions, order: int, state: TableSchemaState, judged: Judged) -> None:
    policy, what = state.rules.schema_changes.partitions, partitions_text(clause)
    if not changes_rows(clause):
        _say(judged, Verdict.APPLY, "the partitions of the source change, and no row")
    elif policy == "keep":
        judged.undetermined.append(Undetermined(WHOLE_ROWS, f"{what}: the rows stay in the lake"))
        _say(judged, Verdict.KEEP, f"{what}: the rows stay in the lake")
    elif policy == "refuse":
        _refuse(KEY_OF_TABLE, what, order, state, judged)
    else:
        try:
            removal = removal_of(clause, state.partitions.before(order), state.schema)
        except UnsupportedError as error:
            _refuse(KEY_OF_TABLE, f"{what}: {error.what}", order, state, judged)
            return
        judged.steps.append(Remove(removal))
        _say(judged, Verdict.DELETE, f"{what}: the rows from before are deleted")


def note_cascade(clause: Cascade, judged: Judged) -> None:
    """Note that a foreign key changes rows without an event."""
    said = undetermined_by(clause)
    judged.undetermined.append(said)
    _say(judged, Verdict.APPLY, str(said))


def _convert_charset(clause: ConvertCharset, order: int, state: TableSchemaState, judged: Judged) -> None:
    """CONVERT TO CHARACTER SET: every text column of the source is converted, as by MODIFY."""
    texts = {**state.types_before(order), **state.types}
    for name, kind in texts.items():
        if kind.base in ("char", "varchar", "text", "enum", "set") and (lake := _known(name, state)) not in state.gone:
            text = f"{without_charset(kind.text or kind.base)} character set {clause.charset}"
            column = ColumnDefinition(lake or name, text, parse_type(text))
            _modify(column, order, state, judged)
    if not texts and not clause.charset.startswith("utf8mb4"):
        judged.undetermined.append(Undetermined(WHOLE_ROWS, f"text becomes {clause.charset}, and no column is known"))
        _say(judged, Verdict.KEEP, f"text becomes {clause.charset} in the source; no column is known, the rows stay")
