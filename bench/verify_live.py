"""Does a comparison beside a busy stream raise a false alarm? ``python -m bench.verify_live --seconds 600``.

MariaDB, Debezium, Kafka and the stream's own batches run as they do in earnest (without Spark, in a process of their
own), and a writer makes so many changes a second in a large table and in a small one whose rows change all the time.
Tables are compared again and again meanwhile. In the middle one difference is planted behind the binlog's back, as a
control: it must be found, repaired, and gone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pymysql

from bench.kafka_load import topic_ends
from binlake.proof.verify.result import TableResult
from binlake.proof.verify.run import Verifier, VerifyOptions
from binlake.settings import Settings
from binlake.tables.catalog import CatalogTable, catalog_tables
from embedded.connect import EmbeddedConnect, database_connector, history_in_kafka
from embedded.kafka import EmbeddedKafka
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import open_storage

DATABASE, PREFIX, TABLES = "live", "live", ("items", "hot")
USER, PASSWORD = "writer", "w-" + "3!kD"
HOT_ROWS = 50
#: A row that the writer leaves alone, for the control.
CONTROL = -1
_SETUP = f"""
CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO '{USER}'@'%';
CREATE DATABASE {DATABASE};
CREATE TABLE {DATABASE}.items (id BIGINT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12,2), ratio DOUBLE, rate FLOAT,
  at DATETIME(6), stamp TIMESTAMP(3) NULL, raw VARBINARY(16), note TEXT, big BIGINT UNSIGNED,
  kind ENUM('a','b,c','d'), tags SET('x','y','z'), bits BIT(10), flag BIT(1), doc JSON, born YEAR, span TIME(6),
  spot POINT, code CHAR(5), fixed BINARY(4), day DATE, twice DOUBLE AS (ratio * 2) STORED) CHARACTER SET utf8mb4;
