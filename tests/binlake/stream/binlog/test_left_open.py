"""What the rows of the binlog leave open: the server is asked, or the session's own words in the log decide."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from binlake.source.binlog.statements import in_default_mode
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import BadInputError
from tests.binlake.stream.binlog.followed import FollowedDatabase

_OLD_FORM = "SET @@GLOBAL.mysql56_temporal_format = OFF"
_NEW_FORM = "SET @@GLOBAL.mysql56_temporal_format = ON"
_REAL_AS_FLOAT, _NO_BACKSLASH_ESCAPES = 1, 1 << 20


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("session", "columns"),
    [
        ("SET NAMES latin1", "ADD b VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'é'"),
        (
            "SET character_set_collations = 'utf8mb3=utf8mb3_bin,utf8mb4=utf8mb4_bin'; SET NAMES latin1",
            "ADD b VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'é'",
        ),
        ("SET sql_mode = 'NO_BACKSLASH_ESCAPES'", r"ADD b VARCHAR(9) DEFAULT 'a\bc', ADD c VARCHAR(9) DEFAULT '\'"),
        ("SET sql_mode = 'REAL_AS_FLOAT'", "ADD b REAL DEFAULT 1.1"),
    ],
)
def test_a_statement_means_what_it_means_in_its_session(
    server: EmbeddedMariaDB, tmp_path: Path, session: str, columns: str
) -> None:
    followed = FollowedDatabase(server, tmp_path, f"session_{zlib.crc32(session.encode())}")
    followed.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    followed.execute(session, f"ALTER TABLE t {columns}", "INSERT INTO t (id) VALUES (3)")
    followed.apply()
    followed.check("t")


@pytest.mark.parametrize(
    ("mode", "text", "default"),
    [
        (0, r"DEFAULT 'a\b' REAL", r"DEFAULT 'a\b' REAL"),
        (_NO_BACKSLASH_ESCAPES, r"DEFAULT 'a\''\', `b\` REAL", r"DEFAULT 'a\\''\\', `b\` REAL"),
        (_NO_BACKSLASH_ESCAPES, r"/* '\ */ DEFAULT '\' -- '\'", r"/* '\ */ DEFAULT '\\' -- '\'"),
        (_REAL_AS_FLOAT, r"DEFAULT 'a\' real', `real` real, b REALLY", r"DEFAULT 'a\' real', `real` FLOAT, b REALLY"),
    ],
)
def test_a_statement_is_written_as_in_a_session_with_the_default_mode(mode: int, text: str, default: str) -> None:
    assert in_default_mode(text, mode) == default


def test_the_hash_of_a_long_unique_key_is_no_column(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "hashed")
    followed.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, UNIQUE (a), b BLOB, UNIQUE (b))",
        "INSERT INTO t VALUES (1, 'x', 'y'), (2, NULL, 'z')",
        "UPDATE t SET a = 'q' WHERE id = 2",
        "CREATE TABLE named (id INT PRIMARY KEY, DB_ROW_HASH_1 BIGINT UNSIGNED)",
        "INSERT INTO named VALUES (1, 2)",
    )
    followed.apply()
    followed.check("t", "named")


def test_former_rows_of_a_versioned_table_are_not_taken_for_rows(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "versioned")
    followed.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "UPDATE t SET a = 3 WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        "CREATE TABLE moments (id INT PRIMARY KEY, a TIMESTAMP(6) NULL, b TIMESTAMP(6) NULL)",
        "INSERT INTO moments VALUES (1, '2024-01-01', NULL)",
    )
    events = followed.apply()
    assert sum(table.quarantined for event in events for table in event.tables) == 5
    followed.check("moments")


def test_digits_of_a_second_in_the_old_form_are_refused(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    """The binlog has no length of them: ``TIME(3)`` was read as other rows without a word."""
    followed = FollowedDatabase(server, tmp_path, "old_form")
    server.execute(_OLD_FORM)
    followed.execute(
        "CREATE TABLE whole (id INT PRIMARY KEY, a TIME, b DATETIME, c TIMESTAMP NULL)",
        "CREATE TABLE parts (id INT PRIMARY KEY, a TIME(3), b VARCHAR(9))",
        "CREATE TABLE gone (id INT PRIMARY KEY, a DATETIME(6))",
        "INSERT INTO whole VALUES (1, '-838:59:59', '1000-01-01 00:00:00', '2001-01-01 00:00:00')",
        "INSERT INTO parts VALUES (1, '12:34:56.789', 'x'), (2, '-838:59:59.999', 'y'), (3, '00:00:00.001', 'zz')",
        "INSERT INTO gone VALUES (1, '2020-01-02 03:04:05.678901')",
        "DROP TABLE gone",
    )
    server.execute(_NEW_FORM)
    for table in ("parts", "gone"):
        with pytest.raises(BadInputError, match=rf"column a of old_form\.{table} .* may have digits of a second"):
            followed.apply()
        followed.tables["exclude"] = [*followed.tables.get("exclude", []), f"old_form.{table}"]
    followed.apply()
    followed.check("whole")
