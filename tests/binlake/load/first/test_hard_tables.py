"""Tables and servers that make a load hard: keys of several columns, odd orders, limits, sessions that end within."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql
import pytest

from binlake.decode.changes import SourceTable
from binlake.load.first.chunks import Chunk, ChunkColumns, read_in_order
from binlake.load.first.run import FirstLoad, LoadOptions, LoadResult
from binlake.position.recorded import RecordedLoad
from binlake.settings import Settings
from binlake.settings.database import LoadSettings
from binlake.source.database.connection import connect
from binlake.source.database.snapshot import SourcePosition
from binlake.source.database.source_table import describe
from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.load.first.changing import PASSWORD, WRITER
from tests.judges import hudi_rs

pytestmark = pytest.mark.database

LIMITS = LoadSettings(connections=3, chunk_rows=4, commit_rows=12)
#: Table -> its definition, the statement that fills it, and how many rows that are.
TABLES: dict[str, tuple[str, str, int]] = {
    "no_case": (
        "(k VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT)",
        "VALUES ('a', 1), ('B', 2), ('c ', 3), ('ä1', 4), ('Z', 5), ('z!', 6), (' ', 7), ('_', 8), ('ß', 9), "
        "('ss1', 10), ('漢', 11), ('😀', 12), ('a b', 13), ('é9', 14), ('E2', 15), ('10', 16), ('9', 17), "
        "('q''\\\\', 18)",
        18,
    ),
    "bytes_order": (
        "(k VARCHAR(20) COLLATE utf8mb4_bin PRIMARY KEY, v INT)",
        "SELECT CONCAT(IF(seq % 2, 'ﬀ', '😀'), seq), seq FROM seq_1_to_40",
        40,
    ),
    "latin": (
        "(k VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german2_ci PRIMARY KEY, v INT)",
        "SELECT CONCAT(ELT(1 + seq % 4, 'ä', 'ae', 'Z', 'ß'), seq), seq FROM seq_1_to_40",
        40,
    ),
    "nopad": (
        "(a VARCHAR(3) COLLATE utf8mb4_nopad_bin, b VARCHAR(5) COLLATE utf8mb4_nopad_bin, PRIMARY KEY (a, b))",
        "SELECT REPEAT(' ', seq % 3), REPEAT(' ', seq DIV 3) FROM seq_0_to_17",
        18,
    ),
    "padded": (
        "(a VARCHAR(5), b INT, PRIMARY KEY (a, b))",
        "SELECT CONCAT('x', REPEAT(' ', seq % 3)), seq FROM seq_1_to_30",
        30,
    ),
    "few_first_values": (
        "(a INT, b VARBINARY(4), c DATETIME(3), PRIMARY KEY (a, b, c))",
        "SELECT seq % 2, UNHEX(HEX(seq % 5)), '2024-01-01' + INTERVAL seq SECOND FROM seq_1_to_60",
        60,
    ),
    "large_numbers": (
        "(k BIGINT UNSIGNED PRIMARY KEY, v INT)",
        "SELECT 18446744073709551615 - seq, seq FROM seq_0_to_29",
        30,
    ),
    "decimals": (
        "(k DECIMAL(30,5) PRIMARY KEY, v INT)",
        "SELECT (CAST(seq AS DECIMAL(30,5)) - 15) / 3, seq FROM seq_1_to_30",
        30,
    ),
    "bytes": ("(k BINARY(3) PRIMARY KEY, v INT)", "SELECT UNHEX(LPAD(HEX(seq * 7), 6, '0')), seq FROM seq_1_to_30", 30),
    "moments": ("(k TIMESTAMP(6) PRIMARY KEY, v INT)", "SELECT FROM_UNIXTIME(1 + seq / 7), seq FROM seq_1_to_30", 30),
    "second_column_of_no_order": (
        "(a INT, b ENUM('z','a'), c INT, PRIMARY KEY (a, b, c))",
        "SELECT seq % 7, 1 + seq % 2, seq FROM seq_1_to_40",
        40,
    ),
    "unique_with_nulls": ("(k INT UNIQUE, v INT)", "SELECT NULLIF(seq % 10, 0), seq FROM seq_1_to_10", 10),
    "unique": ("(v INT, k INT NOT NULL UNIQUE)", "SELECT seq, -seq FROM seq_1_to_30", 30),
    "prefix": ("(k VARCHAR(30) NOT NULL, UNIQUE (k(3)))", "SELECT LPAD(seq, 9, seq) FROM seq_100_to_130", 31),
    "empty": ("(k INT PRIMARY KEY, v INT)", "SELECT 1, 1 FROM seq_1_to_1 WHERE seq > 1", 0),
    "one_row": ("(k INT PRIMARY KEY, v INT)", "SELECT 1, 1", 1),
    "exactly_one_chunk": ("(k INT PRIMARY KEY, v INT)", "SELECT seq, 1 FROM seq_1_to_4", 4),
    "partitions": (
        "(k INT PRIMARY KEY, v INT) PARTITION BY HASH (k) PARTITIONS 3",
        "SELECT seq, 1 FROM seq_1_to_30",
        30,
    ),
    "made_columns": (
        "(k INT PRIMARY KEY, v INT AS (k * 2) STORED, w INT AS (k * 3) VIRTUAL, x INT INVISIBLE DEFAULT 5)",
        "",
        0,
    ),
}


@pytest.fixture
def config(server: EmbeddedMariaDB, tmp_path: Path, database: str) -> Settings:
    (tmp_path / "lake").mkdir()
    address = {"host": server.host, "port": server.port, "user": WRITER, "password": PASSWORD}
    document = {
        "name": "hard",
        "lake": {"uri": str(tmp_path / "lake")},
        "locking": {"lock": "process"},
        "source": {"database": address, "mysql": {"start": "now"}},
        "tables": {"include": [f"{database}.*"], "defaults": {"buckets": 2}},
    }
    return Settings.model_validate(document)


def load(config: Settings, **fields: object) -> dict[str, LoadResult]:
    run = FirstLoad(config, LoadOptions(limits=LIMITS), **fields)  # type: ignore[arg-type]
    return {result.table.partition(".")[2]: result for result in run.run()}


@pytest.mark.full
def test_every_kind_of_table_has_its_rows(
    server: EmbeddedMariaDB, config: Settings, tmp_path: Path, database: str
) -> None:
    for name, (columns, fill, _) in TABLES.items():
        insert = f"INSERT INTO `{name}` {fill}" if fill else f"INSERT INTO `{name}` (k) SELECT seq FROM seq_1_to_20"
        server.execute(f"USE {database}; SET sql_mode = ''; CREATE TABLE `{name}` {columns}; {insert}")
    results = load(config)
    assert {name: result.error for name, result in results.items() if result.error} == {}
    with pymysql.connect(host=server.host, port=server.port, user=WRITER, password=PASSWORD) as reader:
        for name, (_, fill, count) in TABLES.items():
            cursor = reader.cursor()
            cursor.execute(f"DESCRIBE {database}.`{name}`")
            names = [row[0] for row in cursor.fetchall()]
            cursor.execute(f"SELECT {', '.join(names)} FROM {database}.`{name}`")
            expected = Counter(tuple(map(_plain, row)) for row in cursor.fetchall())
            rows = hudi_rs.snapshot(tmp_path / "lake" / database / name)
            shown = (
                Counter(tuple(_plain(row[n]) for n in names) for row in rows.to_pylist()) if len(rows) else Counter()
            )
            assert shown == expected, name
            assert sum(shown.values()) == (count if fill else 20), name


def _plain(value: object) -> str:
    return str(value).removesuffix("+00:00")


def test_a_key_of_few_first_values_is_cut_further(server: EmbeddedMariaDB, config: Settings, database: str) -> None:
    """Chunks stay small, and the server finds each by its key: it looks at each row about three times."""
    server.execute(
        f"USE {database}; CREATE TABLE t (a INT, b INT, c VARCHAR(9), PRIMARY KEY (a, b, c)); "
        "INSERT INTO t SELECT 1, seq DIV 700, seq FROM seq_1_to_2000"
    )
    sizes = list[int]()
    with connect(config.source.database) as connection, ThreadPoolExecutor(1) as readers:
        described = describe(connection, SourceTable(database, "t"))
        columns = ChunkColumns.of(described)
        assert columns is not None

        def read(number: int, where: str) -> int:
            return len(connection.rows(f"SELECT a, b, c FROM {described.sql_name}{where}"))

        connection.rows("FLUSH STATUS")
        sizes = [rows for _, rows in read_in_order(columns, [connection], 100, None, read, readers)]
        status = {str(name): int(count or 0) for name, count in connection.rows("SHOW STATUS LIKE 'Handler_read%'")}
    assert sum(sizes) == 2000
    assert max(sizes) <= 101
    assert sum(status.values()) < 3 * 2000, status


def test_nobody_reads_when_a_chunk_has_failed() -> None:
    """The sessions are used for the next table then."""
    release, reading = threading.Event(), Counter[str]()

    class Cut:
        def chunk(self, connection: object, rows: int, low: tuple[str, ...] | None) -> Chunk:
            number = 1 if low is None else int(low[0]) + 1
            return Chunk(low, (str(number),) if number < 4 else None)

        def where(self, chunk: object, connection: object) -> str:
            return "x"

    def read(number: int, where: str) -> int:
        if number == 0:
            threading.Timer(0.3, release.set).start()
            raise RuntimeError("bad value")
        reading["begun"] += 1
        release.wait(30)
        reading["ended"] += 1
        return 1

    with ThreadPoolExecutor(3) as readers:
        with pytest.raises(RuntimeError, match="bad value"):
            list(read_in_order(Cut(), [None] * 3, 4, None, read, readers))  # type: ignore[arg-type, list-item]
        assert reading["begun"] == reading["ended"]


@pytest.mark.full
def test_a_bad_value_leaves_the_other_tables_whole(
    server: EmbeddedMariaDB, config: Settings, tmp_path: Path, database: str
) -> None:
    """While one session reports the value, the others read on."""
    server.execute(
        f"USE {database}; SET sql_mode = 'ALLOW_INVALID_DATES'; "
        "CREATE TABLE bad (k INT PRIMARY KEY, d DATE, pad BLOB); "
        "INSERT INTO bad SELECT seq, IF(seq = 2, '2024-02-31', '2024-02-01'), REPEAT('x', 20000) FROM seq_1_to_200; "
        "CREATE TABLE next (k INT PRIMARY KEY); INSERT INTO next SELECT seq FROM seq_1_to_200"
    )
    results = load(config)
    assert (results["bad"].state, results["next"].state) == ("failed", "loaded")
    assert len(hudi_rs.snapshot(tmp_path / "lake" / database / "next")) == 200


def test_limits_of_the_server_do_not_end_a_load(server: EmbeddedMariaDB, config: Settings) -> None:
    server.execute("SET GLOBAL max_statement_time = 0.05, GLOBAL idle_transaction_timeout = 1")
    try:
        with connect(config.source.database) as connection:
            [[slept]] = connection.rows("SELECT SLEEP(0.3)")
            shown = connection.rows("SELECT @@max_statement_time, @@idle_transaction_timeout, @@wait_timeout")
        assert slept == "0"
        assert [float(value or 1) for value in shown[0]] == [0, 0, 86_400]
    finally:
        server.execute("SET GLOBAL max_statement_time = 0, GLOBAL idle_transaction_timeout = 0")


@pytest.fixture
def many(server: EmbeddedMariaDB, database: str) -> str:
    server.execute(
        f"USE {database}; CREATE TABLE t (k INT PRIMARY KEY, v VARCHAR(20)); "
        "INSERT INTO t SELECT seq, seq FROM seq_1_to_200"
    )
    return f"{database}.t"


@pytest.mark.full
def test_a_session_that_is_killed_costs_nothing_but_a_second_run(
    server: EmbeddedMariaDB, config: Settings, tmp_path: Path, database: str, many: str
) -> None:
    killed = list[str]()

    def kill(progress: object) -> None:
        if not killed:
            [number, *_] = server.execute(f"SELECT id FROM information_schema.processlist WHERE user = '{WRITER}'")
            killed.append(number)
            server.execute(f"KILL {number}")

    first = load(config, on_progress=kill)["t"]
    assert killed
    assert first.state == "failed"
    assert "try again" in str(first.error)
    second = load(config)["t"]
    assert (second.state, second.rows + second.before) == ("loaded", 200)
    assert len(hudi_rs.snapshot(tmp_path / "lake" / database / "t")) == 200


@pytest.mark.full
@pytest.mark.parametrize("statement", ["DROP TABLE {0}", "ALTER TABLE {0} ADD COLUMN w INT FIRST"])
def test_a_table_that_is_changed_while_it_is_read(
    server: EmbeddedMariaDB, config: Settings, tmp_path: Path, database: str, many: str, statement: str
) -> None:
    """The statement waits until the table is read, or is given up: the load never sees half of it."""
    seen = list[str]()

    def change(progress: object) -> None:
        if not seen:
            with pymysql.connect(host=server.host, port=server.port, user=WRITER, password=PASSWORD) as writer:
                cursor = writer.cursor()
                cursor.execute("SET lock_wait_timeout = 1")
                with pytest.raises(pymysql.err.OperationalError) as refused:
                    cursor.execute(statement.format(many))
                seen.append(str(refused.value))

    loaded = load(config, on_progress=change)["t"]
    assert "Lock wait timeout" in seen[0]
    assert (loaded.state, loaded.rows) == ("loaded", 200)
    server.execute(statement.format(many))


def test_a_place_is_recorded_as_its_columns() -> None:
    position = SourcePosition("m.000001", 4, 1)
    for after in (None, ("a",), ("a", "2", "['x']")):
        load = RecordedLoad(position, "d", 5, after)
        assert RecordedLoad.from_text(load.to_text()) == load
    old = RecordedLoad(position, "d", 5, ("ab",)).to_text().replace('["ab"]', '"ab"')
    assert RecordedLoad.from_text(old).after == ("ab",)
