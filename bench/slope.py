"""How the time of a small batch goes with the age of its table: thousands of commits, everything at its defaults,
compaction, cleaning and archival among them. ``python -m bench.slope [--commits 2000] [--events 500]``.

A probe, the same piece of work after every batch, tells how busy the machine was: the slope of the batches over the
probe is told beside that of the batches.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.drift import WINDOW, Drift, drift
from bench.events import events
from bench.ingest import TOPIC, Options, settings
from bench.kafka_load import create_topic, produce
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.start import run_stream
from embedded.kafka import EmbeddedKafka
from hudilake.clock import monotonic_s

#: Batches that warm up the session.
WARM_UP = 50
_PROBE = np.random.default_rng(7).integers(0, 1 << 40, 60_000)


@dataclass(frozen=True)
class Batch:
    """Milliseconds of the batch, its commit, and the probe after it."""

    batch: float
    commit: float
    probe: float


def probe_ms() -> float:
    """The time of a fixed piece of work, in milliseconds."""
    started = monotonic_s()
    for _ in range(2):
        np.sort(_PROBE, kind="stable")
    return (monotonic_s() - started) * 1000


def measure(commits: int, per_batch: int) -> list[Batch]:
    """Commit so many batches; returns those after the warm-up."""
    seen: list[Batch] = []

    def note(event: ProgressEvent) -> None:
        bad = [t.error or t.warning for t in event.tables if t.error or t.warning]
        if bad:
            raise RuntimeError(f"batch {event.batch_id}: {bad}")
        seen.append(Batch(event.latency_ms, event.stage_ms["commit"], probe_ms()))
        if len(seen) % WINDOW == 0:
            print(_line(len(seen), seen[-WINDOW:]), flush=True)

    with tempfile.TemporaryDirectory(prefix="binlake-slope-") as place, EmbeddedKafka(Path(place) / "kafka") as kafka:
        create_topic(kafka.bootstrap_servers, TOPIC, 4)
        produce(kafka.bootstrap_servers, TOPIC, events((commits + WARM_UP) * per_batch))
        stream = settings(Path(place), kafka.bootstrap_servers, per_batch, Options(compact_after=100))
        run_stream(stream, once=True, on_progress=note)
    return seen[WARM_UP:]


def _line(number: int, window: Sequence[Batch]) -> str:
    cells = [statistics.median(getattr(b, name) for b in window) for name in ("batch", "commit", "probe")]
    return f"| {number} | {' | '.join(f'{cell:.1f}' for cell in cells)} |"


def slope(values: Sequence[float]) -> Drift:
    """The drift of the medians of windows."""
    windows = [values[at : at + WINDOW] for at in range(0, len(values) - WINDOW + 1, WINDOW)]
    return drift([(n, statistics.median(window)) for n, window in enumerate(windows)])


def told(name: str, found: Drift) -> str:
    """One line: the slope as a share of the median, with its interval of 95 %."""
    share = [100 * s / found.median for s in (found.per_1000, found.low, found.high)]
    return "{}: {:+.1f} % per 1,000 commits (95 %: {:+.1f} to {:+.1f}), median {:.2f}".format(
        name, *share, found.median
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--events", type=int, default=500, help="a batch")
    given = parser.parse_args()
    print("| commits | batch ms | commit ms | probe ms |\n| --- | --- | --- | --- |", flush=True)
    batches = measure(given.commits, given.events)
    print(told("batch ms", slope([b.batch for b in batches])))
    print(told("commit ms", slope([b.commit for b in batches])))
    print(told("batch over probe", slope([b.batch / b.probe for b in batches])))


if __name__ == "__main__":
    main()
