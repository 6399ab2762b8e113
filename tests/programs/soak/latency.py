"""Latencies over a long run: percentiles by window, with and without a compaction beside, and whether they drift.

Robust all through: medians and Theil and Sen's slope, so that one window in which the machine was busy with something
else decides nothing. A probe (a fixed piece of work, timed again and again) says how busy the machine was, and drift is
judged by the windows in which it was not.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.drift import LEAST_WINDOWS, WINDOW, drift
from binlake.stream.monitoring.progress import ProgressEvent

#: Batches after a start that warm the process up and are left out.
WARM_UP = 20
#: A window counts as quiet while its probe is not that much above those of the quietest quarter.
_BUSY = 1.25


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch that committed something. ``instants``: its commits; ``probe_ms``: the latest probe before its end."""

    start: int
    batch_ms: float
    commit_ms: float
    events: int
    instants: tuple[str, ...]
    probe_ms: float


@dataclass
class Recorder:
    """Takes the progress of one process after the other. ``warnings``: what failed, of a table or of its upkeep."""

    probe_ms: float = 0.0
    start: int = 0
    batches: list[Batch] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    commits: int = 0

    def begin(self) -> None:
        """A process was started."""
        self.start += 1

    def take(self, event: ProgressEvent) -> None:
        """One progress line."""
        instants = tuple(t.commit_instant for t in event.tables if t.commit_instant is not None)
        self.warnings += [f"{t.table}: {t.error or t.warning}" for t in event.tables if t.error or t.warning]
        if instants:
            self.commits += 1
            commit_ms = event.stage_ms.get("commit", 0.0)
            self.batches.append(
                Batch(self.start, event.latency_ms, commit_ms, event.events_read, instants, self.probe_ms)
            )

    def warm(self) -> list[Batch]:
        """All batches but the first ones of each process."""
        seen: dict[int, int] = {}
        kept = []
        for batch in self.batches:
            seen[batch.start] = seen.get(batch.start, 0) + 1
            if seen[batch.start] > WARM_UP:
                kept.append(batch)
        return kept


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50, p95, p99 and how many values there were; {} of none."""
    if not values:
        return {}
    ranked = sorted(values)
    found = {
        f"p{p}": round(ranked[min(len(ranked) - 1, math.ceil(p / 100 * len(ranked)) - 1)], 1) for p in (50, 95, 99)
    }
    return {**found, "count": len(ranked)}


def report(batches: Sequence[Batch], beside: Callable[[Batch], bool]) -> dict[str, Any]:
    """The whole report as JSON values.

    Args:
        batches: warm ones, in order.
        beside: whether a compaction was pending or at work during a batch.
    """
    windows = [list(batches[at : at + WINDOW]) for at in range(0, len(batches) - WINDOW + 1, WINDOW)]
    quiet = _quiet(windows)
    drifts = {}
    for name in ("batch_ms", "commit_ms", "probe_ms"):
        medians = [(n, statistics.median(getattr(b, name) for b in window)) for n, window in enumerate(windows)]
        drifts[name] = _drift([point for point in medians if point[0] in quiet])
        drifts[f"{name}, busy windows too"] = _drift(medians)
    return {
        "batches": len(batches),
        "window": WINDOW,
        "all": _told(batches, beside),
        "windows": [_told(window, beside) for window in windows],
        "drift": drifts,
    }


def _quiet(windows: Sequence[Sequence[Batch]]) -> set[int]:
    """The windows in which the machine was about as fast as it can be: latencies of others do not compare."""
    probes = [statistics.median(b.probe_ms for b in window) for window in windows]
    if len(probes) < LEAST_WINDOWS:
        return set(range(len(probes)))
    usual = statistics.quantiles(probes, n=4)[0]
    return {n for n, probe in enumerate(probes) if probe <= _BUSY * usual}


def _drift(medians: Sequence[tuple[int, float]]) -> dict[str, Any]:
    found = drift(medians)
    numbers = {name: round(value, 3) for name, value in asdict(found).items()}
    return {**numbers, "grown": round(found.grown(found.per_1000), 3), "verdict": found.verdict}


def _told(batches: Sequence[Batch], beside: Callable[[Batch], bool]) -> dict[str, Any]:
    groups = {True: [b for b in batches if beside(b)], False: [b for b in batches if not beside(b)]}
    return {
        "batch_ms": percentiles([b.batch_ms for b in batches]),
        "commit_ms": percentiles([b.commit_ms for b in batches]),
        "batch_ms_beside_compaction": percentiles([b.batch_ms for b in groups[True]]),
        "batch_ms_without": percentiles([b.batch_ms for b in groups[False]]),
        "commit_ms_beside_compaction": percentiles([b.commit_ms for b in groups[True]]),
        "commit_ms_without": percentiles([b.commit_ms for b in groups[False]]),
        "events": statistics.median(b.events for b in batches) if batches else 0,
        "probe_ms": round(statistics.median(b.probe_ms for b in batches), 2) if batches else 0.0,
    }


def lines(told: dict[str, Any]) -> list[str]:
    """The report as a Markdown table and the verdicts."""
    found = [
        f"| batches (windows of {told['window']}) | batch ms p50/p95/p99 | commit ms p50/p95/p99 | beside compaction: "
        "p50 of batch, of commit (count) | without one | events | probe ms |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    rows = [(f"{n * told['window'] + 1}-{(n + 1) * told['window']}", w) for n, w in enumerate(told["windows"])]
    for name, window in [*rows, ("all", told["all"])]:
        cells = [name, _three(window["batch_ms"]), _three(window["commit_ms"])]
        cells += [_pair(window, "beside_compaction"), _pair(window, "without")]
        found.append("| " + " | ".join([*cells, f"{window['events']:g}", f"{window['probe_ms']:g}"]) + " |")
    return found + [_drift_line(name, d) for name, d in told["drift"].items()]


def _drift_line(name: str, d: dict[str, Any]) -> str:
    if d["windows"] < LEAST_WINDOWS:
        return f"{name}: {d['verdict']}"
    slope = f"{d['per_1000']:+.2f} per 1,000 batches, 95 % {d['low']:+.2f} to {d['high']:+.2f}"
    ends = f"first fifth {d['first_fifth']:.2f}, last fifth {d['last_fifth']:.2f}"
    return f"{name} ({d['windows']} windows): {d['verdict']}; {slope}; {ends}, quartile distance {d['spread']:.2f}"


def _three(p: dict[str, float]) -> str:
    return f"{p['p50']:.0f}/{p['p95']:.0f}/{p['p99']:.0f}" if p else "-"


def _pair(window: dict[str, Any], which: str) -> str:
    batch, commit = window[f"batch_ms_{which}"], window[f"commit_ms_{which}"]
    return f"{batch['p50']:.0f}, {commit['p50']:.0f} ({batch['count']})" if batch else "-"
