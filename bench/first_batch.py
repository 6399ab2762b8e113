"""From the start of ``binlake run`` to its first commit: ``python -m bench.first_batch --turns 9 --other DIR``.

A lake on local disk that is not there yet, one table, a thousand events that wait. Each turn is a process of its own.
Two ways: ``binlog``, where the stream reads MariaDB's binlog itself, and ``kafka``, where Spark starts. ``--other DIR``
names another checkout, as a clone of the former commit; then both take turns, so that they meet the same load of the
machine. The first turn of each is left out: it compiles what later starts find in caches. A line of JSON for each way
says seconds to the commit by the clock, those of processor time until then of the process and all below it, and the
ratio of each pair of turns, this checkout's divided by the other's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from bench.events import DATABASE, PLAIN, events
from bench.kafka_load import create_topic, produce
from embedded.kafka import EmbeddedKafka
from embedded.mariadb import EmbeddedMariaDB

_USER, _PASSWORD = "writer", "w-" + "3!kD"
_HERE = Path(__file__).parent.parent
_EVENTS, _KEYS = 1000, 200
_TOPIC = f"first.{DATABASE}.{PLAIN.table}"
_LOOK_S, _WAIT_S = 0.005, 120.0
_COMMIT = ".hoodie/timeline/*_*.deltacommit"
_SETUP = f"""
CREATE USER '{_USER}'@'%' IDENTIFIED BY '{_PASSWORD}';
GRANT ALL ON *.* TO '{_USER}'@'%';
CREATE DATABASE {DATABASE};
USE {DATABASE};
CREATE TABLE {PLAIN.table} (id BIGINT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12,2), at DATETIME(6));
INSERT INTO {PLAIN.table}
  SELECT seq, CONCAT('n ', seq), seq / 100, '2020-01-01' + INTERVAL seq SECOND FROM seq_1_to_{_EVENTS};
"""


def by_binlog(database: EmbeddedMariaDB) -> Mapping[str, Any]:
    """What the settings of a stream say that reads the binlog from its beginning."""
    database.execute(_SETUP)
    address = {"host": database.host, "port": database.port, "user": _USER, "password": _PASSWORD}
    tables = {"include": [f"{DATABASE}.{PLAIN.table}"]}
    return {"source": {"database": address, "mysql": {"start": "earliest"}}, "tables": tables}


def by_kafka(kafka: EmbeddedKafka) -> Mapping[str, Any]:
    """What the settings of a stream say that reads a topic by Spark's tasks."""
    create_topic(kafka.bootstrap_servers, _TOPIC, 1)
    produce(kafka.bootstrap_servers, _TOPIC, events(_EVENTS, _KEYS))
    schema = {"columns": PLAIN.types(), "key": ["id"]}
    return {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers, "topics": [_TOPIC]},
        "source": {"schemas": {f"{DATABASE}.{PLAIN.table}": schema}},
        "tables": {},
    }


def turn(code: Path, source: Mapping[str, Any], options: Sequence[str] = ()) -> tuple[float, float]:
    """Seconds to the first commit, by the clock and of processor time. Raises RuntimeError where there is none."""
    with tempfile.TemporaryDirectory(prefix="first-") as place:
        defaults = {"buckets": 1, "compaction": {"mode": "off"}}
        document = {
            "name": "first",
            "lake": {"uri": f"{place}/lake"},
            **source,
            "tables": {**source["tables"], "path": "{table}", "defaults": defaults},
        }
        conf, commits = Path(place) / "conf.yaml", Path(place) / "lake" / PLAIN.table
        conf.write_text(json.dumps(document))
        command = [sys.executable, "-m", "binlake.cli", "run", str(conf), "--once", "--no-display", *options]
        environment = os.environ | {"PYTHONPATH": str(code / "pipeline")}
        with (Path(place) / "log").open("w+b") as log:
            began = time.monotonic()
            process = subprocess.Popen(command, env=environment, cwd=place, stdout=log, stderr=log)
            while process.poll() is None and time.monotonic() - began < _WAIT_S and not any(commits.glob(_COMMIT)):
                time.sleep(_LOOK_S)
            took_s = time.monotonic() - began
            if process.poll() is None:
                cpu_s = _cpu_s(psutil.Process(process.pid))
                if process.wait() == 0:
                    return took_s, cpu_s
            log.seek(0)
            raise RuntimeError(log.read().decode())


def _cpu_s(root: psutil.Process) -> float:
    """Of a process, of all below it, and of what these have waited for."""
    spent = 0.0
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent += times.user + times.system + times.children_user + times.children_system
    return spent


def compare(way: str, source: Mapping[str, Any], sides: Mapping[str, Path], turns: int) -> dict[str, Any]:
    """The figures of a way: of each side the median, the least and the greatest, and the ratios of the pairs."""
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for number in range(turns + 1):
        for name in sorted(sides, reverse=number % 2 == 1):
            took[name].append(turn(sides[name], source))
    figures: dict[str, Any] = {"way": way, "turns": turns, "load": round(os.getloadavg()[0], 1)}
    for index, unit in enumerate(("s", "cpu_s")):
        of = {name: [one[index] for one in pairs[1:]] for name, pairs in took.items()}
        figures |= {f"{name}_{unit}": _spread(times) for name, times in of.items()}
        if "other" in of:
            figures[f"ratio_{unit}"] = _spread([a / b for a, b in zip(of["here"], of["other"], strict=True)])
    return figures


def _spread(values: Sequence[float]) -> list[float]:
    return [round(one, 2) for one in (statistics.median(values), min(values), max(values))]


def main() -> None:
    """Print a line of JSON for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, help="the other checkout")
    parser.add_argument("--turns", type=int, default=9, help="of each side, beside the first one")
    parser.add_argument("--ways", default="binlog,kafka")
    given = parser.parse_args()
    sides = {"here": _HERE} | ({"other": given.other.resolve()} if given.other else {})
    with tempfile.TemporaryDirectory(prefix="first-source-") as place, contextlib.ExitStack() as stack:
        for way in given.ways.split(","):
            if way == "binlog":
                source = by_binlog(stack.enter_context(EmbeddedMariaDB(Path(place) / "db")))
            else:
                source = by_kafka(stack.enter_context(EmbeddedKafka(Path(place) / "kafka")))
            print(json.dumps(compare(way, source, sides, given.turns)), flush=True)


if __name__ == "__main__":
    main()
