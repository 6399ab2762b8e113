"""Statements as MySQL and MariaDB take them, and what they say of rows and columns."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import (
    Action,
    AddColumn,
    AddUnique,
    ChangeKey,
    Clause,
    ConvertCharset,
    DropColumn,
    DropIndex,
    ModifyColumn,
    RenameColumn,
    RenameIndex,
    TableDefault,
    UnloggedChange,
)
from binlake.decode.ddl.columns import ColumnDefinition, Default
from binlake.decode.ddl.constants import constant_of
from binlake.decode.ddl.foreign_keys import Cascade
from binlake.decode.ddl.partitions import ChangePartitions, PartitionAction
from binlake.decode.ddl.statements import parse_ddl
from hudilake.errors import UnsupportedError
from tests.paths import RECORDINGS

T = SourceTable("db", "t")


def clauses(text: str) -> tuple[Clause, ...]:
    (found,) = parse_ddl(text, "db")
    assert found.source == T
    return found.clauses


def names(text: str) -> list[Any]:
    """The clauses in short."""
    short: list[Any] = []
    for clause in clauses(text):
        if isinstance(clause, AddColumn):
            short.append(("add", clause.column.name, clause.column.type_text))
        elif isinstance(clause, ModifyColumn):
            short.append(("modify", clause.column.name, clause.column.type_text))
        elif isinstance(clause, DropColumn):
            short.append(("drop", clause.name))
        elif isinstance(clause, RenameColumn):
            short.append(("rename", clause.old, clause.new))
        elif isinstance(clause, ChangeKey):
            short.append(("key", *clause.columns))
        elif isinstance(clause, ConvertCharset):
            short.append(("charset", clause.charset))
        elif isinstance(clause, ChangePartitions):
            short.append((str(clause.action), *clause.names))
        elif isinstance(clause, UnloggedChange):
            short.append(("unlogged", clause.column))
        elif isinstance(clause, AddUnique):
            short.append(("unique", clause.name, *clause.columns))
        elif isinstance(clause, DropIndex):
            short.append(("drop index", clause.name))
        elif isinstance(clause, RenameIndex):
            short.append(("rename index", clause.old, clause.new))
        elif isinstance(clause, TableDefault):
            short.append(("default", clause.collation))
        elif isinstance(clause, Cascade):
            short.append(("cascade", *clause.columns, *clause.actions))
    return short


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ALTER TABLE t ADD c INT", [("add", "c", "INT")]),
        ("ALTER TABLE t ADD UNIQUE KEY IF NOT EXISTS u USING BTREE (a(3), b)", [("unique", "u", "a", "b")]),
        ("ALTER TABLE t ADD CONSTRAINT c UNIQUE (`a`), ADD UNIQUE (b)", [("unique", "c", "a"), ("unique", "b", "b")]),
        ("ALTER TABLE t ADD CONSTRAINT UNIQUE INDEX u (a), ADD CONSTRAINT k CHECK (a > 1)", [("unique", "u", "a")]),
        ("ALTER TABLE t ADD c INT UNIQUE COMMENT 'x'", [("add", "c", "INT"), ("unique", "c", "c")]),
        (
            "ALTER TABLE t ADD c INT COMMENT 'UNIQUE', ADD UNIQUE USING HASH (c)",
            [("add", "c", "INT"), ("unique", "c", "c")],
        ),
        ("ALTER TABLE t DROP INDEX `u`, DROP KEY IF EXISTS k", [("drop index", "u"), ("drop index", "k")]),
        (
            "ALTER TABLE t DROP CONSTRAINT c, DROP COLUMN `key`, DROP `index`",
            [("drop index", "c"), ("drop", "key"), ("drop", "index")],
        ),
        ("ALTER TABLE t DROP FOREIGN KEY f, DROP INDEX `PRIMARY`", [("key",)]),
        (
            "ALTER TABLE t RENAME INDEX a TO b, RENAME KEY c TO d",
            [("rename index", "a", "b"), ("rename index", "c", "d")],
        ),
        ("DROP INDEX IF EXISTS u ON t", [("drop index", "u")]),
        ("ALTER TABLE t COLLATE utf8mb4_bin", [("default", "utf8mb4_bin")]),
        (
            "ALTER TABLE t ADD c CHAR(1) COLLATE x, CHARSET = latin1",
            [("add", "c", "CHAR(1) character set x"), ("default", "?")],
        ),
        ("ALTER TABLE t CONVERT TO CHARSET latin1 COLLATE latin1_bin", [("charset", "latin1")]),
        (
            "CREATE TABLE t (c INT) ENGINE=InnoDB DEFAULT CHARSET=x COLLATE=x_bin",
            [("add", "c", "INT"), ("default", "x_bin")],
        ),
        ("DROP INDEX `PRIMARY` ON db.t", [("key",)]),
        ("CREATE UNIQUE INDEX IF NOT EXISTS u USING HASH ON t (a, b DESC) COMMENT 'x'", [("unique", "u", "a", "b")]),
        (
            "alter table `db`.`t` add column if not exists `c` int(11) unsigned first",
            [("add", "c", "int(11) unsigned")],
        ),
        (
            "ALTER TABLE t ADD (a INT, b ENUM('x','y,z'), KEY k (a))",
            [("add", "a", "INT"), ("add", "b", "ENUM('x','y,z')")],
        ),
        (
            "ALTER TABLE t ADD c VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            [("add", "c", "VARCHAR(9) CHARACTER SET utf8mb4")],
        ),
        (
            "ALTER TABLE t MODIFY c VARCHAR(9) NOT NULL COLLATE latin1_bin, MODIFY d VARCHAR(9) COLLATE uca1400_ai_ci",
            [("modify", "c", "VARCHAR(9) character set latin1"), ("modify", "d", "VARCHAR(9)")],
        ),
        (
            "ALTER TABLE t MODIFY c CHAR(9) ASCII, MODIFY `ascii` NCHAR(9), MODIFY d INT AS (d COLLATE latin1_bin)",
            [
                ("modify", "c", "CHAR(9) ASCII character set latin1"),
                ("modify", "ascii", "NCHAR(9) character set utf8mb3"),
                ("modify", "d", "INT"),
            ],
        ),
        (
            "ALTER TABLE t ADD INDEX i (c), ADD UNIQUE KEY (d), ADD CONSTRAINT f FOREIGN KEY (c) REFERENCES u (id)",
            [("unique", "d", "d")],
        ),
        (
            "ALTER TABLE t ADD FULLTEXT INDEX i (c), DROP INDEX j, DROP FOREIGN KEY f, DROP CONSTRAINT x, DROP CHECK y",
            [("drop index", "j"), ("drop index", "x")],
        ),
        ("ALTER TABLE t ADD COLUMN `index` INT, DROP COLUMN `key`", [("add", "index", "INT"), ("drop", "key")]),
        ("ALTER TABLE t DROP c, DROP COLUMN IF EXISTS d RESTRICT", [("drop", "c"), ("drop", "d")]),
        ("ALTER TABLE t CHANGE COLUMN a b TEXT NULL", [("rename", "a", "b")]),
        (
            "ALTER TABLE t CHANGE a a BIGINT, MODIFY b DECIMAL(9,2) AFTER a",
            [("modify", "a", "BIGINT"), ("modify", "b", "DECIMAL(9,2)")],
        ),
        (
            "ALTER TABLE t RENAME COLUMN a TO b, RENAME INDEX x TO y, RENAME KEY p TO q",
            [("rename", "a", "b"), ("rename index", "x", "y"), ("rename index", "p", "q")],
        ),
        ("ALTER TABLE t ALTER COLUMN a SET DEFAULT 5, ORDER BY b, ENGINE=InnoDB, COMMENT='ADD c INT'", []),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY USING BTREE (`a`, b(10))", [("key",), ("key", "a", "b")]),
        ("ALTER TABLE t ADD CONSTRAINT p PRIMARY KEY (a)", [("key", "a")]),
        ("ALTER TABLE t ADD id INT NOT NULL AUTO_INCREMENT PRIMARY KEY", [("add", "id", "INT"), ("key", "id")]),
        ("ALTER TABLE t CONVERT TO CHARACTER SET latin1", [("charset", "latin1")]),
        ("ALTER TABLE t PARTITION BY HASH (a) PARTITIONS 4", [("define",)]),
        ("ALTER TABLE t ADD c INT PARTITION BY HASH (a)", [("define",), ("add", "c", "INT")]),
        ("ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (5))", [("add",)]),
        ("ALTER TABLE t DROP PARTITION IF EXISTS a, `b`", [("drop", "a", "b")]),
        ("ALTER TABLE t TRUNCATE PARTITION ALL", [("truncate",)]),
        ("ALTER TABLE t REORGANIZE PARTITION a, b INTO (PARTITION c VALUES IN (1))", [("reorganize", "a", "b")]),
        ("ALTER TABLE t ENGINE=InnoDB REMOVE PARTITIONING", [("remove",)]),
        (
            "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a, b) REFERENCES d.u (x) ON UPDATE CASCADE ON DELETE SET NULL",
            [("cascade", "a", "b", "ON UPDATE CASCADE", "ON DELETE SET NULL")],
        ),
        ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u (x) ON DELETE RESTRICT", []),
        ("ALTER ONLINE IGNORE TABLE IF EXISTS t WAIT 5 ADD c INT, ALGORITHM=INPLACE, LOCK=NONE", [("add", "c", "INT")]),
        ("/* note */ ALTER /*!80000 TABLE*/ t -- to the end\n ADD # too\n c /* , d INT */ INT", [("add", "c", "INT")]),
        ("ALTER TABLE t ADD c INT COMMENT 'it''s unsigned, \\'so\\' DEFAULT 5'", [("add", "c", "INT")]),
        ('ALTER TABLE "t" ADD "c" INT', [("add", "c", "INT")]),
        ("SET STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD c INT", [("add", "c", "INT")]),
        ("ALTER TABLE t ADD COLUMN naïve DOUBLE PRECISION", [("add", "naïve", "DOUBLE PRECISION")]),
        ("TRUNCATE t", []),
        (
            "CREATE TABLE IF NOT EXISTS t (a INT PRIMARY KEY, b TEXT, UNIQUE (b)) ENGINE=x",
            [("add", "a", "INT"), ("key", "a"), ("add", "b", "TEXT"), ("unique", "b", "b")],
        ),
    ],
)
def test_alterations(text: str, found: list[Any]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("RENAME TABLE t TO u, `x`.`a``b` TO y.z", [("rename", "db.t", "db.u"), ("rename", "x.a`b", "y.z")]),
        ("RENAME TABLES IF EXISTS t WAIT 3 TO u", [("rename", "db.t", "db.u")]),
        ("ALTER TABLE t ADD c INT, RENAME TO u", [("alter", "db.t", None), ("rename", "db.t", "db.u")]),
        ("ALTER TABLE t RENAME AS y.u", [("alter", "db.t", None), ("rename", "db.t", "y.u")]),
        ("ALTER TABLE t RENAME = u", [("alter", "db.t", None), ("rename", "db.t", "db.u")]),
        (
            "DROP TABLE IF EXISTS t, x.u CASCADE /* generated by server */",
            [("drop", "db.t", None), ("drop", "x.u", None)],
        ),
        ("DROP DATABASE shop", [("drop", "shop.", None)]),
        ("CREATE OR REPLACE TABLE t LIKE u", [("drop", "db.t", None), ("create", "db.t", None)]),
        ("CREATE TABLE t AS SELECT 1", [("create", "db.t", None), ("alter", "db.t", None)]),
        ("DROP TEMPORARY TABLE t", []),
        ("CREATE TEMPORARY TABLE t (a INT)", []),
        ("DROP VIEW t", []),
        ("CREATE INDEX i ON t (a)", []),
        ("RENAME USER a TO b", []),
        ("ANALYZE TABLE t", []),
        ("ALTER DATABASE db CHARACTER SET utf8mb4", []),
        ("", []),
        ("ALTER TABLE", []),
        ("'unclosed", []),
    ],
)
def test_statements_about_tables(text: str, found: list[Any]) -> None:
    assert [(d.action.value, str(d.source), d.to and str(d.to)) for d in parse_ddl(text, "db")] == found


def column(definition: str) -> ColumnDefinition:
    clause, *_ = clauses(f"ALTER TABLE t ADD c {definition} COMMENT 'x'")
    assert isinstance(clause, AddColumn)
    return clause.column


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("INT", None),
        ("INT NOT NULL", 0),
        ("INT DEFAULT NULL", None),
        ("INT NOT NULL DEFAULT -5", -5),
        ("INT DEFAULT '7'", 7),
        ("INT NOT NULL /*!50100 DEFAULT 5 */", 5),
        ("INT /*M! NOT NULL DEFAULT 6 */ AFTER id", 6),
        ("INT /*! NOT NULL */ /*M!100100 DEFAULT 8*/", 8),
        ("INT /* DEFAULT 5 */ NOT NULL", 0),
        ("INT DEFAULT (7)", 7),
        ("TINYINT(1) DEFAULT TRUE", 1),
        ("BIGINT UNSIGNED DEFAULT 18446744073709551615", Decimal(18446744073709551615)),
        ("DECIMAL(9,3) DEFAULT 1.5", Decimal("1.500")),
        ("DECIMAL(9,3) NOT NULL", Decimal("0.000")),
        ("DECIMAL(60,3) DEFAULT 2", "2.000"),
        ("DOUBLE DEFAULT 1e-3", 0.001),
        ("VARCHAR(9) DEFAULT 'it''s \\'so\\''", "it's 'so'"),
        ("VARCHAR(9) DEFAULT _utf8mb4'é'", "é"),
        ("CHAR(5) DEFAULT 'ab  '", "ab"),
        ("TEXT NOT NULL", ""),
        ("ENUM('new','old') NOT NULL", "new"),
        ("ENUM('new','old') DEFAULT 'OLD'", "old"),
        ("SET('a','b') DEFAULT 'a,b'", "a,b"),
        ("BIT(1) DEFAULT b'1'", True),
        ("BIT(10) DEFAULT b'1000000001'", b"\x02\x01"),
        ("BINARY(3) DEFAULT 0x01", b"\x01\0\0"),
        ("VARBINARY(9) DEFAULT x'0AFF'", b"\x0a\xff"),
        ("DATE DEFAULT '2024-02-29'", date(2024, 2, 29)),
        ("DATETIME(3) DEFAULT '2024-02-29 01:02:03.5'", datetime(2024, 2, 29, 1, 2, 3, 500_000, UTC)),
        ("TIME DEFAULT '-01:00:01.5'", -3_601_500_000),
        ("YEAR DEFAULT 2024", 2024),
    ],
)
def test_constants_are_values_of_the_lake(definition: str, value: object) -> None:
    assert constant_of(column(definition)).as_py() == value


@pytest.mark.parametrize(
    "definition",
    [
        "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
        "TIMESTAMP DEFAULT '2024-01-01 00:00:00'",
        "DATETIME DEFAULT NOW(3)",
        "DATETIME DEFAULT '0000-00-00 00:00:00'",
        "DATE NOT NULL",
        "JSON DEFAULT (JSON_OBJECT())",
        "VARCHAR(9) DEFAULT (CONCAT('a', 'b'))",
        "INT DEFAULT 1.5",
        "TINYINT DEFAULT 'x'",
        "INT DEFAULT 99999999999",
        "DECIMAL(4,1) DEFAULT 1.25",
        "ENUM('a') DEFAULT 'b'",
        "INT GENERATED ALWAYS AS (a + 1) STORED",
        "INT AS (a) VIRTUAL",
        "BIGINT NOT NULL AUTO_INCREMENT UNIQUE",
        "POINT NOT NULL",
        "VECTOR(3)",
    ],
)
def test_what_is_no_constant_is_not_guessed(definition: str) -> None:
    with pytest.raises(UnsupportedError):
        constant_of(column(definition))


def test_a_definition_says_what_its_default_is() -> None:
    assert column("INT NOT NULL").default is Default.NONE
    assert (column("INT DEFAULT 5").default, column("INT DEFAULT 5").literal) == (Default.CONSTANT, "5")
    assert column("TIMESTAMP DEFAULT now()").default is Default.COMPUTED


RECORDED = [
    ("customers", [("add", "tier", "VARCHAR(12)")]),
    ("order_items", [("modify", "qty", "BIGINT")]),
    ("orders", [("drop", "legacy_flag")]),
    ("orders", [("rename", "note", "remark")]),
    ("customers", [("add", "score", "DECIMAL(6,3)"), ("add", "prefs", "JSON")]),
]


def recorded(path: Path) -> list[str]:
    with gzip.open(path, "rt") as lines:
        values = [json.loads(json.loads(line)["value"]) for line in lines]
    values = [value.get("payload", value) for value in values]
    return [v["ddl"] for v in values if v["source"].get("snapshot") in (None, "false") and v["databaseName"] == "shop"]


@pytest.mark.parametrize("variant", ["plain", "schema", "flat"])
def test_the_recorded_statements(variant: str) -> None:
    texts = recorded(RECORDINGS / "shop" / variant / f"shop_{variant}.jsonl.gz")
    assert len(texts) == 6
    for text, (table, found) in zip(texts, RECORDED, strict=False):
        (ddl,) = parse_ddl(text, "shop")
        assert ddl.source == SourceTable("shop", table)
        assert names(text.replace(f"ALTER TABLE {table}", "ALTER TABLE t")) == found
    (created,) = parse_ddl(texts[-1], "shop")
    assert created.clauses[-1] == ChangeKey(("code", "region"))


def test_an_exchange_changes_both_tables() -> None:
    done = parse_ddl("ALTER TABLE t EXCHANGE PARTITION a WITH TABLE `e`.u WITHOUT VALIDATION", "d")
    assert [str(one.source) for one in done] == ["d.t", "e.u"]
    assert [one.clauses for one in done] == [
        (ChangePartitions(PartitionAction.EXCHANGE, ("a",)),),
        (ChangePartitions(PartitionAction.EXCHANGE),),
    ]


@pytest.mark.parametrize(
    ("statement", "below"),
    [
        ("CREATE TABLE m (a INT) ENGINE=MRG_MyISAM UNION=(t1,`e`.t2) INSERT_METHOD=LAST", ["d.t1", "e.t2"]),
        ("CREATE TABLE m LIKE t1; ", []),
        ("ALTER TABLE m INSERT_METHOD=FIRST UNION (t3), ADD c INT", ["d.t3"]),
        ("CREATE TEMPORARY TABLE m (a INT) ENGINE=MERGE UNION=(t1)", []),
        ("CREATE TABLE x (a INT) SELECT 1 UNION (SELECT 2)", []),
        ("CREATE TABLE x AS (SELECT a FROM b) UNION (SELECT 2 FROM c)", []),
        ("CREATE TABLE x (`union` INT, a INT)", []),
    ],
)
def test_the_tables_below_one_of_the_engine_merge_are_named(statement: str, below: list[str]) -> None:
    unlogged = [
        str(one.source)
        for one in parse_ddl(statement, "d")
        for clause in one.clauses
        if isinstance(clause, UnloggedChange) and "the engine MERGE" in clause.why
    ]
    assert unlogged == below


@pytest.mark.parametrize(
    ("statement", "open_to"),
    [
        ("CREATE TABLE t (a INT) ENGINE=MERGE UNION=(u)", ["rows may come"]),
        ("CREATE TABLE t (a INT) ENGINE = connect TABLE_TYPE=CSV", ["rows may come"]),
        ("CREATE TABLE t (a INT) ENGINE=BLACKHOLE", []),
        ("CREATE TABLE t (a INT COMMENT 'ENGINE=MERGE') ENGINE=InnoDB COMMENT='ENGINE=MERGE'", []),
        ("CREATE TABLE t ENGINE=InnoDB SELECT engine merge FROM u", []),
        ("ALTER TABLE t ENGINE=Federated", ["rows may come"]),
        ("ALTER TABLE t ENGINE=BLACKHOLE", ["rows may go"]),
        ("ALTER TABLE t ENGINE=MyISAM", []),
    ],
)
def test_a_table_whose_engine_keeps_rows_elsewhere(statement: str, open_to: list[str]) -> None:
    """A new BLACKHOLE has no rows that could go."""
    done = [clause for one in parse_ddl(statement, "d") if one.source.table == "t" for clause in one.clauses]
    elsewhere = [one for one in done if isinstance(one, UnloggedChange) and "nowhere or elsewhere" in one.why]
    assert ["rows may come" if one.brings else "rows may go" for one in elsewhere] == open_to


def test_a_partition_that_becomes_a_table_and_a_table_that_becomes_one() -> None:
    done = parse_ddl("alter table t convert partition a to table `e`.u without validation", "d")
    assert [(one.action, str(one.source), str(one.like)) for one in done] == [
        (Action.ALTER, "d.t", "None"),
        (Action.CREATE, "e.u", "d.t"),
        (Action.ALTER, "e.u", "None"),
    ]
    assert done[2].clauses == (ChangePartitions(PartitionAction.EXCHANGE),)
    done = parse_ddl("ALTER TABLE t CONVERT TABLE u TO PARTITION a VALUES LESS THAN (10)", "d")
    assert [(one.action, str(one.source)) for one in done] == [(Action.ALTER, "d.t"), (Action.DROP, "d.u")]
    assert done[0].clauses == (ChangePartitions(PartitionAction.EXCHANGE),)
