"""Statements that no server executes: they are read as statements that change no table, whatever they ask for."""

from __future__ import annotations

import pytest

from binlake.decode.ddl.clauses import AddColumn
from binlake.decode.ddl.constants import constant_of
from binlake.decode.ddl.partitions import (
    MOST_PARTITIONS,
    ChangePartitions,
    changed_partitioning,
    parse_partitioning,
    partition_clause,
)
from binlake.decode.ddl.statements import parse_ddl
from binlake.decode.ddl.tokens import tokens_of
from binlake.decode.types.mysql_types import parse_type
from binlake.schema.rules.partitions.expression import expression
from hudilake.errors import UnsupportedError

HASHED = "CREATE TABLE t (a INT) PARTITION BY HASH(a) PARTITIONS"
RANGES = ", ".join(f"PARTITION p{n} VALUES LESS THAN ({n})" for n in range(20))
SUBS = "PARTITION BY RANGE(a) SUBPARTITION BY HASH(a) SUBPARTITIONS"
NUMBERS = ("8193", "4000000", "1e300", "1e+300", "1e999999999", "9" * 5000, "8192.5")


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number[:12])
@pytest.mark.parametrize(
    "statement",
    [
        HASHED + " {}",
        "ALTER TABLE t PARTITION BY KEY(a) PARTITIONS {}",
        "ALTER TABLE t ADD PARTITION PARTITIONS {}",
        "ALTER TABLE t COALESCE PARTITION {}",
        f"CREATE TABLE t (a INT) {SUBS} {{}} ({RANGES})",
    ],
)
def test_more_partitions_than_a_table_can_have(statement: str, number: str) -> None:
    assert parse_ddl(statement.format(number), "d") == ()


def test_the_most_partitions() -> None:
    (ddl,) = parse_ddl(f"{HASHED} {MOST_PARTITIONS}", "d")
    clause = ddl.clauses[-1]
    assert isinstance(clause, ChangePartitions)
    assert clause.defined is not None
    assert len(clause.defined.parts) == MOST_PARTITIONS
    more = partition_clause(tokens_of("ADD PARTITION PARTITIONS 1"))
    assert more is not None
    assert changed_partitioning(clause.defined, more) == clause.defined
    assert parse_ddl(f"CREATE TABLE t (a INT) {SUBS} 410 ({RANGES})", "d") == ()
    with pytest.raises(ValueError, match="8200 partitions"):
        parse_partitioning(f"{SUBS} 410 ({RANGES})")


@pytest.mark.first(2)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (a INT DEFAULT " + "(" * 101 + "1" + ")" * 101 + ")",
        "CREATE TABLE t (a INT) PARTITION BY HASH(" + "(" * 20_000 + "a" + ")" * 20_000 + ")",
        "ALTER TABLE t ADD c INT " + "x " * 200_001,
    ],
    ids=["brackets", "many brackets", "words"],
)
def test_brackets_and_words(statement: str) -> None:
    assert parse_ddl(statement, "d") == ()


@pytest.mark.parametrize("start", ["/*", "/*M", "'", '"', "`", "--", "#", "/*!"])
@pytest.mark.parametrize("piece", ["\n", "\\\n", "''", "``", '""', " ", "*", "--\n", "/"])
def test_what_has_no_end_is_searched_for_its_end_once(start: str, piece: str) -> None:
    """A comment with twenty lines and no end took a second, and each further line twice the time."""
    tokens = tokens_of(f"ALTER TABLE t ADD c INT {start} " + piece * 500)
    assert [token.text for token in tokens[:6]] == ["ALTER", "TABLE", "t", "ADD", "c", "INT"]
    assert len(tokens) < 600


@pytest.mark.parametrize(
    "text", ["decimal(66,2)", "decimal(9,39)", "bit(65)", "binary(4000000000)", f"varchar({'9' * 5000})"]
)
def test_types(text: str) -> None:
    with pytest.raises(UnsupportedError, match="beyond what MySQL and MariaDB have"):
        parse_type(text)
    (ddl,) = parse_ddl(f"ALTER TABLE t ADD c {text}, ADD d INT", "d")
    kinds = [clause.column.type for clause in ddl.clauses if isinstance(clause, AddColumn)]
    assert kinds == [None, parse_type("int")]


def test_members() -> None:
    assert len(parse_type("enum(" + ",".join(f"'{n}'" for n in range(65_535)) + ")").options) == 65_535
    for text in ("enum(" + ",".join(f"'{n}'" for n in range(65_536)) + ")", "set(" + "'x'," * 65 + ")"):
        with pytest.raises(UnsupportedError, match="beyond"):
            parse_type(text)


def test_constants_and_expressions() -> None:
    (ddl,) = parse_ddl("ALTER TABLE t ADD c BIGINT DEFAULT 1e999999999", "d")
    (clause,) = ddl.clauses
    assert isinstance(clause, AddColumn)
    with pytest.raises(UnsupportedError, match="cannot be read as"):
        constant_of(clause.column)
    with pytest.raises(UnsupportedError, match="cannot be evaluated"):
        expression("a" + " + 1" * 20_000)
