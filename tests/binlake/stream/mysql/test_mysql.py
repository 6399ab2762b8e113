"""A stream that reads MySQL's binlog itself: the lake is the server, or what the binlog does not say is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlake.load.first.run import FirstLoad
from embedded.mysql import EmbeddedMySQL
from hudilake.errors import BadInputError, UnsupportedError
from tests.binlake.stream.binlog.followed import FollowedDatabase, random_statements
from tests.binlake.stream.binlog.test_refused import refusal
from tests.binlake.stream.binlog.test_types import VALUES
from tests.binlake.stream.binlog.test_xa import prepared

pytestmark = pytest.mark.mysql


def quarantined(followed: FollowedDatabase) -> int:
    return sum(table.quarantined for event in followed.apply() for table in event.tables)


def test_every_type(server: EmbeddedMySQL, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "kinds")
    columns = ", ".join(f"c{number} {kind} NULL" for number, kind in enumerate(VALUES))
    followed.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {columns})", "INSERT INTO t (id) VALUES (0)")
    for row in range(max(map(len, VALUES.values()))):
        cells = ", ".join(values[row % len(values)] for values in VALUES.values())
        followed.execute(f"INSERT IGNORE INTO t VALUES ({row + 1}, {cells})")
    followed.execute("UPDATE t SET c0 = 7 WHERE id = 2", "DELETE FROM t WHERE id = 3")
    assert quarantined(followed) == 0
    followed.check("t")


def test_json(server: EmbeddedMySQL, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "json")
    values = [
        '\'{"a": [1, -2, 2.5, 1e300, null, true, "x\\\\u00e9\\\\n\\\\\\\\"], "b": {}, "": []}\'',
        "'18446744073709551615'",
        "'-9223372036854775808'",
        "CAST(12345678901234567890.123456789 AS JSON)",
        "CAST(CAST('2024-02-29 01:02:03.000004' AS DATETIME(6)) AS JSON)",
        "CAST(CAST('2024-02-29' AS DATE) AS JSON)",
        "CAST(CAST('-12:34:56.789' AS TIME(3)) AS JSON)",
        "CAST(_binary x'00ff' AS JSON)",
        "JSON_OBJECT('long', REPEAT('é', 70000), 'many', (SELECT JSON_ARRAYAGG(n) FROM numbers))",
        "'0.1'",
        "'1.0'",
        "'1e-7'",
        "'null'",
        "NULL",
    ]
    followed.execute(
        "CREATE TABLE numbers (n INT PRIMARY KEY)",
        "INSERT INTO numbers WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 900) "
        "SELECT * FROM r",
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
        *(f"INSERT INTO t VALUES ({number}, {value})" for number, value in enumerate(values)),
        "UPDATE t SET j = JSON_SET(j, '$.a[1]', 7, '$.c', 'd') WHERE id = 0",
    )
    assert quarantined(followed) == 0
    followed.check("numbers", "t")


def test_rows_statements_and_files(server: EmbeddedMySQL, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "plain")
    statements = [one for one in random_statements(7, 40) if "seq_1_to" not in one]
    followed.execute(*statements[:18])
    assert quarantined(followed) == 0
    followed.execute(*statements[18:])
    assert quarantined(followed) == 0
    followed.check("bare", "keyed")
    assert followed.apply() == []


def test_a_first_load_and_what_comes_after_it(server: EmbeddedMySQL, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "loaded", start="now")
    columns = ", ".join(f"c{number} {kind} NULL" for number, kind in enumerate(VALUES))
    followed.execute(f"CREATE TABLE kinds (id INT PRIMARY KEY, {columns}, j JSON)")
    for row in range(max(map(len, VALUES.values()))):
        cells = ", ".join(values[row % len(values)] for values in VALUES.values())
        followed.execute(f"INSERT IGNORE INTO kinds VALUES ({row}, {cells}, JSON_OBJECT('a', {row}.50))")
    statements = [one for one in random_statements(11, 24) if "seq_1_to" not in one]
    followed.execute(*statements[:12])
    assert {one.table: one.state for one in FirstLoad(followed.settings()).run()} == {
        f"loaded.{table}": "loaded" for table in ("bare", "keyed", "kinds")
    }
    followed.check("bare", "keyed", "kinds")
    followed.execute(*statements[12:], "UPDATE kinds SET c0 = 1 WHERE id = 2")
    assert quarantined(followed) == 0
    followed.check("bare", "keyed", "kinds")


def test_columns_and_keys_that_only_mysql_has(server: EmbeddedMySQL, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "own")
    followed.execute(
        "CREATE TABLE g (id INT PRIMARY KEY, a INT, b INT AS (a + 1) VIRTUAL, c INT AS (a * 2) STORED, "
        "h INT INVISIBLE DEFAULT 5)",
        "INSERT INTO g (id, a) VALUES (1, 1), (2, 2)",
        "UPDATE g SET a = 9 WHERE id = 2",
        "ALTER TABLE g ADD COLUMN e VARCHAR(20) NOT NULL DEFAULT 'xy', ALGORITHM = INSTANT",
        "ALTER TABLE g ADD COLUMN f INT NOT NULL DEFAULT 3 FIRST, ALGORITHM = INSTANT",
        "INSERT INTO g (id, a) VALUES (3, 3)",
        "ALTER TABLE g DROP COLUMN f, ALGORITHM = INSTANT",
        "ALTER TABLE g RENAME COLUMN e TO e2",
        "INSERT INTO g (id, a) VALUES (4, 4)",
        "SET SESSION sql_generate_invisible_primary_key = ON",
        "CREATE TABLE hidden (a INT, b VARCHAR(10))",
        "INSERT INTO hidden VALUES (1, 'x'), (1, 'x')",
        "UPDATE hidden SET b = 'y' LIMIT 1",
        "SET SESSION sql_generate_invisible_primary_key = OFF",
        "CREATE TABLE tags (id INT PRIMARY KEY, j JSON, u VARCHAR(9), UNIQUE ((LOWER(u))), "
        "INDEX j ((CAST(j->'$.t' AS UNSIGNED ARRAY))))",
        "INSERT INTO tags VALUES (1, JSON_OBJECT('t', JSON_ARRAY(1, 2)), 'A')",
        "CREATE TABLE copied AS SELECT id, a FROM g",
        "INSERT INTO copied VALUES (9, 9)",
    )
    assert quarantined(followed) == 0
    gone = [f"{name}: the source has it no more" for name in ("e", "f")]
    followed.check("copied", "g", "hidden", "tags", notes=gone)


@pytest.mark.parametrize("most", [1_000_000, 100])
def test_transactions_that_are_compressed(server: EmbeddedMySQL, tmp_path: Path, most: int) -> None:
    """Also in batches that end inside one: the next goes on in it."""
    followed = FollowedDatabase(server, tmp_path, f"packed{most}", {"batch": {"max_events": most}})
    numbers = "WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM r WHERE n < {}) SELECT n, "
    followed.execute(
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT)",
        "CREATE TABLE u (a INT PRIMARY KEY, b TEXT)",
        "CREATE TABLE bare (a INT, b TEXT)",
        "SET SESSION cte_max_recursion_depth = 100000, SESSION binlog_transaction_compression = ON",
        "INSERT INTO t " + numbers.format(20_000) + "'é' FROM r",
        "BEGIN",
        "INSERT INTO u " + numbers.format(9_000) + "REPEAT('x', n) FROM r",
        "UPDATE t SET b = CONCAT(b, a) WHERE a % 3 = 0",
        "INSERT INTO bare VALUES (1, 'a'), (1, 'a')",
        "DELETE FROM t WHERE a % 7 = 0",
        "COMMIT",
        "CREATE TABLE copied AS SELECT a, b FROM bare",
        "ALTER TABLE u ADD COLUMN c INT DEFAULT 1",
        "DELETE FROM bare LIMIT 1",
        "SET SESSION binlog_transaction_compression = OFF",
        "INSERT INTO u VALUES (-1, 'plain', 2)",
    )
    assert quarantined(followed) == 0
    followed.check("bare", "copied", "t", "u")


@pytest.mark.parametrize("packed", [False, True])
def test_xa_transactions(server: EmbeddedMySQL, tmp_path: Path, packed: bool) -> None:
    """Rows count at XA COMMIT, in another process and file; in one phase; nothing of what is rolled back."""
    followed = FollowedDatabase(server, tmp_path, f"xa_{packed}")
    session = f"SET SESSION binlog_transaction_compression = {int(packed)}"
    followed.execute("CREATE TABLE t (a INT PRIMARY KEY, b TEXT)", "INSERT INTO t VALUES (1, ''), (2, ''), (3, '')")
    for name, row in (("'x','y',4294967303", 10), ("'x','z',7", 20)):
        followed.execute(session, prepared(name, f"INSERT INTO t VALUES ({row}, REPEAT('x', 900)), ({row + 1}, '')"))
    followed.execute("INSERT INTO t VALUES (4, '')")
    assert quarantined(followed) == 0
    followed.execute("FLUSH BINARY LOGS", "XA COMMIT 'x','y',4294967303", "XA ROLLBACK 'x','z',7")
    one_phase = ("XA START 'one'", "UPDATE t SET b = REPEAT('y', 900) WHERE a < 3", "XA END 'one'")
    followed.execute(session, *one_phase, "XA COMMIT 'one' ONE PHASE")
    followed.execute(session, prepared("'x'", "DELETE FROM t WHERE a = 11"), "XA COMMIT 'x'")
    assert quarantined(followed) == 0
    followed.check("t")


def test_json_that_is_written_in_part(server: EmbeddedMySQL, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "part")
    followed.execute(
        "CREATE TABLE t (a INT PRIMARY KEY, j JSON)",
        "INSERT INTO t VALUES (1, JSON_OBJECT('a', REPEAT('x', 500), 'b', 1))",
        "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
        "UPDATE t SET j = JSON_SET(j, '$.b', 2)",
    )
    assert "an update of a part of a JSON document (binlog_row_value_options)" in refusal(followed, UnsupportedError)


def test_a_type_that_is_not_known(server: EmbeddedMySQL, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "vectors")
    followed.execute("CREATE TABLE t (a INT PRIMARY KEY, v VECTOR(3))", "INSERT INTO t VALUES (1, NULL)")
    assert "vectors.t has a column of type 242" in refusal(followed, BadInputError)
