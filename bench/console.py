"""Whether the console slows the batches of its stream: ``python -m bench.console [--pairs 20] [--every 1]``.

One stream on Spark, with a console beside it as ``monitoring.console`` starts it. The time of each batch is taken by
turns, in the order off, on, on, off: *off* with the console's process stopped, *on* with its looks, and each of four
pages and a scrape every ``--every`` seconds. Batches that a turn begins or ends in are left out. Each pair of turns
gives one ratio. Beside the ratios, which a busy machine spreads, stands the processor time that the console took in its
turns: on full cores a batch can lose no more than that.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from bench.events import DATABASE, TABLE, events
from bench.ingest import TOPIC, Options, document
from bench.kafka_load import create_topic, produce
from binlake.cli.commands.reads.console import console_beside
from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.start import run_stream
from embedded.kafka import EmbeddedKafka
from hudilake.clock import monotonic_s

PAGES = ("", "stream", f"table?table={DATABASE}.{TABLE}", "quarantine", "metrics")
#: Batches that warm up, and seconds of a turn.
WARM_UP, TURN_S = 20, 4.0


@dataclass
class Turns:
    """Batches in turns with and without a console.

    Args:
        pids: the processes that are stopped while it is off, the console's first.
        wanted: turns.
        stop: set at the end.
    """

    pids: Sequence[int]
    wanted: int
    stop: threading.Event
    times: list[tuple[bool, list[float]]] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    warmed: int = 0
    begun_s: float = 0.0
    spent_s: float = 0.0
    between: bool = True

    def note(self, event: ProgressEvent) -> None:
        """Take the time of a batch; begin the next turn when this one is over."""
        if bad := [one.error or one.warning for one in event.tables if one.error or one.warning]:
            raise RuntimeError(f"batch {event.batch_id}: {bad}")
        self.warmed += 1
        if self.warmed < WARM_UP:
            return
        if not self.between and self.times:
            self.times[-1][1].append(event.latency_ms)
        self.between = False
        if not self.times or (monotonic_s() - self.begun_s >= TURN_S and len(self.times[-1][1]) >= 3):
            self._next()

    def _next(self) -> None:
        used = psutil.Process(self.pids[0]).cpu_times()
        spent_s = used.user + used.system
        if self.times and self.times[-1][0]:
            self.shares.append((spent_s - self.spent_s) / (monotonic_s() - self.begun_s) / (os.cpu_count() or 1))
        self.spent_s = spent_s
        if len(self.times) == self.wanted:
            self.stop.set()
            return
        on = len(self.times) % 4 in (1, 2)
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT if on else signal.SIGSTOP)
        self.times.append((on, []))
        self.begun_s, self.between = monotonic_s(), True

    def ratios(self) -> list[float]:
        """On over off, of the medians of each pair of neighbours."""
        medians = [(on, statistics.median(values)) for on, values in self.times]
        pairs = [dict(medians[at : at + 2]) for at in range(0, len(medians) - 1, 2)]
        return [pair[True] / pair[False] for pair in pairs]


@contextlib.contextmanager
def visitor(address: str, every_s: float) -> Iterator[int]:
    """A process that opens each page again and again, as open browsers and Prometheus do; yields its id."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.console", "--visit", address, "--every", str(every_s)]
    ) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def visit(address: str, every_s: float) -> None:
    """Open the pages until killed."""
    while True:
        for page in PAGES:
            with contextlib.suppress(OSError):  # it is stopped in the middle of an answer
                urllib.request.urlopen(address + page, timeout=30).read()
            time.sleep(every_s / len(PAGES))


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """The median's 95 % interval, by drawing again."""
    draw = random.Random(7)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[-51]


def measure(pairs: int, per_batch: int, every_s: float) -> Turns:
    """Run the stream until there are so many pairs. ``every_s``: seconds between two looks at a page."""
    stop = threading.Event()
    with tempfile.TemporaryDirectory(prefix="binlake-console-") as place, EmbeddedKafka(Path(place) / "kafka") as kafka:
        create_topic(kafka.bootstrap_servers, TOPIC, 4)
        produce(kafka.bootstrap_servers, TOPIC, events(int(2 * pairs * TURN_S / 0.1) * per_batch))
        fields = document(Path(place), kafka.bootstrap_servers, per_batch, Options(compact_after=100))
        fields["monitoring"] = {"console": True, "console_port": 0}
        conf = Path(place) / "bench.json"
        conf.write_text(json.dumps(fields))
        settings = Settings.load(conf)
        with console_beside(settings, conf) as (address, pid), visitor(address, every_s) as visiting:
            turns = Turns((pid, visiting), 2 * pairs, stop)
            try:
                run_stream(settings, once=True, on_progress=turns.note, stop=stop)
            finally:
                for one in turns.pids:
                    os.kill(one, signal.SIGCONT)
    return turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--events", type=int, default=200, help="a batch")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two looks at a page")
    parser.add_argument("--visit", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.visit:
        visit(given.visit, given.every)
    turns = measure(given.pairs, given.events, given.every)
    ratios = turns.ratios()
    for on in (False, True):
        values = [value for one, times in turns.times if one == on for value in times]
        low, mid, high = statistics.quantiles(values, n=4)
        print(f"console {'on' if on else 'off'}: {len(values)} batches, {mid:.0f} ms ({low:.0f} to {high:.0f})")
    low, high = interval(ratios)
    print(
        f"{len(ratios)} pairs: on over off {statistics.median(ratios):.3f} (95 %: {low:.3f} to {high:.3f}), "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    print(
        f"the console's part of all cores while it is on: {statistics.median(turns.shares):.1%} "
        f"({min(turns.shares):.1%} to {max(turns.shares):.1%})"
    )


if __name__ == "__main__":
    main()
