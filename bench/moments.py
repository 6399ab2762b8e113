"""The time of ``binlake query --at`` beside the same query of the newest rows, over tables that have many commits.

``python -m bench.moments [--commits 300] [--tables 4] [--rounds 9]``: a stream of ``source.mysql`` makes the commits.
The two commands take turns, each a process of its own; the ratio of each pair counts. The processor time of their
children is measured with the clock's.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from bench.planted import PASSWORD, USER
from binlake.position.cuts import Cut
from binlake.proof.history.moments import StreamLake
from binlake.settings import Settings
from binlake.stream.binlog.run import BinlogStream
from embedded.mariadb import EmbeddedMariaDB
from hudilake.clock import monotonic_s

_ROWS = 500
_DATABASE = "shop"
_RIGHTS = "SELECT, RELOAD, BINLOG MONITOR, SLAVE MONITOR, REPLICATION SLAVE, REPLICATION SLAVE ADMIN"


def fed_lake(place: Path, tables: int, commits: int) -> Path:
    """A lake whose tables have about so many commits each; the path of its settings."""
    names = [f"t{number}" for number in range(tables)]
    with tempfile.TemporaryDirectory(prefix="mo") as data, EmbeddedMariaDB(Path(data)) as server:
        server.execute(f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'; GRANT {_RIGHTS} ON *.* TO '{USER}'@'%';")
        sql = [f"CREATE DATABASE {_DATABASE}; USE {_DATABASE};"]
        for name in names:
            sql.append(f"CREATE TABLE {_DATABASE}.{name} (id INT PRIMARY KEY, n BIGINT, words VARCHAR(40));")
            sql.append(f"INSERT INTO {_DATABASE}.{name} SELECT seq, seq, 'words' FROM seq_1_to_{_ROWS};")
        for number in range(commits):
            changed = f"SET n = n + 1 WHERE id % {_ROWS // 10} = {number % (_ROWS // 10)}"
            sql += ["BEGIN;", *(f"UPDATE {_DATABASE}.{name} {changed};" for name in names), "COMMIT;"]
        server.execute("\n".join(sql))
        database = {"host": server.host, "port": server.port, "user": USER, "password": PASSWORD}
        document = {
            "name": "bench",
            "lake": {"uri": str(place / "lake"), "options": {"fsync": "false"}},
            "source": {"database": database, "mysql": {"start": "earliest"}},
            "tables": {
                "include": [f"{_DATABASE}.*"],
                "defaults": {"buckets": 2, "retention": {"commits": commits + 100}},
            },
            "batch": {"trigger_interval_ms": 0, "max_events": 1},
        }
        conf = place / "bench.yaml"
        conf.write_text(json.dumps(document))
        settings = Settings.load(conf)
        assert settings.source.mysql is not None
        BinlogStream(settings, settings.source.mysql, lambda event: None, threading.Event()).run(once=True)
    return conf


def timed(conf: Path, *more: str) -> tuple[float, float]:
    """The seconds, and the processor seconds, of a query that joins two tables."""
    sql = f"SELECT count(*), sum(a.n + b.n) FROM {_DATABASE}.t0 a JOIN {_DATABASE}.t1 b ON a.id = b.id"
    began, used = monotonic_s(), _used_s()
    command = [sys.executable, "-m", "binlake.cli", "query", "--conf", str(conf), sql, *more]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return monotonic_s() - began, _used_s() - used


def _used_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _line(name: str, times: list[tuple[float, float]], plain: list[tuple[float, float]]) -> str:
    ratios = sorted(mine[1] / its[1] for mine, its in zip(times, plain, strict=True))
    seconds, used = (statistics.median(column) for column in zip(*times, strict=True))
    spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    return f"{name}: {seconds:.2f} s, {used:.2f} processor s; ratio of processor time {spread}"


def _named(cuts: list[Cut]) -> list[str]:
    return [cut.transaction for cut in cuts if cut.transaction is not None and not cut.missing]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commits", type=int, default=300)
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="binlake-moments-") as name:
        conf = fed_lake(Path(name), options.tables, options.commits)
        lake = StreamLake(Settings.load(conf))
        cuts = lake.cuts()
        commits = [len(table.timeline.completed()) for table in lake.tables.values()]
        names = _named(cuts)
        print(f"{len(cuts)} cuts; commits of each table: {commits}")
        ways = {
            "the newest rows": (),
            "--at the newest transaction": ("--at", names[-1]),
            "--at an early transaction": ("--at", names[len(names) // 10]),
            "--at a time": ("--at", "9999-12-31"),
        }
        times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, more in ways.items():
                times[way].append(timed(conf, *more))
        for way in ways:
            print(_line(way, times[way], times["the newest rows"]))


if __name__ == "__main__":
    main()
