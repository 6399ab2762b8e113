"""Statements that change rows, in the log in place of the rows (``binlog_format`` was not ROW): which tables they name.

The log does not say which rows such a statement changed, so its effect on a table is an ``UnloggedChange``. What its
triggers and functions change in other tables is not in the text. A statement that names no table that it changes
(SELECT of a function) may have changed every table of its database.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import EVERY_TABLE, WAY_OUT, Action, TableEffect, UnloggedChange
from binlake.decode.ddl.tokens import Reader, Token, split_at_commas

#: The first words of such statements.
CHANGES_ROWS: Final = frozenset(
    {"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "MERGE", "WITH", "CALL", "DO", "SELECT"}
)
#: Tokens that are read of such a statement, which may have any number of rows after its tables.
HEAD_TOKENS: Final = 2_000
AS_STATEMENT: Final = UnloggedChange(
    "",
    "a session wrote its changes of rows as a statement (binlog_format was not ROW), and the log does not say which "
    f"rows: {WAY_OUT}",
    brings=True,
)
FILLED_BY_SELECT: Final = UnloggedChange(
    "",
    "CREATE TABLE ... SELECT was written as a statement (binlog_format was not ROW), and the log does not say its "
    f"rows: {WAY_OUT}",
    brings=True,
)
_MODIFIERS: Final = ("LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "HISTORY")
_JOINS: Final = ("JOIN", "STRAIGHT_JOIN")
_AFTER_TABLE: Final = (
    *_JOINS,
    *("INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "ON", "USING", "SET", "WHERE", "ORDER", "LIMIT"),
    *("PARTITION", "FOR", "USE", "IGNORE", "FORCE", "RETURNING"),
)


def changes_rows(effects: Sequence[TableEffect]) -> bool:
    """Whether these are the effects of such a statement."""
    return bool(effects) and all(effect.clauses == (AS_STATEMENT,) for effect in effects)


def row_effects(reader: Reader, database: str) -> tuple[TableEffect, ...]:
    """The effects of a statement that begins with one of ``CHANGES_ROWS``.

    Args:
        reader: its first tokens, ``HEAD_TOKENS`` at most.
        database: that of names that are written without one.
    """
    tables = list(dict.fromkeys(_changed(reader, database))) or [SourceTable(database, EVERY_TABLE)]
    return tuple(TableEffect(Action.ALTER, table, (AS_STATEMENT,)) for table in tables)


def read_table(reader: Reader, database: str) -> SourceTable | None:
    """The table whose name comes next; None if no name does."""
    first = reader.name()
    if first is None:
        return None
    second = reader.name() if reader.take_sign(".") else None
    return SourceTable(database, first) if second is None else SourceTable(first, second)


def skip_settings(reader: Reader) -> None:
    """Skip what MariaDB takes before a statement: SET STATEMENT x=y FOR ALTER ..."""
    while reader.take("SET", "STATEMENT"):
        while reader.left and not reader.take("FOR"):
            reader.skip()


def altered_table(reader: Reader, database: str) -> tuple[SourceTable | None, bool]:
    """The table of ALTER TABLE, read from behind ALTER up to its first clause, and whether it is ALTER IGNORE; None if
    the statement alters something else."""
    ignores = False
    while reader.left and reader.next.is_word("ONLINE", "OFFLINE", "IGNORE"):
        ignores |= reader.next.is_word("IGNORE")
        reader.skip()
    if not reader.take("TABLE"):
        return None, ignores
    reader.take("IF", "EXISTS")
    source = read_table(reader, database)
    while source is not None and reader.take_any("WAIT", "NOWAIT"):
        if reader.left and reader.next.kind == "number":
            reader.skip()
    return source, ignores


def _changed(reader: Reader, database: str) -> Iterable[SourceTable]:
    """The tables that it names as changed; empty if it names none, or not within these tokens."""
    if reader.take("WITH"):
        depth = 0
        while reader.left and (depth or not reader.next.is_word(*CHANGES_ROWS - {"WITH"})):
            depth += reader.next.is_sign("(") - reader.next.is_sign(")")
            reader.skip()
    if reader.take_any("INSERT", "REPLACE"):
        _skip_modifiers(reader)
        reader.take("INTO")
        return filter(None, [read_table(reader, database)])
    if reader.take("LOAD"):
        while reader.left and not reader.take("INTO", "TABLE"):
            reader.skip()
        return filter(None, [read_table(reader, database)])
    if reader.take("UPDATE"):
        _skip_modifiers(reader)
        named = _until(reader, "SET")
        return [table for _, table in _references(named, database)] if named is not None else ()
    return _deleted(reader, database) if reader.take("DELETE") else ()


def _skip_modifiers(reader: Reader) -> None:
    while reader.take_any(*_MODIFIERS):
        pass


def _deleted(reader: Reader, database: str) -> list[SourceTable]:
    """The tables of DELETE FROM t, DELETE a, b FROM ..., DELETE FROM a, b USING ..."""
    _skip_modifiers(reader)
    first = _until(reader, "FROM") or []
    if not first:
        read = Reader(reader.rest)
        first = _until(read, "USING") or []
        if not first or any(token.is_word("WHERE") for token in first):  # of a single table, by itself
            return list(filter(None, [read_table(reader, database)]))
        reader = read
    names = {alias.lower(): table for alias, table in _references(reader.rest, database)}
    tables = []
    for part in split_at_commas(first):
        target = read_table(Reader(part), database)
        if target is not None:
            tables.append(names.get(target.table.lower(), target) if target.database == database else target)
    return tables


def _until(reader: Reader, word: str) -> list[Token] | None:
    """The tokens before a word that stands outside of brackets, which is read, too; None if it does not come."""
    depth = 0
    for count, token in enumerate(reader.rest):
        if depth == 0 and token.is_word(word):
            before = list(reader.ahead(count))
            for _ in range(count + 1):
                reader.skip()
            return before
        depth += token.is_sign("(") - token.is_sign(")")
    return None


def _references(tokens: Sequence[Token], database: str) -> Iterator[tuple[str, SourceTable]]:
    """The tables of a list of tables and joins, each with the name that stands for it."""
    reader, depth, expects, of_tables = Reader(tokens), 0, True, 0
    while reader.left:
        token = reader.next
        if expects and token.is_word("SELECT", "WITH", "VALUES"):  # a table of its own, in brackets
            _leave_bracket(reader)
            depth, expects = depth - 1, False
        elif expects and token.names:
            table = read_table(reader, database)
            aliased = reader.take("AS") or (
                reader.left and reader.next.names and not reader.next.is_word(*_AFTER_TABLE)
            )
            alias = reader.name() if aliased else None
            of_tables, expects = depth, False
            if table is not None:
                yield alias or table.table, table
        elif token.is_word("WHERE") and depth == 0:
            return
        else:
            depth += token.is_sign("(") - token.is_sign(")")
            joins = token.is_word(*_JOINS) or (token.is_sign(",") and depth == of_tables)
            expects = joins or (expects and token.is_sign("("))
            reader.skip()


def _leave_bracket(reader: Reader) -> None:
    """Read up to the end of the bracket that the next tokens are in, and it."""
    depth = 1
    while reader.left and depth:
        depth += reader.next.is_sign("(") - reader.next.is_sign(")")
        reader.skip()
