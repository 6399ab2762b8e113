"""``binlake load`` beside Debezium's snapshot of the same table: ``python -m bench.first_load --rows 500000``.

MariaDB holds one table of 22 columns of all kinds. In turns it is loaded, and goes the other way: Debezium's snapshot
into Kafka, then ``binlake run --once``. A line of JSON a run says the rows a second and the seconds of CPU for a
million rows: of our processes with all that they started, of Kafka, Kafka Connect and the server from ``/proc``. The
server's is beside the sum, because both ways need it. The same command once more, with nothing to do, says what a start
costs. A line besides says it of the connector's snapshot into Kafka alone. Both lakes must have the same rows, as many
as the source.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc

import hudilake
from bench.kafka_load import topic_ends
from bench.verify_live import DATABASE, PASSWORD, PREFIX, USER, connector, fill
from embedded.connect import EmbeddedConnect
from embedded.kafka import EmbeddedKafka
from embedded.mariadb import EmbeddedMariaDB

_PR_SET_CHILD_SUBREAPER = 36
TABLE = "items"
TOPIC = f"{PREFIX}.{DATABASE}.{TABLE}"


def settings_file(place: Path, database: EmbeddedMariaDB, bootstrap: str) -> Path:
    """The settings of both ways: one topic, one table."""
    place.mkdir(parents=True)
    document: dict[str, Any] = {
        "name": "load",
        "lake": {"uri": str(place / "lake"), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": bootstrap, "topics": [TOPIC], "ddl_topics": [PREFIX]},
        "source": {"database": {"host": database.host, "port": database.port, "user": USER, "password": PASSWORD}},
        "tables": {"include": [f"{DATABASE}.{TABLE}"], "defaults": {"buckets": 4, "compaction": {"mode": "off"}}},
    }
    conf = place / "conf.yaml"
    conf.write_text(json.dumps(document))
    return conf


def adopt_orphans() -> None:
    """Make processes whose parent ends children of this one (prctl(2)), so that their CPU is counted: a JVM outlives
    the command that started it."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def command(*arguments: str) -> tuple[float, float]:
    """Run binlake; seconds of time, and of CPU of all processes that it started (``adopt_orphans``)."""
    others = {child.pid for child in psutil.Process().children()}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([sys.executable, "-m", "binlake.cli", *arguments], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - started
    while left := [child.pid for child in psutil.Process().children() if child.pid not in others]:
        for pid in left:
            os.waitpid(pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_of(*pids: int | None) -> float:
    """Seconds of CPU that processes have taken so far."""
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids if pid is not None)


def line(way: str, rows: int, seconds: float, parts: dict[str, float], start: float) -> str:
    """The figures of a run. ``start``: seconds of CPU of a start."""
    server = parts["server"]
    cpu = {name: value for name, value in parts.items() if name != "server"}
    per_million = 1_000_000 / rows
    figures = {
        "way": way,
        "rows": rows,
        "seconds": round(seconds, 1),
        "rows a second": round(rows / seconds),
        "CPU s per million rows": round(sum(cpu.values()) * per_million, 2),
        **{f"of which {name}": round(value * per_million, 2) for name, value in cpu.items() if len(cpu) > 1},
        "of which a start": round(start * per_million, 2),
        "the server's besides": round(server * per_million, 2),
    }
    return json.dumps(figures)


def load(database: EmbeddedMariaDB, place: Path, rows: int, options: list[str]) -> str:
    """One load. The time is that of the command, with the start of its process."""
    conf, before = settings_file(place, database, "127.0.0.1:1"), cpu_of(database.pid)
    again = ["load", str(conf), "--no-connector-check", "--json", *options]
    seconds, cpu = command(*again)
    server = cpu_of(database.pid) - before
    return line("binlake load", rows, seconds, {"load": cpu, "server": server}, command(*again)[1])


def by_snapshot(database: EmbeddedMariaDB, place: Path, rows: int) -> Iterator[str]:
    """Debezium's snapshot, then the stream; the start of Kafka and of Connect without a connector is not counted."""

    def spent() -> dict[str, float]:
        pids = {"connect": connect.pid, "kafka": kafka.pid, "server": database.pid}
        return {name: cpu_of(pid) - before.get(name, 0.0) for name, pid in pids.items()}

    before: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        kafka = stack.enter_context(EmbeddedKafka(place / "kafka"))
        conf = settings_file(place / "stream", database, kafka.bootstrap_servers)
        connect = stack.enter_context(EmbeddedConnect(place / "connect", kafka.bootstrap_servers, {}, heap_mb=512))
        before, started = spent(), time.monotonic()
        wanted = {"table.include.list": f"{DATABASE}.{TABLE}"}
        connect.add("live", connector(database, kafka.bootstrap_servers) | wanted)
        while not _has(kafka.bootstrap_servers, rows):
            time.sleep(0.5)
        snapshot_s = time.monotonic() - started
        connect.remove("live")
        yield line("Debezium's snapshot alone", rows, snapshot_s, spent(), 0.0)
        run_s, run = command("run", str(conf), "--once")
        parts = spent() | {"run": run}
        _, start = command("run", str(conf), "--once")
        yield line("Debezium, then binlake run", rows, snapshot_s + run_s, parts, start)


def compare(lakes: list[Path], rows: int) -> None:
    """Raise RuntimeError unless all lakes have the same rows, so many of them."""
    tables = [rows_of(lake) for lake in lakes]
    if any(table.num_rows != rows or not table.equals(tables[0]) for table in tables):
        raise RuntimeError(f"the lakes differ, or lack rows: {[table.num_rows for table in tables]} of {rows}")


def rows_of(lake: Path) -> pa.Table:
    """The columns of the source as the lake has them, in the order of the key."""
    table = hudilake.open_table(str(lake / "lake" / DATABASE / TABLE)).scan().to_arrow()
    names = [name for name in table.column_names if not name.startswith("_")]
    return table.select(names).take(pc.sort_indices(table["id"])).combine_chunks()


def _has(bootstrap: str, rows: int) -> bool:
    with contextlib.suppress(Exception):
        return topic_ends(bootstrap, [TOPIC]).total >= rows
    return False


def main() -> None:
    """Load and go the other way, in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3, help="of each way")
    parser.add_argument("--no-debezium", action="store_true")
    parser.add_argument("--connections", type=int, default=2)
    given = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="db") as data, EmbeddedMariaDB(Path(data)) as database:
        fill(database, given.rows - 1)  # and the control
        with tempfile.TemporaryDirectory(prefix="load") as place:
            options = ["--connections", str(given.connections)]
            for number in range(given.rounds):
                lakes = [Path(place) / f"load-{number}"]
                print(load(database, lakes[0], given.rows, options), flush=True)
                if not given.no_debezium:
                    debezium = Path(place) / f"debezium-{number}"
                    lakes.append(debezium / "stream")
                    for figures in by_snapshot(database, debezium, given.rows):
                        print(figures, flush=True)
                compare(lakes, given.rows)


if __name__ == "__main__":
    main()
