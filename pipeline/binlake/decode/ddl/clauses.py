"""What a DDL statement does to tables, as values: its clauses, and its effect on each table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TypeVar

from binlake.decode.changes import SourceTable, ZeroDates
from binlake.decode.ddl.columns import UNNAMED_COLLATION, ColumnDefinition, with_charset
from binlake.decode.ddl.foreign_keys import Cascade
from binlake.decode.ddl.partitions import ChangePartitions
from binlake.decode.types.zero_dates import lake_form


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN."""

    column: ColumnDefinition
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN, or the rename in CHANGE COLUMN. ``column``: the definition that CHANGE gives."""

    old: str
    new: str
    column: ColumnDefinition | None = None


@dataclass(frozen=True, slots=True)
class ModifyColumn:
    """MODIFY COLUMN, or the definition in a CHANGE that keeps the name."""

    column: ColumnDefinition


@dataclass(frozen=True, slots=True)
class ChangeKey:
    """The primary key is dropped or replaced. ``columns``: those of the new key, empty for none. ``by_index``: whether
    it is no primary key, but a unique index that takes its place."""

    columns: tuple[str, ...]
    by_index: bool = False


@dataclass(frozen=True, slots=True)
class AddUnique:
    """A unique index of these columns. ``name``: as the server names it, by the first column where nothing else is
    said; a number behind it, where that is taken, is left out."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropIndex:
    """An index, unique or not, or a constraint is dropped."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameIndex:
    """An index gets another name."""

    old: str
    new: str


#: What changes no row and no column: an index.
IndexClause = AddUnique | DropIndex | RenameIndex


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET: of all text columns. ``collation``: as in ``ColumnDefinition``."""

    charset: str
    collation: str = UNNAMED_COLLATION


@dataclass(frozen=True, slots=True)
class TableDefault:
    """What a table gives to text columns that name neither a character set nor a collation. ``collation``: as in
    ``ColumnDefinition``, never ""."""

    collation: str


@dataclass(frozen=True, slots=True)
class UntoldModel:
    """CREATE TABLE ... LIKE of a model of which no log tells more than columns and key: nothing is known of generated
    columns, indexes and partitions that the table takes over."""

    model: SourceTable


#: What to do about rows that the log does not say.
WAY_OUT = "binlake verify finds them, binlake table resync fetches the rows anew"


@dataclass(frozen=True, slots=True)
class UnloggedChange:
    """Rows change without an event. ``column``: the one whose values change; "" for whole rows. ``why``: in words.
    ``brings``: whether a table without rows may have some by it."""

    column: str
    why: str
    brings: bool = False


Clause = (
    AddColumn
    | DropColumn
    | RenameColumn
    | ModifyColumn
    | ChangeKey
    | IndexClause
    | ConvertCharset
    | TableDefault
    | UntoldModel
    | ChangePartitions
    | Cascade
    | UnloggedChange
)


#: Pairs (former name, new name) of columns that a statement renames; the new name of a dropped one is "".
Renames = Sequence[tuple[str, str]]
_Known = TypeVar("_Known")


def renames_of(clauses: Iterable[Clause]) -> Renames:
    """What a statement does to the names of columns."""
    clauses = list(clauses)
    dropped = [(clause.name, "") for clause in clauses if isinstance(clause, DropColumn)]
    return (*dropped, *((clause.old, clause.new) for clause in clauses if isinstance(clause, RenameColumn)))


def under_new_names(known: Mapping[str, _Known], clauses: Iterable[Clause]) -> dict[str, _Known]:
    """What is known of columns, by their names after a statement, without those that it drops. Its clauses refer to the
    columns before it, in whatever order: two columns may swap their names, and one may take that of a dropped one."""
    names, after = {old.lower(): new for old, new in renames_of(clauses)}, dict[str, _Known]()
    for name, of in known.items():
        if new := names.get(name.lower()):
            after[new] = of
        elif name.lower() not in names:
            after.setdefault(name, of)
    return after


def names_after(columns: Iterable[str], renames: Renames) -> list[str]:
    """The names of columns after a statement, without those that it drops; "" stands for none and stays."""
    names = {old.lower(): new for old, new in renames}
    return [after for name in columns if (after := names.get(name.lower(), name)) or not name]


def in_lake_form(clauses: Iterable[Clause], policy: ZeroDates) -> tuple[Clause, ...]:
    """The clauses with the types of their columns as the lake holds them under the policy."""
    return tuple(map(partial(_in_lake_form, policy=policy), clauses))


def _in_lake_form(clause: Clause, policy: ZeroDates) -> Clause:
    column = clause.column if isinstance(clause, AddColumn | ModifyColumn | RenameColumn) else None
    if column is None or column.type is None or not isinstance(clause, AddColumn | ModifyColumn | RenameColumn):
        return clause
    return replace(clause, column=replace(column, type=lake_form(column.type, policy)))


#: CONVERT TO CHARACTER SET DEFAULT: that of the database.
DEFAULT_CHARSET = "default"


def in_charset(clauses: Iterable[Clause], charset_of_column: Callable[[str], str | None]) -> tuple[Clause, ...]:
    """The clauses with the character sets of text columns that name none. ``charset_of_column``: of the column of a
    name after the statement, None if it is not known; "" stands for any column."""
    return tuple(_in_charset(clause, charset_of_column) for clause in clauses)


def _in_charset(clause: Clause, charset_of_column: Callable[[str], str | None]) -> Clause:
    if isinstance(clause, ConvertCharset):
        charset = charset_of_column("") if clause.charset == DEFAULT_CHARSET else None
        return clause if charset is None else replace(clause, charset=charset)
    if not isinstance(clause, AddColumn | ModifyColumn | RenameColumn) or clause.column is None:
        return clause
    charset = charset_of_column(clause.column.name)
    return clause if charset is None else replace(clause, column=with_charset(clause.column, charset))


#: The table name that stands for all tables of a database, in DROP DATABASE and ROLLBACK.
EVERY_TABLE = ""


class Action(StrEnum):
    """What a statement does to a table."""

    ALTER = "alter"
    CREATE = "create"
    DROP = "drop"
    RENAME = "rename"
    TRUNCATE = "truncate"


@dataclass(frozen=True, slots=True)
class TableEffect:
    """A statement's effect on one table. ``to``: the new name in RENAME. ``like``: the model in CREATE ... LIKE."""

    action: Action
    source: SourceTable
    clauses: tuple[Clause, ...] = ()
    to: SourceTable | None = None
    like: SourceTable | None = None
