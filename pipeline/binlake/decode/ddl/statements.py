"""Effects of a MySQL or MariaDB statement on tables: only those on rows and columns, in order.

Every format carries the statement's text (Debezium, Canal, Maxwell). Only the text distinguishes a rename from a drop
and an add. sqlglot is not used, because sqlglot 30 failed on 5 of 13 real statements (measured).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.alter import (
    added,
    clauses_of,
    dropped_index,
    kept_elsewhere,
    renamed_column,
    unique_index,
    unlogged_changes,
)
from binlake.decode.ddl.clauses import (
    EVERY_TABLE,
    WAY_OUT,
    Action,
    AddColumn,
    Clause,
    RenameIndex,
    TableEffect,
    UnloggedChange,
)
from binlake.decode.ddl.default_charsets import collation_default
from binlake.decode.ddl.partitions import ChangePartitions, PartitionAction, partition_clause
from binlake.decode.ddl.row_statements import (
    CHANGES_ROWS,
    FILLED_BY_SELECT,
    HEAD_TOKENS,
    altered_table,
    read_table,
    row_effects,
    skip_settings,
)
from binlake.decode.ddl.tokens import (
    AbsurdStatementError,
    Reader,
    Token,
    read_tokens,
    split_at_commas,
    statement_tokens,
)

#: MariaDB logs a transaction that it rolls back and that has changed what it cannot undo: a table of another engine, a
#: temporary table. Debezium gives its rows as if it were committed, and then this statement (measured, 3.4).
ROLLED_BACK = f"the source rolled back a transaction whose rows the connector had given as committed: {WAY_OUT}"

BELOW_MERGE = (
    "rows that are written through a table of the engine MERGE come under its name, and the log does not say in which "
    f"table below it they are: {WAY_OUT}"
)


def parse_ddl(statement: str, database: str) -> tuple[TableEffect, ...]:
    """The effects of the statement, table by table in order; empty for a statement that does not change tables, and for
    one that no server executes (``AbsurdStatementError``).

    Args:
        statement: the text as in the source's log.
        database: the database of names that are written without one.
    """
    tokens = read_tokens(statement)
    first = list(islice(tokens, HEAD_TOKENS))
    head = Reader(first)
    skip_settings(head)
    while head.take_sign("("):
        pass
    if head.left and head.next.is_word(*CHANGES_ROWS):
        return row_effects(head, database)
    try:
        return tuple(_effects(Reader(statement_tokens(chain(first, tokens))), database))
    except AbsurdStatementError:
        return ()


def _effects(reader: Reader, database: str) -> Iterable[TableEffect]:
    skip_settings(reader)
    if reader.take("ALTER"):
        return _alter(reader, database)
    if reader.take("RENAME"):
        return _rename(reader, database) if reader.take_any("TABLE", "TABLES") else ()
    if reader.take("TRUNCATE"):
        reader.take("TABLE")
        source = read_table(reader, database)
        return (TableEffect(Action.TRUNCATE, source),) if source else ()
    if reader.take("DROP"):
        return _drop(reader, database)
    if reader.take("ROLLBACK"):
        return (TableEffect(Action.ALTER, SourceTable(database, EVERY_TABLE), (UnloggedChange("", ROLLED_BACK),)),)
    return _create(reader, database) if reader.take("CREATE") else ()


def _rename(reader: Reader, database: str) -> Iterator[TableEffect]:
    reader.take("IF", "EXISTS")
    for part in split_at_commas(reader.rest):
        pair = Reader(part)
        old = read_table(pair, database)
        while pair.left and not pair.take("TO"):  # WAIT n, NOWAIT
            pair.skip()
        new = read_table(pair, database)
        if old and new:
            yield TableEffect(Action.RENAME, old, to=new)


def _drop(reader: Reader, database: str) -> Iterator[TableEffect]:
    if reader.take_any("DATABASE", "SCHEMA"):
        reader.take("IF", "EXISTS")
        name = reader.name()
        if name:
            yield TableEffect(Action.DROP, SourceTable(name, EVERY_TABLE))
        return
    if reader.take("INDEX"):
        reader.take("IF", "EXISTS")
        yield from _index(reader, database, tuple(dropped_index(reader.name())))
        return
    if reader.take("TEMPORARY") or not reader.take_any("TABLE", "TABLES"):
        return
    reader.take("IF", "EXISTS")
    for part in split_at_commas(reader.rest):
        source = read_table(Reader(part), database)
        if source:
            yield TableEffect(Action.DROP, source)


def _index(reader: Reader, database: str, clauses: tuple[Clause, ...]) -> Iterator[TableEffect]:
    """A statement about an index: what comes behind ON."""
    while reader.left and not reader.take("ON"):
        reader.skip()
    table = read_table(reader, database)
    if table is not None and clauses:
        yield TableEffect(Action.ALTER, table, clauses)


def _create(reader: Reader, database: str) -> Iterator[TableEffect]:
    replaces = reader.take("OR", "REPLACE")
    if reader.take("UNIQUE"):
        yield from _index(reader, database, tuple(unique_index(Reader(reader.rest))))
        return
    if reader.take("TEMPORARY") or not reader.take("TABLE"):
        return
    reader.take("IF", "NOT", "EXISTS")
    source = read_table(reader, database)
    if source is None:
        return
    if replaces:
        yield TableEffect(Action.DROP, source)
    like = read_table(reader, database) if reader.take("LIKE") else None
    inside = Reader(reader.bracketed() or [])
    if inside.take("LIKE"):
        like = read_table(inside, database)
    selects = _selects(inside.ahead(1))
    clauses = [] if like or selects else [c for part in split_at_commas(inside.rest) for c in added(Reader(part))]
    # Debezium cuts a SELECT after brackets off (recorded): then no column is left
    filled = _selects(reader.rest) or not (like or any(isinstance(clause, AddColumn) for clause in clauses))
    partitions = partition_clause(reader.rest)
    clauses += collation_default(reader.rest, alters=False) if clauses else ()
    clauses += [partitions] if partitions is not None else []
    yield TableEffect(Action.CREATE, source, tuple(clauses), like=like)
    if filled:
        yield TableEffect(Action.ALTER, source, (FILLED_BY_SELECT,))
    elsewhere = tuple(kept_elsewhere(reader.rest, made=True))
    if elsewhere:
        yield TableEffect(Action.ALTER, source, elsewhere)
    yield from _merged(reader.rest, database)


def _selects(tokens: Sequence[Token]) -> bool:
    return any(token.is_word("SELECT") for token in tokens)


def _alter(reader: Reader, database: str) -> Iterator[TableEffect]:
    source, ignores = altered_table(reader, database)
    if source is None:
        return
    partitions = partition_clause(reader.rest)
    clauses: list[Clause] = [partitions] if partitions is not None else []
    renamed, rest = None, list(reader.rest)
    for part in split_at_commas(_without_partitions(reader.rest, partitions)):
        clause = Reader(part)
        if clause.take("RENAME"):
            column = renamed_column(clause)
            if column is not None:
                clauses.append(column)
            elif clause.take_any("INDEX", "KEY"):
                old, new = clause.name(), clause.name() if clause.take("TO") else None
                clauses += [RenameIndex(old, new)] if old and new else []
            elif not clause.take("COLUMN"):
                clause.take_any("TO", "AS") or clause.take_sign("=")
                renamed = read_table(clause, database) or renamed
        else:
            clauses += clauses_of(clause)
    clauses += collation_default(_without_partitions(rest, partitions), alters=True)
    clauses += unlogged_changes(rest, clauses, ignores=ignores)
    yield TableEffect(Action.ALTER, source, tuple(clauses))
    yield from _merged(rest, database)
    if partitions is not None and partitions.action is PartitionAction.EXCHANGE:
        yield from _exchanged(reader.rest, source, database)
    if renamed is not None:
        yield TableEffect(Action.RENAME, source, to=renamed)


def _exchanged(tokens: Sequence[Token], source: SourceTable, database: str) -> Iterator[TableEffect]:
    """The other table of EXCHANGE PARTITION: its rows change, too. CONVERT PARTITION makes it, with rows; CONVERT TABLE
    ends it."""
    for start in range(len(tokens) - 2):
        words = tokens[start : start + 2]
        if not (words[1].is_word("TABLE") and words[0].is_word("WITH", "TO", "CONVERT")):
            continue
        other = read_table(Reader(tokens[start + 2 : start + 5]), database)
        if other is None:
            continue
        if words[0].is_word("CONVERT"):
            yield TableEffect(Action.DROP, other)
            return
        if words[0].is_word("TO"):
            yield TableEffect(Action.CREATE, other, like=source)
        yield TableEffect(Action.ALTER, other, (ChangePartitions(PartitionAction.EXCHANGE),))


def _merged(tokens: Sequence[Token], database: str) -> Iterator[TableEffect]:
    """The tables below one of the engine MERGE: rows that are written through it come under its name."""
    for start, token in enumerate(tokens):
        if token.is_word("SELECT"):
            return  # another UNION
        if token.is_word("UNION"):
            reader = Reader(tokens[start + 1 :])
            reader.take_sign("=")
            for part in split_at_commas(reader.bracketed() or []):
                if not _selects(part) and (table := read_table(Reader(part), database)) is not None:
                    yield TableEffect(Action.ALTER, table, (UnloggedChange("", BELOW_MERGE, brings=True),))


def _without_partitions(tokens: Sequence[Token], clause: ChangePartitions | None) -> Sequence[Token]:
    """The tokens before a partition clause: PARTITION BY and REMOVE PARTITIONING follow others without a comma."""
    if clause is None:
        return tokens
    if clause.action not in (PartitionAction.DEFINE, PartitionAction.REMOVE):
        return ()
    words = [("PARTITION", "BY"), ("REMOVE", "PARTITIONING")]
    starts = (
        start for start in range(len(tokens) - 1) for one, two in words if _are(tokens[start : start + 2], one, two)
    )
    return tokens[: next(starts, len(tokens))]


def _are(tokens: Sequence[Token], *words: str) -> bool:
    return all(token.is_word(word) for token, word in zip(tokens, words, strict=True))
