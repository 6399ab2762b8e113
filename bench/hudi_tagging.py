"""How long Hudi takes to find the file groups of a batch's rows, from Spark's own event log.

Hudi tags lazily: the lookup runs in the jobs up to the one that builds the workload profile (measured, Hudi Spark
1.2.0: its description begins with ``Building workload profile``). The stages that read Kafka are left out.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from bench.spec import Spec

_BATCH, _DESCRIPTION = "streaming.sql.batchId", "spark.job.description"
_PROFILE, _SOURCE = "Building workload profile", "KafkaSourceRDD"
#: Begins the names of the executors of Hudi's metadata table, which has a workload profile of its own.
_METADATA = "SparkMetadataTable"
Interval = tuple[int, int]


def tags(spec: Spec) -> bool:
    """Whether this run's time of tagging is to be found: Hudi's, with an index that looks keys up."""
    return spec.writer == "hudi" and bool(spec.workload.loaded) and spec.workload.index != "bucket" and not spec.ageing


def logged(place: Path) -> dict[str, str]:
    """The Spark properties that make a run write the event log."""
    log = place / "events"
    log.mkdir(parents=True, exist_ok=True)
    return {"spark.eventLog.enabled": "true", "spark.eventLog.dir": log.as_uri()}


def tagging_ms(place: Path, batches: Collection[int]) -> float:
    """The median of batches, by their numbers, in milliseconds. Raises ValueError: one of them has no profile."""
    stages = _tagging_stages(_events(place))
    if not batches or set(batches) - set(stages):
        raise ValueError(f"no workload profile of some of the batches {sorted(batches)} in {place / 'events'}")
    return statistics.median(_union(stages[batch]) for batch in batches)


def _events(place: Path) -> list[dict[str, Any]]:
    lines = [line for file in (place / "events").iterdir() for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def _tagging_stages(events: list[dict[str, Any]]) -> dict[int, list[Interval]]:
    """Batch -> begin and end of its stages up to the workload profile, without those that read Kafka."""
    ran = {
        info["Stage ID"]: (info["Submission Time"], info["Completion Time"])
        for info in (e["Stage Info"] for e in events if e["Event"] == "SparkListenerStageCompleted")
        if "Submission Time" in info and all(rdd["Name"] != _SOURCE for rdd in info["RDD Info"])
    }
    found: dict[int, list[Interval]] = {}
    for batch, jobs in _jobs(events).items():
        told = [job["Properties"].get(_DESCRIPTION, "") for job in jobs]
        profiles = [n for n, text in enumerate(told) if _PROFILE in text and not text.startswith(_METADATA)]
        if profiles:
            stages = {stage for job in jobs[: profiles[0] + 1] for stage in job["Stage IDs"]}
            found[batch] = [ran[stage] for stage in stages if stage in ran]
    return found


def _jobs(events: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """Batch -> its jobs in order."""
    found: dict[int, list[dict[str, Any]]] = {}
    for event in events:
        if event["Event"] == "SparkListenerJobStart" and _BATCH in event.get("Properties", {}):
            found.setdefault(int(event["Properties"][_BATCH]), []).append(event)
    return found


def _union(intervals: list[Interval]) -> int:
    """The time that the intervals cover together."""
    return sum(end - begin for begin, end in _joined(intervals))


def _joined(intervals: list[Interval]) -> Iterator[Interval]:
    at: Interval | None = None
    for begin, end in sorted(intervals):
        if at is None or begin > at[1]:
            if at is not None:
                yield at
            at = (begin, end)
        else:
            at = (at[0], max(at[1], end))
    if at is not None:
        yield at
