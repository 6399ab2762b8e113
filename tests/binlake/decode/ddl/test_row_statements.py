"""Which tables a statement names as changed, where the log has it in place of its rows."""

from __future__ import annotations

import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import EVERY_TABLE, Action
from binlake.decode.ddl.row_statements import AS_STATEMENT, FILLED_BY_SELECT, HEAD_TOKENS
from binlake.decode.ddl.statements import parse_ddl

_ROWS = ", ".join("(1, 2)" for _ in range(60_000))
_JOINS = " ".join(f"JOIN u{n} ON u{n}.id = t.id" for n in range(HEAD_TOKENS))


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("insert into t values (concat('a', 1))", ["db.t"]),
        ("INSERT LOW_PRIORITY IGNORE `x``y`.`t`(a) SELECT 1 FROM u", ["x`y.t"]),
        ("insert t() values ()", ["db.t"]),
        (f"INSERT INTO t VALUES {_ROWS}", ["db.t"]),
        ("REPLACE DELAYED t SET a = 1", ["db.t"]),
        ("/* a */ -- b\n UPDATE t SET a = 1", ["db.t"]),
        ("SET STATEMENT max_statement_time = 3 FOR INSERT INTO t VALUES (1)", ["db.t"]),
        ("/*!50000 INSERT */ INTO t VALUES (1)", ["db.t"]),
        ("update `other`.`t` AS x SET a = 1", ["other.t"]),
        ("UPDATE (t, u) SET t.a = 1", ["db.t", "db.u"]),
        (
            "UPDATE LOW_PRIORITY t JOIN o.u AS x ON f(t.a, v) = 1 LEFT JOIN (SELECT a, b FROM v) y USING (a, b), w z "
            "SET x.a = 1",
            ["db.t", "o.u", "db.w"],
        ),
        ("DELETE QUICK FROM t WHERE a IN (SELECT max(b) FROM u)", ["db.t"]),
        ("DELETE FROM t", ["db.t"]),
        ("DELETE a, z.* FROM t a JOIN o.u AS z ON a.i = z.i WHERE 1", ["db.t", "o.u"]),
        ("DELETE FROM t.*, o.u USING t, o.u, v WHERE 1", ["db.t", "o.u"]),
        ("LOAD DATA LOCAL INFILE '/x' IGNORE INTO TABLE `o`.t (a)", ["o.t"]),
        ("WITH c AS (SELECT 1), d (x) AS (SELECT 2) DELETE FROM t WHERE a = 1", ["db.t"]),
        ("SELECT `db`.`f`()", ["db."]),
        ("DO f()", ["db."]),
        (f"UPDATE t {_JOINS} SET t.a = 1", ["db."]),
    ],
    ids=lambda case: case[:30] if isinstance(case, str) else "",
)
def test_the_tables_that_a_statement_changes(statement: str, tables: list[str]) -> None:
    effects = parse_ddl(statement, "db")
    assert [str(one.source) for one in effects] == tables
    assert {(one.action, one.clauses) for one in effects} == {(Action.ALTER, (AS_STATEMENT,))}


@pytest.mark.parametrize(
    ("statement", "filled"),
    [
        ("create table t select * from u", True),
        ("CREATE TABLE t (a INT) IGNORE AS SELECT 1", True),
        ("CREATE TABLE t (SELECT 1)", True),
        ("create table t (unique (a))", True),
        ("CREATE TABLE t (`select` INT, b INT AS (`select` + 1)) COMMENT='SELECT'", False),
        ("CREATE TABLE t (a INT) START TRANSACTION", False),
        ("CREATE TABLE t (LIKE u)", False),
    ],
)
def test_a_table_that_is_filled_as_it_is_made(statement: str, filled: bool) -> None:
    first, *more = parse_ddl(statement, "db")
    assert (first.action, first.source) == (Action.CREATE, SourceTable("db", "t"))
    assert [one.clauses for one in more] == ([(FILLED_BY_SELECT,)] if filled else [])


@pytest.mark.parametrize(
    "statement", ["FLUSH TABLES", "SAVEPOINT `insert`", "CREATE TEMPORARY TABLE t SELECT 1", "BEGIN"]
)
def test_statements_that_change_no_rows(statement: str) -> None:
    assert parse_ddl(statement, "db") == ()


def test_every_table_is_no_name() -> None:
    assert parse_ddl("DO f()", "db")[0].source == SourceTable("db", EVERY_TABLE)