CREATE TABLE {DATABASE}.hot LIKE {DATABASE}.items;
"""
#: The FLOAT has few digits: Debezium's snapshot rounds it to six, and then the lake does differ from the source.
_VALUES = (
    "CONCAT('n ', {n}, ' é'), {n} / 100, {n} / 7, {n} % 1000 / 4, '2020-01-01' + INTERVAL {n} MICROSECOND, "
    "'2021-01-01 00:00:00.123' + INTERVAL {n} SECOND, UNHEX(MD5({n})), REPEAT('x', {n} % 50), "
    "{n} + 18446744073708000000, 1 + {n} % 3, {n} % 8, {n} % 1024, {n} % 2, JSON_OBJECT('n', {n}), 1970 + {n} % 100, "
    "SEC_TO_TIME(CAST({n} AS SIGNED) - 5000), POINT({n}, 1), CONCAT({n} % 100, ' '), CHAR({n} % 256), "
    "IF({n} % 100, '2020-01-01' + INTERVAL {n} % 1000 DAY, '0000-00-00')"
)
#: The columns that the values are for.
_NAMES = (
    "id, name, amount, ratio, rate, at, stamp, raw, note, big, kind, tags, bits, flag, doc, born, span, spot, code, "
    "fixed, day"
)


class Writer(threading.Thread):
    """Makes changes in small transactions: updates, inserts, deletes; ``done`` of them so far."""

    def __init__(self, port: int, rows: int, per_second: int) -> None:
        super().__init__(name="writer", daemon=True)
        self._port, self._rows, self._rate = port, rows, per_second
        self._random = random.Random(11)
        self.stop, self.done, self.error = threading.Event(), 0, ""

    def run(self) -> None:
        """Go on until stopped."""
        try:
            connection = connection_to(self._port)
            began_s = time.monotonic()
            with connection.cursor() as cursor:
                cursor.execute("SET sql_mode = ''")
                while not self.stop.is_set():
                    for _ in range(10):
                        cursor.execute(self._statement())
                    connection.commit()
                    self.done += 10
                    ahead_s = self.done / self._rate - (time.monotonic() - began_s)
                    if ahead_s > 0:
                        time.sleep(ahead_s)
        except pymysql.err.Error as error:
            self.error = str(error)

    def _statement(self) -> str:
        pick, number = self._random.random(), self._random.randrange(1_000_000)
        if pick < 0.2:
            key = self._random.randrange(HOT_ROWS)
            return f"UPDATE {DATABASE}.hot SET amount = {number} / 100, ratio = -ratio WHERE id = {key}"
        key = self._random.randrange(self._rows)
        if pick < 0.8:
            changed = f"name = 'u {number}', ratio = {number} / 7, note = NULL"
            return f"UPDATE {DATABASE}.items SET {changed} WHERE id = {key}"
        if pick < 0.9:
            return f"DELETE FROM {DATABASE}.items WHERE id = {key}"
        return f"REPLACE INTO {DATABASE}.items ({_NAMES}) SELECT {key}, {_VALUES.format(n=number)}"


@dataclass
class LiveReport:
    """What a run saw.

    Args:
        seconds: how long the writer wrote.
        changes: what it changed.
        comparisons: of single tables.
        rows, changed_since, changing: sums over the comparisons.
        false_alarms: differences that nobody had planted.
        unsettled: rows that could not be settled.
        control_found, control_repaired: whether the planted difference was found, and gone after its repair.
        equal_at_end: whether both tables were equal when the writer had stopped.
    """

    seconds: float = 0.0
    changes: int = 0
    comparisons: int = 0
    rows: int = 0
    changed_since: int = 0
    changing: int = 0
    false_alarms: list[str] = field(default_factory=list)
    unsettled: int = 0
    control_found: bool = False
    control_repaired: bool = False
    equal_at_end: bool = False

    def add(self, result: TableResult) -> None:
        """Add a comparison."""
        self.comparisons += 1
        self.rows += result.source_rows
        self.changed_since += result.changed_since
        self.changing += result.changing
        self.unsettled += result.unsettled
        self.false_alarms += [f"{result.table}: {d}" for d in result.differences if not of_control(result, d.key)]
        self.false_alarms += result.wrong


def of_control(result: TableResult, key: object) -> bool:
    """Whether a difference is the planted one."""
    return result.table == f"{DATABASE}.items" and key == {"id": str(CONTROL)}


def connection_to(port: int) -> pymysql.Connection:
    """A session of the writer."""
    return pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD, charset="utf8mb4")


def settings_file(place: Path, database: EmbeddedMariaDB, bootstrap: str) -> Path:
    """The settings of the stream and of the comparison."""
    document = {
        "name": "live",
        "lake": {"uri": str(place / "lake"), "options": {"fsync": "false"}},
        "kafka": {
            "bootstrap_servers": bootstrap,
            "topics": [f"{PREFIX}.{DATABASE}.{table}" for table in TABLES],
            "ddl_topics": [PREFIX],
        },
        "source": {"database": {"host": database.host, "port": database.port, "user": USER, "password": PASSWORD}},
        "tables": {"defaults": {"buckets": 2, "compaction": {"mode": "inline", "after_commits": 20}}},
    }
    conf = place / "conf.yaml"
    conf.write_text(json.dumps(document))
    return conf


def connector(database: EmbeddedMariaDB, bootstrap: str) -> dict[str, str]:
    """Debezium's properties."""
    made = database_connector(database, USER, PASSWORD, prefix=PREFIX, server_id=9311, include=DATABASE, partitions=3)
    return made | history_in_kafka(PREFIX, bootstrap)


