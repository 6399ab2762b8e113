"""What is measured of both metastores, in turns."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.metastore import hive_sync, tables
from bench.metastore.asking import Question, connected, latencies, question, request, seconds
from bench.metastore.sides import Side
from bench.summary import percentile
from hudilake.clock import monotonic_s

CONNECTIONS = 50
#: All connections together ask so many times a second, where they do not ask as fast as they can.
PACED_A_SECOND = 100


@dataclass(frozen=True)
class Sizes:
    """Of a run.

    Args:
        partitions: of the table that is asked.
        rounds: of each measurement.
        registered: partitions that are added in a round.
        calls: of each of the 50 connections in a round.
    """

    partitions: int
    rounds: int
    registered: int
    calls: int

    @classmethod
    def scaled(cls, scale: float, rounds: int) -> Sizes:
        """The full run's, times ``scale``."""
        many = max(2 * tables.A_DAY, round(100_000 * scale))
        return cls(many, rounds, max(200, round(10_000 * scale)), max(5, round(100 * scale)))


@dataclass
class Figures:
    """Measurement -> side -> what each round gave."""

    sizes: Sizes
    rounds: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, name: str, side: str, value: float) -> None:
        """One round."""
        self.rounds.setdefault(name, {}).setdefault(side, []).append(value)

    def document(self) -> Mapping[str, object]:
        """As JSON."""
        return {"sizes": asdict(self.sizes), "rounds": self.rounds}


def measure(
    sides: Mapping[str, Side], sizes: Sizes, place: Path, told: Callable[[str], None], *, sync: bool
) -> Figures:
    """Load both, then each measurement, the sides in turns.

    Args:
        sides: running, empty.
        sizes: of the run.
        place: for a Hudi table.
        told: called with lines of progress.
        sync: whether HiveSync is measured, too.
    """
    figures = Figures(sizes)
    for name, side in sides.items():
        tables.create(side.host, side.port)
        took = tables.load(side.host, side.port, tables.TABLE, range(sizes.partitions), clients=4)
        figures.add("loading, 4 connections: partitions a second", name, sizes.partitions / took)
        told(f"{name}: {sizes.partitions:,} partitions in {took:.0f} s")
    for step in (_lookups, _many, _registered, _cold):
        begin = monotonic_s()
        step(sides, figures)
        told(f"{step.__name__.removeprefix('_')}: {monotonic_s() - begin:.0f} s")
    if sync:
        _synced(sides, figures, place)
    return figures


def _lookups(sides: Mapping[str, Side], figures: Figures) -> None:
    """Milliseconds to the last byte; one connection, the first answers of a connection left out."""
    many = figures.sizes.partitions
    kinds = {
        "1 hit": (tables.one_hit(many), 20),
        "1,000 hits": (tables.one_day(many), 5),
        "all hits": (tables.every_day(), 1),
    }
    for kind, (text, repeats) in kinds.items():
        sent = request("get_partitions_by_filter", tables.DATABASE, tables.TABLE, text, -1)
        asked = {name: question(side.host, side.port, sent) for name, side in sides.items()}
        for _ in range(figures.sizes.rounds):
            for name, side in sides.items():
                with contextlib.closing(connected(side.host, side.port)) as connection:
                    taken = [seconds(connection, asked[name]) for _ in range(repeats)]
                figures.add(f"get_partitions_by_filter, {kind}: ms", name, 1000 * statistics.median(taken))


def _mixed(side: Side, partitions: int) -> list[Question]:
    """What engines ask while they plan: tables, one partition, a day's names, a pruned lookup."""
    db, name = tables.DATABASE, tables.TABLE
    values = list(tables.values_of(partitions // 3))
    asked = [
        request("get_table", db, name),
        request("get_partitions_by_filter", db, name, tables.one_hit(partitions), -1),
        request("get_table", db, name),
        request("get_database", db),
        request("get_partition", db, name, values),
        request("get_all_tables", db),
        request("get_partition_names_ps", db, name, [values[0], ""], 100),
    ]
    return [question(side.host, side.port, one) for one in asked]


def _many(sides: Mapping[str, Side], figures: Figures) -> None:
    """50 connections: as fast as they can, and at a pace that both can follow."""
    asked = {name: _mixed(side, figures.sizes.partitions) for name, side in sides.items()}
    paces = {"as fast as they can": 0.0, f"{PACED_A_SECOND} calls a second": CONNECTIONS / PACED_A_SECOND}
    for _ in range(figures.sizes.rounds):
        for pace, pause_s in paces.items():
            for name, side in sides.items():
                begin = monotonic_s()
                calls = figures.sizes.calls
                taken = latencies(side.host, side.port, asked[name], CONNECTIONS, calls, pause_s)
                took = monotonic_s() - begin
                figures.add(f"50 connections, {pace}: p99 ms", name, 1000 * percentile(taken, 0.99))
                figures.add(f"50 connections, {pace}: median ms", name, 1000 * statistics.median(taken))
                if not pause_s:
                    figures.add(f"50 connections, {pace}: calls a second", name, len(taken) / took)


def _registered(sides: Mapping[str, Side], figures: Figures) -> None:
    """``add_partitions_req`` with 1,000 partitions a call, over one connection, into a new table."""
    for number in range(figures.sizes.rounds):
        for name, side in sides.items():
            table = f"registered_{number}"
            tables.create(side.host, side.port, table)
            took = tables.load(side.host, side.port, table, range(figures.sizes.registered))
            figures.add("add_partitions_req: partitions a second", name, figures.sizes.registered / took)


def _cold(sides: Mapping[str, Side], figures: Figures) -> None:
    """From the start of the process to the answer of a lookup with one hit."""
    many = figures.sizes.partitions
    sent = request("get_partitions_by_filter", tables.DATABASE, tables.TABLE, tables.one_hit(many), -1)
    for _ in range(figures.sizes.rounds):
        for name, side in sides.items():
            side.stop()
            begin = monotonic_s()
            side.start()
            question(side.host, side.port, sent)
            figures.add("cold start to the first pruned lookup: s", name, monotonic_s() - begin)


def _synced(sides: Mapping[str, Side], figures: Figures, place: Path) -> None:
    """HiveSync of a new table against both; ``add_partitions_req`` above is what it is beside."""
    sizes = figures.sizes
    for number in range(min(sizes.rounds, 3)):
        path = place / f"synced_{number}"
        hive_sync.hudi_table(path, sizes.registered)
        for name, side in sides.items():
            took = hive_sync.sync(path, f"thrift://{side.host}:{side.port}", tables.DATABASE)
            # The tool makes three tables, each with all partitions.
            figures.add("HiveSync: partitions of the Hudi table a second", name, sizes.registered / took)


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, least, greatest."""
    return statistics.median(values), min(values), max(values)
