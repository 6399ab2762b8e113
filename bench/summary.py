"""Turns batches into numbers, and the numbers of several rounds into medians and spreads."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.spec import Batch
from bench.workloads import Workload

#: A batch with fewer events than this share of the requested number is left out of the latencies.
_FULL = 0.9
Metrics = dict[str, float]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is greater than or equal to at least ``share`` of the values."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, -(-int(share * len(ordered) * 1000) // 1000) - 1))]


def full_batches(batches: Sequence[Batch], work: Workload) -> list[Batch]:
    """Those after the warm-up that are as large as they should be; all after the warm-up where none is."""
    measured = list(batches[work.warm_up :])
    return [b for b in measured if b.events >= _FULL * work.batch] or measured


def summarise(batches: Sequence[Batch], work: Workload, *, busy: bool) -> Metrics:
    """Throughput and latency of one run, without its first batches.

    ``busy``: events per second of the time within batches alone; otherwise of all time from the end of the warm-up to
    the end of the last batch, including the time between batches.
    """
    measured = list(batches[work.warm_up :])
    if not measured:
        raise ValueError(f"{len(batches)} batches are not more than the {work.warm_up} of the warm-up")
    full = full_batches(batches, work)
    spent = [float(b.visible_ms - b.trigger_ms) for b in full]
    busy_ms = sum(b.visible_ms - b.trigger_ms for b in measured)
    wall_ms = measured[-1].visible_ms - batches[work.warm_up - 1].visible_ms if work.warm_up else busy_ms
    events = sum(b.events for b in measured)
    found: Metrics = {
        "batches": len(full),
        "events": events,
        "events_per_s": events * 1000 / max(1, busy_ms if busy else wall_ms),
        "batch_ms": statistics.median(spent),
        "batch_p95_ms": percentile(spent, 0.95),
        "processor_s_per_million": sum(b.processor_s for b in measured) * 1e6 / events,
    }
    for stage in sorted({stage for b in full for stage in b.stage_ms}):
        found[f"stage_{stage}_ms"] = statistics.median(b.stage_ms.get(stage, 0.0) for b in full)
    return found


def freshness(batches: Sequence[Batch], times: Mapping[tuple[int, int], int], work: Workload) -> Metrics:
    """The time from a record's own time until its batch was visible, for the live records without the first third.

    Records of equal offset in other topics are not mixed up: a live workload has one table.
    """
    begin: dict[int, int] = {}
    waits: list[tuple[int, int]] = []
    for batch in batches:
        ((_, ends),) = batch.end.items()
        for partition, end in ends.items():
            for offset in range(begin.get(partition, 0), end):
                made = times[(partition, offset)]
                waits.append((made, batch.visible_ms - made))
            begin[partition] = end
    live = [wait for _, wait in sorted(waits)[work.events + work.live_events // 3 :]]
    return {"visible_p50_ms": percentile(live, 0.5), "visible_p99_ms": percentile(live, 0.99)}


def over_rounds(runs: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """Workload -> writer -> metric -> median, least and greatest of the rounds. Runs that failed do not count."""
    grouped: dict[str, dict[str, dict[str, list[float]]]] = {}
    for run in runs:
        if run["error"]:
            continue
        writer = grouped.setdefault(run["workload"], {}).setdefault(run["writer"], {})
        for name, value in run["metrics"].items():
            writer.setdefault(name, []).append(float(value))
    return {
        workload: {
            writer: {
                name: {
                    "median": statistics.median(values),
                    "min": min(values),
                    "max": max(values),
                    "rounds": len(values),
                }
                for name, values in metrics.items()
            }
            for writer, metrics in writers.items()
        }
        for workload, writers in grouped.items()
    }