@contextlib.contextmanager
def stream_process(conf: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The stream, for the length of the block."""
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", "bench.local_stream", str(conf)], stdout=out, stderr=out)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


def compare_once(conf: Path, *, repair: bool = False) -> list[TableResult]:
    """Compare all tables of the lake."""
    settings = Settings.load(conf)
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    with Verifier(settings, VerifyOptions(repair=repair, wait_s=60, quiet_s=5)) as verifier:
        tables = [table for table in catalog_tables(settings, root) if isinstance(table, CatalogTable)]
        return [result for table in tables for result in verifier.tables(table, named=True)]


def live_run(seconds: float, per_second: int, rows: int, bootstrap: str, place: Path) -> LiveReport:
    """Run everything for so many seconds. Raises RuntimeError if a part of it dies."""
    report = LiveReport()
    with contextlib.ExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="db"))
        database = stack.enter_context(EmbeddedMariaDB(Path(data)))
        fill(database, rows)
        connectors = {"live": connector(database, bootstrap)}
        stack.enter_context(EmbeddedConnect(place / "connect", bootstrap, connectors))
        conf = settings_file(place, database, bootstrap)
        writer = Writer(database.port, rows, per_second)
        _wait_for_topics(bootstrap)
        stream = stack.enter_context(stream_process(conf, place / "stream.log"))
        _wait_for_tables(place / "lake")
        writer.start()
        began_s = time.monotonic()
        while report.seconds < seconds or not report.control_repaired:
            if stream.poll() is not None or writer.error:
                raise RuntimeError(f"{writer.error}\n{(place / 'stream.log').read_text()[-3000:]}")
            if report.seconds > seconds / 2 and not report.control_found:
                _control(database, conf, report)
            for result in compare_once(conf):
                report.add(result)
            report.seconds = time.monotonic() - began_s
            if report.seconds > 3 * seconds + 120:
                break
        report.changes = writer.done
        writer.stop.set()
        writer.join(60)
        report.equal_at_end = all(not r.different and not r.unsettled for r in compare_once(conf))
    return report


def fill(database: EmbeddedMariaDB, rows: int) -> None:
    """The tables, filled."""
    database.execute(_SETUP)
    for table, count in (("items", rows), ("hot", HOT_ROWS)):
        values = _VALUES.format(n="seq")
        made = f"INSERT INTO {table} ({_NAMES}) SELECT seq, {values} FROM seq_0_to_{count - 1}"
        database.execute(f"USE {DATABASE}; SET sql_mode = ''; {made}")
    made = f"INSERT INTO {DATABASE}.items ({_NAMES}) SELECT {CONTROL}, {_VALUES.format(n=5)}"
    database.execute(f"SET sql_mode = ''; {made}")


def _control(database: EmbeddedMariaDB, conf: Path, report: LiveReport) -> None:
    """Plant a difference that is in no binlog, find it beside the writer, repair it."""
    database.execute(f"SET sql_log_bin = 0; UPDATE {DATABASE}.items SET name = CONCAT(name, ' ') WHERE id = {CONTROL}")
    for repair in (False, True, False):
        for result in compare_once(conf, repair=repair):
            report.add(result)
            if result.table == f"{DATABASE}.items" and not repair:
                found = any(of_control(result, d.key) for d in result.differences)
                report.control_repaired = report.control_found and not found
                report.control_found = report.control_found or found


def _wait_for_topics(bootstrap: str) -> None:
    for _ in range(240):
        with contextlib.suppress(Exception):
            if topic_ends(bootstrap, [f"{PREFIX}.{DATABASE}.{table}" for table in TABLES]).total > HOT_ROWS:
                return
        time.sleep(0.5)
    raise RuntimeError("the connector has sent nothing")


def _wait_for_tables(lake: Path) -> None:
    for _ in range(240):
        if all((lake / DATABASE / table / ".hoodie" / "hoodie.properties").exists() for table in TABLES):
            return
        time.sleep(0.5)
    raise RuntimeError("the stream has made no tables")


def main() -> None:
    """Print the report as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--per-second", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="live") as place, EmbeddedKafka(Path(place) / "kafka") as kafka:
        report = live_run(given.seconds, given.per_second, given.rows, kafka.bootstrap_servers, Path(place))
    print(json.dumps({**vars(report), "false_alarms": len(report.false_alarms), "examples": report.false_alarms[:5]}))


if __name__ == "__main__":
    main()
