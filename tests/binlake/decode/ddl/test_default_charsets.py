"""The character sets that statements give to tables and databases."""

from __future__ import annotations

import pytest

from binlake.decode.ddl.clauses import Action
from binlake.decode.ddl.default_charsets import DatabaseDefault, database_default, table_default


@pytest.mark.parametrize(
    ("statement", "charset"),
    [
        (
            "CREATE TABLE t (a INT COMMENT 'CHARSET=x') ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin",
            "latin1",
        ),
        ("create or replace table a.t (a varchar(2) charset latin2) select 'x' collate utf8_bin", None),
        ("CREATE TABLE IF NOT EXISTS t CHARSET cp1250 SELECT 1", "cp1250"),
        ("CREATE TABLE t LIKE u", None),
        ("CREATE TABLE t (a INT) COMMENT CHARSET 'x'", None),
        ("ALTER TABLE a.`t` MODIFY a VARCHAR(1) CHARSET x, DEFAULT CHARACTER SET = latin1, ADD b INT", "latin1"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "utf8mb4"),
        ("ALTER TABLE t COLLATE uca1400_ai_ci", None),
        ("ALTER ONLINE TABLE IF EXISTS t WAIT 3 COLLATE latin1_bin", "latin1"),
        ("SET STATEMENT sql_mode='' FOR ALTER TABLE t ENGINE=InnoDB CHARSET=ascii", "ascii"),
        ("ALTER TABLE t COMMENT='charset latin1'", None),
        ("ALTER TABLE t ADD a VARCHAR(9) CHARSET x, CHARSET DEFAULT", "default"),
        ("DROP TABLE t", None),
    ],
)
def test_the_default_that_a_statement_gives_a_table(statement: str, charset: str | None) -> None:
    assert table_default(statement) == charset


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE DATABASE d", DatabaseDefault(Action.CREATE, "d", None)),
        ("CREATE OR REPLACE DATABASE d CHARSET latin1", DatabaseDefault(Action.CREATE, "d", "latin1")),
        ("CREATE SCHEMA IF NOT EXISTS d CHARSET latin1", DatabaseDefault(Action.ALTER, "d", "latin1")),
        ("ALTER DATABASE `d` DEFAULT COLLATE = latin1_bin", DatabaseDefault(Action.ALTER, "d", "latin1")),
        ("ALTER DATABASE CHARACTER SET cp1250", DatabaseDefault(Action.ALTER, "now", "cp1250")),
        ("DROP DATABASE IF EXISTS d", DatabaseDefault(Action.DROP, "d", None)),
        ("ALTER TABLE t CHARSET latin1", None),
    ],
)
def test_the_default_that_a_statement_gives_a_database(statement: str, said: DatabaseDefault | None) -> None:
    assert database_default(statement, "now") == said
