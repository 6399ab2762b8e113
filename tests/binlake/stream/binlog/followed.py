"""A database of a real server whose binlog a stream follows into a lake, without Kafka and Spark."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.planted import PASSWORD, USER
from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.start import run_stream
from embedded.database import EmbeddedDatabase
from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.proof.verify.source import verified
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same, read_ourselves

USER_SQL = (
    f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';"
    "GRANT SELECT, RELOAD, BINLOG MONITOR, SLAVE MONITOR, REPLICATION SLAVE, REPLICATION SLAVE ADMIN "
    f"ON *.* TO '{USER}'@'%';"
)
_SESSION = "SET sql_mode = '', time_zone = '+00:00';"


@contextmanager
def binlog_server() -> Iterator[EmbeddedMariaDB]:
    """A server whose binlog the user of the settings may read."""
    # a short path: sockets do not take a long one
    with tempfile.TemporaryDirectory(prefix="db") as place, EmbeddedMariaDB(Path(place)) as server:
        server.execute(USER_SQL)
        yield server


@dataclass
class FollowedDatabase:
    """A database, and the stream of its server's binlog from its creation on.

    Args:
        server: where it is.
        place: of the settings and the lake.
        name: of the database.
        more: further sections of the settings.
        compacts: whether tables are compacted after every third commit.
        start: as ``source.mysql.start``; where the database was made, if empty.
        tables: further settings of ``tables``.
    """

    server: EmbeddedDatabase
    place: Path
    name: str
    more: dict[str, Any] = field(default_factory=dict)
    compacts: bool = False
    start: str = ""
    tables: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start = self.start or self.server.binlog_place()
        self.server.execute(f"CREATE DATABASE `{self.name}`")

    @property
    def conf(self) -> Path:
        """The settings file."""
        return self.place / "conf.yaml"

    def settings(self) -> Settings:
        """Writes the settings file."""
        database = {"host": self.server.host, "port": self.server.port, "user": USER, "password": PASSWORD}
        compaction = {"compaction": {"after_commits": 3}} if self.compacts else {}
        document = {
            "name": f"of_{self.name}",
            "lake": {"uri": str(self.place / "lake"), "options": {"fsync": "false"}},
            "source": {"database": database, "mysql": {"start": self.start}, **self.more.get("source", {})},
            "tables": {"include": [f"{self.name}.*"], "defaults": {"buckets": 2, **compaction}, **self.tables},
            "batch": {"trigger_interval_ms": 0, **self.more.get("batch", {})},
        }
        self.conf.write_text(json.dumps(document))
        return Settings.load(self.conf)

    def execute(self, *statements: str) -> None:
        """Run statements in the database, as a session that may write zero dates."""
        self.server.execute(f"USE `{self.name}`; {_SESSION} " + "; ".join(statements))

    def apply(self) -> list[ProgressEvent]:
        """Carry all that the binlog has into the lake."""
        events: list[ProgressEvent] = []
        run_stream(self.settings(), once=True, on_progress=events.append)
        return events

    def check(self, *tables: str, notes: Sequence[str] = ()) -> None:
        """Every cell of the lake is the server's, for our reader and for hudi-rs. ``notes``: what verify says too."""
        results = verified(self.settings())
        assert results.keys() == {f"{self.name}.{table}" for table in tables}
        for result in results.values():
            assert (result.total, result.unsettled, result.skipped) == (0, 0, ""), (result.differences, result.skipped)
            assert result.wrong == [], result
        assert [note for result in results.values() for note in result.notes] == list(notes)
        for table in tables:
            path = self.place / "lake" / self.name / table
            assert_same("hudi-rs", hudi_rs.snapshot(path), read_ourselves(path))


def random_statements(seed: int, count: int) -> Iterator[str]:
    """Transactions over ``keyed`` and ``bare``, of one row to thousands, with statements and new files between them."""
    yield (
        "CREATE TABLE keyed (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, n INT, t VARCHAR(200), d DECIMAL(12,3), "
        "at TIMESTAMP(3) NULL)"
    )
    yield "CREATE TABLE bare (a INT, b VARCHAR(10))"
    chance = random.Random(seed)
    for number in range(count):
        steps = [_step(chance) for _ in range(chance.randint(1, 6))]
        yield f"BEGIN; {'; '.join(steps)}; COMMIT"
        if chance.random() < 0.1:
            yield "FLUSH BINARY LOGS"
        if chance.random() < 0.05:
            yield f"ALTER TABLE keyed ADD COLUMN x{number} INT DEFAULT {number}"
        if chance.random() < 0.02:
            yield "TRUNCATE TABLE bare"


def _step(chance: random.Random) -> str:
    kind = chance.random()
    if kind < 0.4:
        rows = ", ".join(
            f"({chance.randint(-9, 9)}, 'é{chance.randint(0, 999)}', {chance.randint(-(10**6), 10**6)}e-3, "
            f"'2024-02-29 03:04:05.{chance.randint(0, 999):03d}')"
            for _ in range(chance.choice([1, 3, 40]))
        )
        return f"INSERT INTO keyed (n, t, d, at) VALUES {rows}"
    if kind < 0.45:
        return f"INSERT INTO keyed (n, t) SELECT seq, REPEAT('y', seq % 50) FROM seq_1_to_{chance.choice([500, 3000])}"
    if kind < 0.7:
        some = f"id % 17 = {chance.randint(0, 16)} AND LENGTH(t) < 90"
        return f"UPDATE keyed SET n = n + 1, t = CONCAT(t, 'x') WHERE {some}"
    if kind < 0.8:
        return f"DELETE FROM keyed WHERE id % 31 = {chance.randint(0, 30)}"
    if kind < 0.9:
        return f"INSERT INTO bare VALUES ({chance.randint(0, 5)}, 'q'), ({chance.randint(0, 5)}, NULL)"
    return f"DELETE FROM bare WHERE a = {chance.randint(0, 5)} LIMIT 1"
