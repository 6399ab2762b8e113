"""The state of a lake table between statements, and what a statement comes to: verdicts, steps, what it leaves open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa

from binlake.decode.changes import SourceTable, ZeroDates
from binlake.decode.ddl.clauses import (
    AddColumn,
    Clause,
    DropColumn,
    ModifyColumn,
    RenameColumn,
    Renames,
    names_after,
)
from binlake.decode.types.mysql_types import MysqlType
from binlake.schema.rules.collations import CollationHistory
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.definitions import DefinitionHistory, Presence
from binlake.schema.rules.generated_columns import GeneratedHistory
from binlake.schema.rules.key_indexes import KeyIndexHistory
from binlake.schema.rules.partitions.known import KnownPartitions
from binlake.schema.rules.steps import Step
from binlake.schema.rules.undetermined import UndeterminedEffect
from binlake.settings import TableRules
from hudilake.format.definition.column_names import known_as, lake_name
from hudilake.format.definition.merging import NEWEST, Merging

#: The name of a refusal of the whole table, among the refusals of its columns.
KEY_OF_TABLE = ""
#: The name of a refusal because of partitions, which another key does not lift.
PARTITIONS_OF_TABLE = "(partitions)"
#: MySQL types by column name (lower case), as they were before an ordering value.
TypesBefore = Callable[[int], Mapping[str, MysqlType]]


def no_types(order: int) -> Mapping[str, MysqlType]:
    """The types of a table that nothing has described."""
    return {}


class ClauseVerdict(StrEnum):
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

    verdict: ClauseVerdict
    text: str

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """The lake table gets the record key ``columns`` (lake names; none: whole rows are kept).

    ``held``: rows after the statement wait until all rows before it are applied under the former key. Rows that
    only the former key distinguishes could otherwise be taken for one row.
    """

    columns: tuple[str, ...]
    held: bool = False


@dataclass
class TableSchemaState:
    """The state of a lake table between two DDL statements; each statement changes it.

    ``schema``: the lake's columns. ``key``, ``partition``, ``shard``: lake names of the columns of the record key (none
    if whole rows are kept), of the partition, and of the shard, which distinguishes merged tables. ``gone``: columns
    that the source no longer has. ``dropped``: ordering value and time of a DROP TABLE after which there is no table.
    ``refused``: lake column -> the ordering value from which on rows are refused, and the reason. ``types``: MySQL
    types by column (lower case) as far as statements have given them; ``types_before``: those that were known
    otherwise.
    ``session``: of the statement that is judged. ``partitions``: the source's partition definition. ``generated``: its
    generated columns. ``collations``: of its text columns. ``indexes``: those that can be its key. ``definitions``: its
    columns after each statement.
    ``unfilled``: columns that the statement adds with values that its text does not determine. ``merging``: of the
    table; rows that its writer merges do not say which of their values are from before a statement. ``keeps_key``: why
    a table of its kind cannot get another key; None if it can. ``empty``: whether no rows are from before the
    statement: a tool alters its copy of a table before it fills it. ``zero_dates``: of the stream; it decides the lake
    types of dates. ``open_columns``: those (source names in lower case) that earlier statements leave open.
    ``strict``: whether the session of the statement is known to refuse values that do not fit. ``untold``: the model
    that it was made LIKE, if no log tells what it took over.
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
    generated: GeneratedHistory = field(default_factory=GeneratedHistory)
    collations: CollationHistory = field(default_factory=CollationHistory)
    indexes: KeyIndexHistory = field(default_factory=KeyIndexHistory)
    definitions: DefinitionHistory = field(default_factory=DefinitionHistory)
    unfilled: frozenset[str] = frozenset()
    merging: Merging = NEWEST
    keeps_key: str | None = None
    empty: bool = False
    zero_dates: ZeroDates = ZeroDates.NULL
    open_columns: set[str] = field(default_factory=set)
    strict: bool = False
    untold: SourceTable | None = None
    _former: dict[str, MysqlType | None] = field(default_factory=dict)
    _forgotten: dict[str, MysqlType | None] = field(default_factory=dict)

    def rename_open(self, renames: Renames) -> None:
        """Note the names that open columns have after a statement."""
        self.open_columns = {name.lower() for name in names_after(self.open_columns, renames)}

    def note_open(self, undetermined: Iterable[UndeterminedEffect]) -> None:
        """Note which columns a statement leaves open, by the names that they have after it."""
        self.open_columns |= {name.lower() for one in undetermined for name in one.column.split(", ") if name}

    def type_before(self, column: str, order: int) -> MysqlType | None:
        """The MySQL type of a column before a statement; None if it is not known."""
        return self.all_types_before(order).get(column.lower())

    def all_types_before(self, order: int) -> Mapping[str, MysqlType]:
        """The MySQL types of the columns before a statement, as far as they are known. What a statement has given that
        was carried out before counts unless the source's definition of the column is another one since."""
        defined = self.types_before(order)
        stale = {name for name, former in self._former.items() if former != defined.get(name)}
        unknown = {name for name, former in self._forgotten.items() if former == defined.get(name)}
        known = {**defined, **{name: kind for name, kind in self.types.items() if name not in stale}}
        return {name: kind for name, kind in known.items() if name not in unknown} if unknown else known

    def take_over_types(self, order: int, clauses: Iterable[Clause]) -> None:
        """Note the types that a statement which was carried out before gives to columns. No row need have come since,
        with which their definition would."""
        clauses, defined, before = list(clauses), self.types_before(order), self.all_types_before(order)
        for clause in clauses:
            if isinstance(clause, DropColumn | RenameColumn):
                self.types.pop((clause.old if isinstance(clause, RenameColumn) else clause.name).lower(), None)
        for clause in clauses:
            if isinstance(clause, AddColumn | ModifyColumn | RenameColumn):
                name = (clause.new if isinstance(clause, RenameColumn) else clause.column.name).lower()
                former = before.get(clause.old.lower()) if isinstance(clause, RenameColumn) else None
                kind = clause.column.type if clause.column is not None else former
                if kind is not None:
                    self.types[name], self._former[name] = kind, defined.get(name)
                    self._forgotten.pop(name, None)
                elif isinstance(clause, RenameColumn):
                    self.forget_type(name, order)

    def is_never_null(self, column: str) -> bool:
        """Whether the statements up to now give the source's column as NOT NULL."""
        known = self.definitions.known[-1:]
        return bool(known) and dict(known[0].columns).get(lake_name(column).lower()) is Presence.MUST

    def note_type(self, column: str, kind: MysqlType | None) -> None:
        """Note a column's MySQL type after a statement, if it is known."""
        if kind is not None:
            self.types[column.lower()] = kind
            self._former.pop(column.lower(), None)
            self._forgotten.pop(column.lower(), None)

    def forget_type(self, column: str, order: int) -> None:
        """Note that the type of a column after a statement is not known: that of another one had its name before. What
        the source's definitions say is of that one until they change."""
        name = column.lower()
        self.types.pop(name, None)
        self._former.pop(name, None)
        self._forgotten[name] = self.types_before(order).get(name)


