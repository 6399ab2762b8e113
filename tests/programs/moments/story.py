"""A stream that reads the binlog of a server under load and dies at random; then the lake at many transactions."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import psutil  # type: ignore[import-untyped]
import pymysql

from bench.planted import PASSWORD, USER
from binlake.position.cuts import Cut
from binlake.proof.history.moments import StreamLake
from binlake.settings import Settings
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import ConfigError
from tests.programs.moments.load import DDL, Load, create
from tests.programs.moments.replica import DATABASE, Rows, SourceReplica, SourceSnapshot, connect, snapshot

_STREAM = "moments"


@dataclass
class Story:
    """One stream.

    Args:
        server: the source, empty, with the streams' user.
        place: the directory of the lake.
        seed: of all that is random.
        seconds: how long the load lasts.
        pause_s: of each session between two transactions, on average.
        retained: the commits whose states the tables keep.
        statements: of DDL, under load.
        kills, transactions: how often the stream died, and what the sessions tried.
        snapshots: of the source, under load.
    """

    server: EmbeddedMariaDB
    place: Path
    seed: int
    seconds: float
    pause_s: float = 0.01
    retained: int = 2_000
    statements: Sequence[str] = DDL
    kills: int = 0
    transactions: int = 0
    snapshots: list[SourceSnapshot] = field(default_factory=list)
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        (self.place / "moments.yaml").write_text(json.dumps(self.document()))

    @property
    def conf(self) -> Path:
        """The settings file."""
        return self.place / "moments.yaml"

    @property
    def settings(self) -> Settings:
        """The settings of the stream."""
        return Settings.load(self.conf)

    def document(self) -> dict[str, Any]:
        """The settings of the stream, before they are parsed."""
        database = {"host": self.server.host, "port": self.server.port, "user": USER, "password": PASSWORD}
        return {
            "name": _STREAM,
            "lake": {"uri": str(self.place / "lake"), "options": {"fsync": "false"}},
            "source": {"database": database, "mysql": {"start": "earliest"}},
            "tables": {"include": [f"{DATABASE}.*"], "defaults": self.defaults()},
            "batch": {"trigger_interval_ms": self.random.choice((0, 20)), "max_events": self.random.choice((20, 60))},
        }

    def defaults(self) -> dict[str, Any]:
        """The settings of all tables."""
        return {"buckets": 2, "compaction": {"after_commits": 7}, "retention": {"commits": self.retained}}

    def run(self) -> None:
        """The load, with a stream that dies; then a run that ends."""
        create(self.server)
        self.prepare()
        ends = time.monotonic() + self.seconds
        statements = list(self.statements)
        due = [ends - self.seconds * (1 - part) for part in (0.25, 0.4, 0.55, 0.7)[: len(statements)]]
        with closing(connect(self.server)) as session, Load(self.server, self.seed, self.pause_s) as load:
            while due or time.monotonic() < ends:
                with self._stream() as process:
                    dies = math.inf
                    while time.monotonic() < dies and (due or time.monotonic() < ends):
                        if dies == math.inf and self.at_work():
                            dies = time.monotonic() + 2.0 + self.random.uniform(0, 4)
                        if due and dies < math.inf and time.monotonic() >= due[0]:
                            due.pop(0)
                            load.carry_out(statements.pop(0))
                        assert process.poll() is None, (self.place / "log").read_text()[-3000:]
                        self.watch(session)
                        time.sleep(0.1)
                self.kills += 1
                self.after_death()
        assert not statements
        self.transactions = load.transactions
        self.finish()

    def prepare(self) -> None:
        """What comes before the load, once the tables are there."""

    def at_work(self) -> bool:
        """Whether the stream that was started last has begun: its death is not far then."""
        return True

    def watch(self, session: pymysql.Connection[Any]) -> None:
        """Look at the source, again and again."""
        self.snapshots.append(snapshot(session))

    def after_death(self) -> None:
        """What comes before the stream is started again."""

    def finish(self) -> None:
        """Apply all that the binlog has."""
        done = subprocess.run(
            self._command("--once"), capture_output=True, text=True, check=False, timeout=600, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, done.stderr[-3000:]

    @contextmanager
    def _stream(self) -> Iterator[subprocess.Popen[bytes]]:
        """A process that is killed at the end of the block."""
        with (self.place / "log").open("ab") as log:
            process = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                yield process
            finally:
                family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
                process.kill()
                for child in family:
                    with suppress(psutil.NoSuchProcess):
                        child.kill()
                process.wait()

    def _command(self, *more: str) -> list[str]:
        return [sys.executable, "-m", "binlake.cli", "run", str(self.conf), *more]


@dataclass
class Compared:
    """What came of comparing.

    Args:
        tables: that were equal or not, each with all its cells.
        cells: of the source's tables.
        refused: (table, why) of those that the lake refuses.
        wrong: what differs, in words.
        unplaced: columns that statements of no known place add: only what both have of them is compared.
    """

    tables: int = 0
    cells: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unplaced: Collection[str] = ()

    def take(self, lake: StreamLake, moment: str, source: Mapping[str, Rows]) -> None:
        """Compare each table of the source with the lake at a moment."""
        for name, shown in source.items():
            table = f"{DATABASE}.{name}"
            try:
                mine = lake.at(moment, [table]).scan(table).to_arrow()
            except ConfigError as error:
                self.refused.append((name, str(error)))
                continue
            self.tables += 1
            there = [column for column in mine.column_names if not column.startswith("_")]
            columns = [column for column in there if column in shown.columns or column not in self.unplaced]
            if columns != [column for column in shown.columns if column in there or column not in self.unplaced]:
                self.wrong.append(f"{name} at {moment} has {columns}, at the source {shown.columns}")
                continue
            self.cells += len(shown.rows) * len(columns)
            places = [shown.columns.index(column) for column in columns]
            found = sorted(map(_cells, zip(*(mine[column].to_pylist() for column in columns), strict=True)))
            wanted = sorted(_cells(row[place] for place in places) for row in shown.rows)
            if found != wanted:
                some = [row for row in wanted if row not in found], [row for row in found if row not in wanted]
                self.wrong.append(
                    f"{name} at {moment}: only at the source {some[0][:2]}, only in the lake {some[1][:2]}"
                )


def compare(lake: StreamLake, replica: SourceReplica, cuts: Sequence[Cut], unplaced: Collection[str] = ()) -> Compared:
    """The lake at cuts, the oldest first, beside a replica that goes from one to the next."""
    compared = Compared(unplaced=unplaced)
    for cut in cuts:
        assert cut.transaction is not None
        replica.go_to(cut.transaction)
        compared.take(lake, cut.transaction, replica.tables())
    return compared


def _cells(row: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(_cell, row))


def _cell(value: Any) -> str:  # noqa: ANN401 - any cell
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds")
    return "\0" if value is None else str(value)
