"""A stream that reads the binlog itself beside Debezium and Kafka: ``python -m bench.without_kafka --events 200000``.

MariaDB holds one table of 22 columns. In each round it makes so many changes while nobody reads. Then, in turns, a
stream with ``source.mysql`` applies them, and Debezium carries them into Kafka, from where ``binlake run --once``
applies them. A line of JSON a run says the events for each second of CPU of all processes but the server's, with and
without what a start of ``binlake run`` costs; the same command once more, with nothing to do, says that. Both lakes
must have the same rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import hudilake
from bench.first_load import TABLE, TOPIC, adopt_orphans, command, cpu_of
from bench.kafka_load import topic_ends
from bench.verify_live import DATABASE, PASSWORD, PREFIX, USER, connector, fill
from embedded.connect import EmbeddedConnect
from embedded.kafka import EmbeddedKafka
from embedded.mariadb import EmbeddedMariaDB

_STATEMENT_ROWS = 500
_WAIT_S = 300.0


def settings_file(place: Path, database: EmbeddedMariaDB, source: dict[str, Any]) -> Path:
    """The settings of a stream; ``source``: what tells the two apart."""
    place.mkdir(parents=True)
    address = {"host": database.host, "port": database.port, "user": USER, "password": PASSWORD}
    mysql = {"mysql": source["mysql"]} if "mysql" in source else {}
    document: dict[str, Any] = {
        "name": "changes",
        "lake": {"uri": str(place / "lake"), "options": {"fsync": "false"}},
        "source": {"database": address, **mysql},
        "tables": {"include": [f"{DATABASE}.{TABLE}"], "defaults": {"buckets": 4, "compaction": {"mode": "off"}}},
    }
    if "kafka" in source:
        document["kafka"] = source["kafka"]
    conf = place / "conf.yaml"
    conf.write_text(json.dumps(document))
    return conf


def change(database: EmbeddedMariaDB, events: int) -> None:
    """So many updates, each statement a transaction."""
    bounds = range(0, events, _STATEMENT_ROWS)
    made = [
        f"UPDATE {TABLE} SET amount = amount + 1, note = 'n' WHERE id >= {low} AND id < {low + _STATEMENT_ROWS}"
        for low in bounds
    ]
    database.execute(f"USE {DATABASE}; SET sql_mode = ''; {'; '.join(made)}")


def line(way: str, events: int, seconds: float, parts: dict[str, float], start: float) -> str:
    """The figures of a run."""
    total = sum(parts.values())
    figures = {
        "way": way,
        "events": events,
        "seconds": round(seconds, 1),
        "events for a second of CPU": round(events / total),
        "without the start": round(events / (total - start)),
        "CPU s": {name: round(value, 1) for name, value in parts.items()},
        "of which a start": round(start, 1),
    }
    return json.dumps(figures)


def by_binlog(database: EmbeddedMariaDB, place: Path, events: int, start: str) -> str:
    """The stream that reads the binlog from a place on."""
    conf = settings_file(place, database, {"mysql": {"start": start}})
    seconds, cpu = command("run", str(conf), "--once")
    _, empty = command("run", str(conf), "--once")
    return line("source.mysql", events, seconds, {"run": cpu}, empty)


def by_kafka(
    database: EmbeddedMariaDB, connect: EmbeddedConnect, kafka: EmbeddedKafka, place: Path, events: int, name: str
) -> str:
    """Debezium, which goes on where it was, then the stream."""
    source = {"bootstrap_servers": kafka.bootstrap_servers, "topics": [TOPIC], "ddl_topics": [PREFIX]}
    conf = settings_file(place, database, {"kafka": source})
    before, started = [cpu_of(connect.pid), cpu_of(kafka.pid)], time.monotonic()
    connect.add(name, _connector(database, kafka))
    _wait_for(kafka, TOPIC, events)
    carried_s = time.monotonic() - started
    connect.remove(name)
    run_s, run = command("run", str(conf), "--once")
    parts = {"connect": cpu_of(connect.pid) - before[0], "kafka": cpu_of(kafka.pid) - before[1], "run": run}
    _, empty = command("run", str(conf), "--once")
    return line("Debezium and Kafka", events, carried_s + run_s, parts, empty)


def _connector(database: EmbeddedMariaDB, kafka: EmbeddedKafka) -> dict[str, str]:
    return connector(database, kafka.bootstrap_servers) | {"snapshot.mode": "no_data"}


def _wait_for(kafka: EmbeddedKafka, topic: str, events: int) -> None:
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        with contextlib.suppress(Exception):
            if topic_ends(kafka.bootstrap_servers, [topic]).total >= events:
                return
        time.sleep(0.3)
    raise RuntimeError(f"{topic} has less than {events} records after {_WAIT_S:g} s")


def one_round(database: EmbeddedMariaDB, place: Path, events: int, number: int) -> None:
    """Both ways once; the first one alternates. Prints their lines. Raises RuntimeError if their rows differ."""
    with contextlib.ExitStack() as stack:
        kafka = stack.enter_context(EmbeddedKafka(place / "kafka"))
        connect = stack.enter_context(EmbeddedConnect(place / "connect", kafka.bootstrap_servers, {}, heap_mb=512))
        connect.add("live", _connector(database, kafka))
        for note in range(1000):  # until the connector follows
            database.execute(f"UPDATE {DATABASE}.hot SET note = '{number}-{note}' WHERE id = 0")
            with contextlib.suppress(Exception):
                if topic_ends(kafka.bootstrap_servers, [f"{PREFIX}.{DATABASE}.hot"]).total:
                    break
            time.sleep(0.3)
        connect.remove("live")
        [position] = database.execute("SHOW MASTER STATUS")
        file, offset = position.split("\t")[:2]
        change(database, events)
        ways: list[Callable[[], str]] = [
            lambda: by_binlog(database, place / "binlog", events, f"{file}:{offset}"),
            lambda: by_kafka(database, connect, kafka, place / "stream", events, "live"),
        ]
        for way in ways[:: 1 if number % 2 else -1]:
            print(way(), flush=True)
    lakes = [place / way / "lake" / DATABASE / TABLE for way in ("binlog", "stream")]
    rows = [_amounts(lake) for lake in lakes]
    if rows[0].num_rows != events or rows[0] != rows[1]:
        raise RuntimeError(f"the two lakes differ, or lack rows: {rows[0].num_rows}, {rows[1].num_rows} of {events}")


def _amounts(lake: Path) -> pa.Table:
    rows = hudilake.open_table(str(lake)).scan(["id", "amount"]).to_arrow()
    return rows.take(pc.sort_indices(rows["id"]))


def main() -> None:
    """Print a line of JSON for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="db") as data, EmbeddedMariaDB(Path(data)) as database:
        fill(database, given.events)
        with tempfile.TemporaryDirectory(prefix="without") as place:
            for number in range(given.rounds):
                one_round(database, Path(place) / str(number), given.events, number)


if __name__ == "__main__":
    main()
