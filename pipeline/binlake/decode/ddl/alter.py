"""The clauses of ALTER TABLE, and of the brackets of CREATE TABLE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binlake.decode.ddl.clauses import (
    AddColumn,
    ChangeKey,
    Clause,
    ConvertCharset,
    DropColumn,
    ModifyColumn,
    RenameColumn,
)
from binlake.decode.ddl.columns import ColumnDefinition, column_definition
from binlake.decode.ddl.foreign_keys import cascade
from binlake.decode.ddl.tokens import Reader, Token, split_at_commas

_NO_COLUMN = ("PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FOREIGN", "CHECK", "FULLTEXT", "SPATIAL", "PERIOD")


def _defined(part: Sequence[Token]) -> ColumnDefinition | None:
    """A column of CREATE TABLE; None for a part that is not a column."""
    return None if not part or part[0].is_word(*_NO_COLUMN) else column_definition(Reader(part))


def renamed_column(clause: Reader) -> RenameColumn | None:
    """The column that a RENAME clause renames; None if it renames something else."""
    if not clause.take("COLUMN"):
        return None
    clause.take("IF", "EXISTS")
    old = clause.name()
    clause.take("TO")
    new = clause.name()
    return RenameColumn(old, new) if old and new else None


def clauses_of(clause: Reader) -> Iterator[Clause]:
    """What one clause does, other than RENAME."""
    if clause.take("ADD"):
        yield from added(clause)
    elif clause.take("DROP"):
        yield from _dropped(clause)
    elif clause.take_any("CHANGE"):
        clause.take("COLUMN")
        clause.take("IF", "EXISTS")
        old = clause.name()
        column = column_definition(clause)
        if old and column:
            yield ModifyColumn(column) if column.name == old else RenameColumn(old, column.name, column)
    elif clause.take("CONVERT", "TO"):
        charset = _charset(clause)
        if charset is not None:
            yield ConvertCharset(charset.lower())
    elif clause.take("MODIFY"):
        clause.take("COLUMN")
        clause.take("IF", "EXISTS")
        column = column_definition(clause)
        if column:
            yield ModifyColumn(column)


def _charset(clause: Reader) -> str | None:
    if not (clause.take("CHARACTER", "SET") or clause.take_any("CHARSET")):
        return None
    clause.take_sign("=")
    return clause.next.value if clause.left else None


def added(clause: Reader) -> Iterator[Clause]:
    """The columns and keys of an ADD clause, or of one part of CREATE TABLE's brackets."""
    explicit = clause.take("COLUMN")
    if not explicit and clause.left and clause.next.is_word(*_NO_COLUMN, "PARTITION", "SYSTEM"):
        if clause.take("CONSTRAINT") and clause.left and not clause.next.is_word("PRIMARY", "FOREIGN"):
            clause.name()
        foreign = cascade(clause.rest) if clause.left and clause.next.is_word("FOREIGN") else None
        if foreign is not None:
            yield foreign
        if clause.take("PRIMARY", "KEY"):
            while clause.left and not clause.next.is_sign("("):
                clause.skip()
            parts = split_at_commas(clause.bracketed() or [])
            yield ChangeKey(tuple(part[0].value for part in parts if part))
        return
    exists = clause.take("IF", "NOT", "EXISTS")
    several = clause.bracketed()
    for part in split_at_commas(several) if several is not None else [clause.rest]:
        column = _defined(part)
        if column:
            yield AddColumn(column, exists)
            if column.name and _is_primary(part):
                yield ChangeKey((column.name,))
            foreign = cascade(part[1:], column.name)
            if foreign is not None:
                yield foreign


def _is_primary(part: Sequence[Token]) -> bool:
    words = [t.text.upper() for t in part[1:] if t.kind == "word"]
    return "PRIMARY" in words


def _dropped(clause: Reader) -> Iterator[Clause]:
    if clause.take("PRIMARY", "KEY"):
        yield ChangeKey(())
        return
    explicit = clause.take("COLUMN")
    others = ("INDEX", "KEY", "FOREIGN", "CONSTRAINT", "CHECK", "PARTITION", "PERIOD", "SYSTEM")
    if not explicit and clause.left and clause.next.is_word(*others):
        return
    clause.take("IF", "EXISTS")
    name = clause.name()
    if name:
        yield DropColumn(name)
