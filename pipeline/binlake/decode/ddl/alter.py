"""The clauses of ALTER TABLE, and of the brackets of CREATE TABLE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from binlake.decode.ddl.clauses import (
    WAY_OUT,
    AddColumn,
    AddUnique,
    ChangeKey,
    Clause,
    ConvertCharset,
    DropColumn,
    DropIndex,
    ModifyColumn,
    RenameColumn,
    UnloggedChange,
)
from binlake.decode.ddl.columns import UNNAMED_COLLATION, ColumnDefinition, column_definition, named_collation
from binlake.decode.ddl.foreign_keys import cascade
from binlake.decode.ddl.partitions import ChangePartitions
from binlake.decode.ddl.tokens import Reader, Token, split_at_commas

_NO_COLUMN = ("PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FOREIGN", "CHECK", "FULLTEXT", "SPATIAL", "PERIOD")


#: The first words of clauses of ALTER TABLE that are not options of the table.
NO_TABLE_OPTION = ("ADD", "ALTER", "CHANGE", "DROP", "MODIFY", "ORDER", "PARTITION", "RENAME")


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
            yield ConvertCharset(charset.lower(), _collation(clause))
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
    charset = clause.next.value if clause.left else None
    clause.skip()
    return charset


def _collation(clause: Reader) -> str:
    return named_collation(clause) if clause.take("COLLATE") else UNNAMED_COLLATION


def added(clause: Reader) -> Iterator[Clause]:
    """The columns and keys of an ADD clause, or of one part of CREATE TABLE's brackets."""
    explicit = clause.take("COLUMN")
    if not explicit and clause.left and clause.next.is_word(*_NO_COLUMN, "PARTITION", "SYSTEM"):
        symbol = None
        if clause.take("CONSTRAINT") and clause.left and not clause.next.is_word("PRIMARY", "FOREIGN", "UNIQUE"):
            symbol = clause.name()
        if clause.take("UNIQUE"):
            yield from unique_index(clause, symbol)
            return
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
            elif column.name and any(token.is_word("UNIQUE", "SERIAL") for token in part[1:]):
                yield AddUnique(column.name, (column.name,))
            foreign = cascade(part[1:], column.name)
            if foreign is not None:
                yield foreign


def unique_index(clause: Reader, symbol: str | None = None) -> Iterator[AddUnique]:
    """The index of what comes behind UNIQUE. ``symbol``: of the constraint."""
    clause.take_any("INDEX", "KEY")
    clause.take("IF", "NOT", "EXISTS")
    name = None if clause.left and clause.next.is_word("USING") else clause.name()
    while clause.left and not clause.next.is_sign("("):
        clause.skip()
    columns = tuple(part[0].value for part in split_at_commas(clause.bracketed() or []) if part)
    if columns:
        yield AddUnique(name or symbol or columns[0], columns)


def _is_primary(part: Sequence[Token]) -> bool:
    words = [t.text.upper() for t in part[1:] if t.kind == "word"]
    return "PRIMARY" in words


def _dropped(clause: Reader) -> Iterator[Clause]:
    if clause.take("PRIMARY", "KEY"):
        yield ChangeKey(())
        return
    if clause.take_any("INDEX", "KEY", "CONSTRAINT"):
        clause.take("IF", "EXISTS")
        yield from dropped_index(clause.name())
        return
    explicit = clause.take("COLUMN")
    others = ("FOREIGN", "CHECK", "PARTITION", "PERIOD", "SYSTEM")
    if not explicit and clause.left and clause.next.is_word(*others):
        return
    clause.take("IF", "EXISTS")
    name = clause.name()
    if name:
        yield DropColumn(name)


def dropped_index(name: str | None) -> Iterator[Clause]:
    """What the end of an index does; the primary key has a name, too."""
    if name is not None:
        yield ChangeKey(()) if name.upper() == "PRIMARY" else DropIndex(name)


# What clauses of ALTER TABLE do to rows that already exist, beyond their definition, without an event in the log.

_AUTO_INCREMENT = "AUTO_INCREMENT"
#: Engines that keep no rows, or have them in another place.
_NOWHERE = "BLACKHOLE"
_ELSEWHERE = (_NOWHERE, "FEDERATED", "CONNECT", "SPIDER", "EXAMPLE", "MERGE", "MRG_MYISAM")


def unlogged_changes(tokens: Sequence[Token], clauses: Sequence[Clause], *, ignores: bool) -> Iterator[UnloggedChange]:
    """What an ALTER TABLE changes in rows and the log does not say.

    Args:
        tokens: after the table's name.
        clauses: what they say of columns, key and partitions.
        ignores: whether it is ALTER IGNORE TABLE (MariaDB).
    """
    if ignores and _may_drop_rows(tokens, clauses):
        why = (
            "ALTER IGNORE deletes rows that a key, a check or a partition does not take, and the log does not say which"
        )
        yield UnloggedChange("", f"{why}: {WAY_OUT}")
    if _are_near(tokens, "DISCARD", "TABLESPACE") or _are_near(tokens, "IMPORT", "TABLESPACE"):
        why = f"rows come and go with a file of the table, and the log does not say which: {WAY_OUT}"
        yield UnloggedChange("", why, brings=tokens[0].is_word("IMPORT"))
    yield from kept_elsewhere(tokens)
    for clause in clauses:
        column = clause.column if isinstance(clause, ModifyColumn | RenameColumn) else None
        if column is not None and column.computed == _AUTO_INCREMENT:
            why = f"AUTO_INCREMENT gives rows with 0 or null new numbers, and the log does not say which: {WAY_OUT}"
            yield UnloggedChange(column.name, why)


def kept_elsewhere(tokens: Iterable[Token], *, made: bool = False) -> Iterator[UnloggedChange]:
    """What an engine that keeps no rows itself leaves open. ``made``: the table has no rows from before, so that a
    BLACKHOLE loses none."""
    tokens = list(takewhile(lambda token: not token.is_word("SELECT"), tokens))
    for index, token in enumerate(tokens):
        word = next((one for one in tokens[index + 1 : index + 3] if not one.is_sign("=")), None)
        engine = word.value.upper() if token.is_word("ENGINE") and word is not None else ""
        if engine in _ELSEWHERE and not (made and engine == _NOWHERE):
            why = f"a table of {engine} keeps its rows nowhere or elsewhere, and the log does not say which it has"
            yield UnloggedChange("", f"{why}: {WAY_OUT}", brings=engine != _NOWHERE)


def _may_drop_rows(tokens: Sequence[Token], clauses: Sequence[Clause]) -> bool:
    changed = any(
        isinstance(one, ModifyColumn | ConvertCharset | ChangePartitions)
        or (isinstance(one, RenameColumn) and one.column is not None)
        or (isinstance(one, ChangeKey) and bool(one.columns))
        for one in clauses
    )
    return changed or any(token.is_word("UNIQUE", "SERIAL", "CHECK") for token in tokens)


def _are_near(tokens: Sequence[Token], first: str, last: str) -> bool:
    """Whether a clause begins with the one word and ends with the other."""
    return bool(tokens) and tokens[0].is_word(first) and any(token.is_word(last) for token in tokens)
