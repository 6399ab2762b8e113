"""XA transactions: their rows count where they are committed, whatever happens between that and their XA PREPARE."""

from __future__ import annotations

import random
import struct
import time
from pathlib import Path

import pytest

from binlake.load.first.run import FirstLoad
from binlake.source.binlog.dump import BinlogEvent, EventType
from binlake.source.binlog.places import offset_at
from binlake.source.binlog.prepared import PreparedTransactions
from binlake.source.binlog.reading import BinlogSource
from binlake.source.binlog.records import RecordPiece
from binlake.source.binlog.statements import LoggedStatement
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import BadInputError, UnsupportedError
from tests.binlake.stream.binlog.followed import FollowedDatabase
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs

TABLE = "CREATE TABLE t (a INT PRIMARY KEY, b INT)"


def prepared(name: str, *statements: str) -> str:
    """A transaction up to its XA PREPARE."""
    return "; ".join((f"XA START {name}", *statements, f"XA END {name}", f"XA PREPARE {name}"))


def rows(followed: FollowedDatabase) -> dict[int, int]:
    return {row["a"]: row["b"] for row in hudi_rs.snapshot(followed.place / "lake" / followed.name / "t").to_pylist()}


@pytest.mark.full
def test_rows_count_at_the_commit(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    """Also in another process, behind another binlog file; nothing of what is rolled back."""
    followed = FollowedDatabase(server, tmp_path, "xa_commit")
    followed.execute(TABLE, "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    followed.execute(prepared("'x','y',7", "INSERT INTO t VALUES (10, 1)", "UPDATE t SET b = 5 WHERE a = 1"))
    followed.execute(prepared("'x','z',7", "DELETE FROM t WHERE a = 2", "INSERT INTO t VALUES (11, 1)"))
    followed.execute("INSERT INTO t VALUES (4, 4)")
    followed.apply()
    assert rows(followed) == {1: 1, 2: 2, 3: 3, 4: 4}
    followed.execute("FLUSH BINARY LOGS", "INSERT INTO t VALUES (5, 5)", "XA COMMIT 'x','y',7", "XA ROLLBACK 'x','z',7")
    followed.apply()
    assert rows(followed) == {1: 5, 2: 2, 3: 3, 4: 4, 5: 5, 10: 1}
    followed.execute("UPDATE t SET b = 6 WHERE a IN (1, 10)")
    followed.apply()
    followed.check("t")


@pytest.mark.full
def test_a_name_that_is_used_again(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "xa_again")
    followed.execute(TABLE)
    for number, end in enumerate(("COMMIT", "ROLLBACK", "COMMIT", "COMMIT")):
        followed.execute(prepared("'again'", f"INSERT INTO t VALUES ({number}, 0)"))
        if number % 2:
            followed.apply()
        followed.execute(f"XA {end} 'again'")
    followed.execute(prepared("'again'", "INSERT INTO t VALUES (9, 0)"))
    followed.apply()
    assert rows(followed) == {0: 0, 2: 0, 3: 0}
    followed.execute("XA ROLLBACK 'again'")


def test_one_phase_savepoints_and_tables_without_transactions(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "xa_kinds")
    followed.execute(TABLE, "CREATE TABLE m (a INT PRIMARY KEY) ENGINE=MyISAM")
    followed.execute("XA START 'one'", "INSERT INTO t VALUES (1, 1)", "XA END 'one'", "XA COMMIT 'one' ONE PHASE")
    undone = ("CREATE TEMPORARY TABLE d (a INT)", "SAVEPOINT s", "INSERT INTO t VALUES (3, 3)", "ROLLBACK TO s")
    followed.execute(prepared("'s'", "INSERT INTO t VALUES (2, 2)", *undone, "INSERT INTO t VALUES (4, 4)"))
    followed.execute("XA COMMIT 's'")
    followed.execute(prepared("'m'", "INSERT INTO m VALUES (1)"), "XA ROLLBACK 'm'")
    followed.execute(prepared("'mixed'", "INSERT INTO m VALUES (2)", "INSERT INTO t VALUES (5, 5)"))
    followed.execute("XA ROLLBACK 'mixed'")
    followed.apply()
    assert rows(followed) == {1: 1, 2: 2, 4: 4}
    followed.check("m", "t")


def test_a_first_load_between_the_two(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "xa_loaded", start="now")
    followed.execute(TABLE, "INSERT INTO t VALUES (1, 1), (2, 2)")
    followed.execute(prepared("'p'", "UPDATE t SET b = 7 WHERE a = 1", "INSERT INTO t VALUES (3, 3)"))
    followed.execute(prepared("'q'", "DELETE FROM t WHERE a = 2"))
    assert [one.state for one in FirstLoad(followed.settings()).run()] == ["loaded"]
    assert rows(followed) == {1: 1, 2: 2}
    followed.execute("XA COMMIT 'p'", "XA ROLLBACK 'q'")
    followed.apply()
    followed.check("t")


@pytest.mark.full
def test_a_large_one_in_several_batches(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    """Its pieces end inside the transaction; a batch that begins there reads the file from its beginning."""
    followed = FollowedDatabase(server, tmp_path, "xa_large", {"batch": {"max_events": 6_000}})
    followed.execute(TABLE, "INSERT INTO t VALUES (1, 1)")
    followed.execute(prepared("'l'", "INSERT INTO t SELECT seq, seq FROM seq_10_to_20000"))
    followed.execute("INSERT INTO t VALUES (2, 2)")
    followed.apply()
    followed.execute("XA COMMIT 'l'", "UPDATE t SET b = 0 WHERE a < 20")
    assert len(followed.apply()) > 2
    followed.check("t")


def test_savepoints_where_reading_begins_inside(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    """The pieces are the same from each of their ends on, and so is what is known to be undone too late. Changes that
    stand in the file before the start, and could not be read, stop nothing."""
    before = FollowedDatabase(server, tmp_path / "before", "xa_before")
    before.execute("CREATE TABLE s (a INT)", "SET SESSION binlog_format = 'STATEMENT'", "INSERT INTO s VALUES (2)")
    followed = FollowedDatabase(server, tmp_path, "xa_inside")
    followed.execute(TABLE)
    undone = ("SAVEPOINT s", "INSERT INTO t SELECT seq, 1 FROM seq_1000_to_12500", "ROLLBACK TO s")
    small = ("SAVEPOINT z", "INSERT INTO t VALUES (51, 51)", "ROLLBACK TO z", "INSERT INTO t VALUES (52, 52)")
    first = ("CREATE TEMPORARY TABLE d (a INT)", "INSERT INTO t VALUES (50, 50)")  # before it, savepoints are none
    followed.execute(prepared("'i'", *first, *undone, *small), "XA COMMIT 'i'")
    source = BinlogSource.open(followed.settings())

    def pieces(start: int) -> list[RecordPiece]:
        return [one for one in source.pieces(start, server_id=0, ends=True) if one is not None]

    whole = pieces(offset_at(followed.start))
    inside = [number for number, one in enumerate(whole, 1) if not one.whole]
    assert len(inside) == 2
    for number in range(1, inside[-1] + 1):
        rest = pieces(whole[number - 1].end)
        assert [v for one in rest for v in one.values] == [v for one in whole[number:] for v in one.values]
        assert sum(b"ROLLBACK" in v for one in rest for v in one.schema) == 1


@pytest.mark.full
def test_rows_that_the_server_has_deleted_stop_the_stream(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "xa_gone")
    followed.execute(TABLE, "INSERT INTO t VALUES (1, 1)")
    followed.execute(prepared("'gone'", "INSERT INTO t VALUES (2, 2)"))
    followed.execute("FLUSH BINARY LOGS")
    followed.apply()
    newest = server.execute("SHOW BINARY LOGS")[-1].split("\t")[0]
    for _ in range(40):  # a file that the server has just sent goes a moment later
        server.execute(f"PURGE BINARY LOGS TO '{newest}'")
        if server.execute("SHOW BINARY LOGS")[0].startswith(newest):
            break
        time.sleep(0.5)
    followed.execute("XA COMMIT 'gone'")
    with pytest.raises(BadInputError, match="the binlog does not have its rows any more"):
        followed.apply()
    assert rows(followed) == {1: 1}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(scaled(10, least=1)))
def test_random_transactions_beside_each_other(server: EmbeddedMariaDB, tmp_path: Path, seed: int) -> None:
    """Several are prepared at a time, each over keys of its own; a process of the stream ends anywhere between."""
    chance = random.Random(seed)
    followed = FollowedDatabase(server, tmp_path, f"xa_random_{seed}")
    followed.execute(TABLE, "INSERT INTO t SELECT seq, 0 FROM seq_1_to_60")
    waiting: list[int] = []
    for number in range(30):
        base = chance.choice([one for one in range(0, 60, 6) if one not in waiting])
        steps = [
            f"INSERT INTO t VALUES ({base + chance.randint(1, 6)}, {number}) ON DUPLICATE KEY UPDATE b = {number}",
            f"UPDATE t SET b = {number} WHERE a = {base + chance.randint(1, 6)}",
            f"DELETE FROM t WHERE a = {base + chance.randint(1, 6)}",
        ]
        if len(waiting) < 3 and chance.random() < 0.6:
            followed.execute(prepared(f"'r{base}'", *chance.sample(steps, 2)))
            waiting.append(base)
        else:
            followed.execute(f"BEGIN; {'; '.join(steps)}; COMMIT")
        if waiting and chance.random() < 0.4:
            ended = waiting.pop(chance.randrange(len(waiting)))
            known = any(line.endswith(f"r{ended}") for line in server.execute("XA RECOVER"))
            if known:  # one that has changed nothing is over
                followed.execute(f"XA {chance.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} 'r{ended}'")
        if chance.random() < 0.1:
            followed.execute("FLUSH BINARY LOGS")
        if chance.random() < 0.15:
            followed.apply()
            lines = server.execute(f"SELECT a, b FROM {followed.name}.t")
            assert rows(followed) == {int(a): int(b) for a, b in (line.split("\t") for line in lines)}
    for base in waiting:
        if any(line.endswith(f"r{base}") for line in server.execute("XA RECOVER")):
            followed.execute(f"XA COMMIT 'r{base}'")
    followed.apply()
    followed.check("t")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("XA COMMIT X'78',X'',1", ("COMMIT", "X'78',X'',1")),
        ("XA START X'00ff27',X'6272',12345", ("START", "X'00ff27',X'6272',12345")),
        ("XA COMMIT X'78',X'',4294967299", ("COMMIT", "X'78',X'',3")),  # as its XA_PREPARE event says
        ("XA COMMIT X'78',X'',1 ONE PHASE", None),
        ("XA COMMIT 'x'", None),
    ],
)
def test_statements(text: str, said: tuple[str, str] | None) -> None:
    xa = LoggedStatement("", text).xa
    assert (xa and (xa[0], str(xa[1]))) == said


def event(kind: EventType, start: int, body: bytes = b"") -> BinlogEvent:
    return BinlogEvent(kind, 0, 1, "log.000001", start, start + 10, body)


def xa_prepare(start: int, name: bytes) -> BinlogEvent:
    return event(EventType.XA_PREPARE, start, struct.pack("<?III", False, 3, len(name), 0) + name)


def committed(name: bytes) -> BinlogEvent:
    text = f"XA COMMIT X'{name.hex()}',X'',3".encode()
    return event(EventType.QUERY, 90, struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0" + text)


@pytest.mark.parametrize("second", [b"x", b"y"])
def test_two_that_are_prepared_under_one_name_are_not_told_apart(second: bytes) -> None:
    """While they are read, and where a new reader looks for one of them. The control has other names."""
    gtid = bytes(13)
    log = [event(EventType.MARIADB_GTID, 10, gtid), xa_prepare(20, b"x")]
    log += [event(EventType.MARIADB_GTID, 30, gtid), xa_prepare(40, second)]

    def read(into: PreparedTransactions) -> None:
        for one in log:
            into.begin(one) if one.type is EventType.MARIADB_GTID else into.prepare(one)

    def look() -> list[BinlogEvent]:
        new = PreparedTransactions(
            lambda _, start: (one for one in log if one.start >= start), lambda: [log[0].file], {}
        )
        return list(new.events_of(committed(b"x"), 0))

    none = PreparedTransactions(lambda *_: iter(()), list, {})
    for work in (lambda: read(none), look):
        if second == b"x":
            with pytest.raises(
                UnsupportedError, match=r"does not tell apart are prepared at log\.000001:40: X'78',X'',3\."
            ):
                work()
        else:
            work()
