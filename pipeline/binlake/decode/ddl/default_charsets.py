"""The character sets that statements give to tables and databases, for columns that name none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from binlake.decode.ddl.alter import NO_TABLE_OPTION
from binlake.decode.ddl.clauses import DEFAULT_CHARSET, Action, TableDefault
from binlake.decode.ddl.columns import UNNAMED_COLLATION, named_collation
from binlake.decode.ddl.row_statements import altered_table, read_table, skip_settings
from binlake.decode.ddl.tokens import (
    AbsurdStatementError,
    Reader,
    Token,
    read_tokens,
    split_at_commas,
    statement_tokens,
)

_DATABASE = ("DATABASE", "SCHEMA")
#: The first words of options of a database.
_OPTION = ("DEFAULT", "CHARACTER", "CHARSET", "COLLATE")


@dataclass(frozen=True, slots=True)
class DatabaseDefault:
    """What a statement says of a database. ``charset``: the one that it names, None if it names none."""

    action: Action
    database: str
    charset: str | None


def database_default(statement: str, database: str) -> DatabaseDefault | None:
    """What CREATE, ALTER or DROP DATABASE says; None for any other statement. ``database``: of the session."""
    reader = _reader(statement)
    replaces = False
    if reader.take("CREATE"):
        action, replaces = Action.CREATE, reader.take("OR", "REPLACE")
    elif reader.take("ALTER"):
        action = Action.ALTER
    elif reader.take("DROP"):
        action = Action.DROP
    else:
        return None
    if not reader.take_any(*_DATABASE):
        return None
    unless_there = reader.take("IF", "NOT", "EXISTS")
    reader.take("IF", "EXISTS")
    unnamed = not reader.left or (action is Action.ALTER and reader.next.is_word(*_OPTION))
    name = database if unnamed else reader.name() or database
    charset = named_charset(reader.rest)
    if unless_there and not replaces:  # it may have been there
        return DatabaseDefault(Action.ALTER, name, charset)
    return DatabaseDefault(action, name, charset)


def table_default(statement: str) -> str | None:
    """The character set that CREATE or ALTER TABLE gives to a table, in lower case: "default" for that of the database,
    None if it names none."""
    reader = _reader(statement)
    if reader.take("ALTER"):
        if altered_table(reader, "")[0] is None:
            return None
        options = [part for part in split_at_commas(reader.rest) if part and not part[0].is_word(*NO_TABLE_OPTION)]
        named = [charset for part in options if (charset := named_charset(part)) is not None]
        return named[-1] if named else None
    if not reader.take("CREATE"):
        return None
    reader.take("OR", "REPLACE")
    reader.take("TABLE")
    reader.take("IF", "NOT", "EXISTS")
    read_table(reader, "")
    reader.bracketed()
    return named_charset(list(takewhile(lambda token: not token.is_word("SELECT"), reader.rest)))


def named_charset(tokens: Sequence[Token]) -> str | None:
    """The character set that options name, by itself or by a collation; None if they name none."""
    return _named(tokens)[0]


def collation_default(tokens: Sequence[Token], *, alters: bool) -> tuple[TableDefault, ...]:
    """What the end of CREATE TABLE, or what ALTER TABLE does, gives to new text columns; empty if it says nothing of
    them. CONVERT TO says it for itself."""
    parts = split_at_commas(tokens) if alters else [list(takewhile(lambda token: not token.is_word("SELECT"), tokens))]
    options = [part for part in parts if part and not (alters and part[0].is_word(*NO_TABLE_OPTION, "CONVERT"))]
    named = [_named(part) for part in options]
    return tuple(
        TableDefault(collation or UNNAMED_COLLATION) for charset, collation in named if charset or collation is not None
    )[-1:]


def _named(tokens: Sequence[Token]) -> tuple[str | None, str | None]:
    """The character set and the collation that options name."""
    reader, charset, collation = Reader(tokens), None, None
    while reader.left:
        if reader.bracketed() is not None:
            continue
        if reader.take("CHARACTER", "SET") or reader.take("CHARSET"):
            reader.take_sign("=")
            charset = reader.next.value.lower() if reader.left else None
        elif reader.take("COLLATE"):
            collation = named_collation(reader)
            if collation == UNNAMED_COLLATION:
                charset = DEFAULT_CHARSET
            elif not collation.startswith("uca"):  # of any character set
                charset = collation.split("_")[0] or charset
        elif reader.take("COMMENT"):
            reader.take_sign("=")
        if reader.left:
            reader.skip()
    return charset, collation


def _reader(statement: str) -> Reader:
    try:
        reader = Reader(statement_tokens(read_tokens(statement)))
    except AbsurdStatementError:
        return Reader(())
    skip_settings(reader)
    return reader