@dataclass
class Judgement:
    """The result of a statement. ``texts``: columns that are integers at the source and text in the lake.
    ``undetermined``: what it does to rows and the log does not determine. ``rewrite``: the new key of the lake table.
    ``rekeyed``: key columns (lake names) whose type changes so that the texts of the record keys do. ``reread``:
    columns (source names in lower case) whose values may have another value in an expression, though they stay, and
    their former types.
    """

    rulings: list[Ruling] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    undetermined: list[UndeterminedEffect] = field(default_factory=list)
    rewrite: KeyChange | None = None
    rekeyed: set[str] = field(default_factory=set)
    reread: dict[str, MysqlType | None] = field(default_factory=dict)


def say(judged: Judgement, verdict: ClauseVerdict, text: str) -> None:
    """Add a ruling."""
    judged.rulings.append(Ruling(verdict, text))


def refuse(name: str, why: str, order: int, state: TableSchemaState, judged: Judgement) -> None:
    """Refuse the rows from an ordering value on, because of a column or of the table as a whole (``KEY_OF_TABLE``,
    ``PARTITIONS_OF_TABLE``)."""
    state.refused.setdefault(name, (order, why))
    say(judged, ClauseVerdict.REFUSE, why)


def known_column(name: str, state: TableSchemaState) -> str | None:
    """The lake's column of that source name, without regard to case."""
    return known_as(name, state.schema.names)


def is_placed(name: str | None, state: TableSchemaState) -> bool:
    """Whether rows are placed by the column: it is part of the key or of the partition."""
    return name is not None and (name in state.key or name == state.partition)


def is_fixed(name: str | None, state: TableSchemaState) -> bool:
    """Whether a column must stay because the table's partition, its settings, or a shared lake table need it."""
    if name is not None and name in state.key:
        policy = state.rules.schema_changes.key
        return policy == "refuse" or state.rules.key is not None or state.shard is not None or name == state.partition
    return name is not None and name == state.partition


def why_left_out(name: str, state: TableSchemaState) -> str | None:
    """Why a column is not restated: the settings keep its values out of the lake. None for all other columns."""
    rule = state.rules.columns
    if rule is None:
        return None
    if not rule.keeps(name):
        return "the settings leave it out"
    return "the settings mask it" if any(m.column.lower() == name.lower() for m in rule.masks) else None
