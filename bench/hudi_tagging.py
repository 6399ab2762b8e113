"""How long Hudi takes to find the file groups of a batch's rows, from Spark's own event log.

Hudi tags lazily: the lookup runs in the jobs up to the one that builds the workload profile (measured, Hudi Spark
1.2.0: its description begins with ``Building workload profile``). The stages that read Kafka are left out.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.spec import Spec

_BATCH, _DESCRIPTION = "streaming.sql.batchId", "spark.job.description"
_PROFILE, _SOURCE = "workload profile", "KafkaSourceRDD"
Interval = tuple[int, int]


def tags(spec: Spec) -> bool:
    """Whether this run's time of tagging is to be found: Hudi's, with an index that looks keys up."""
    return spec.writer == "hudi" and bool(spec.workload.loaded) and spec.workload.index != "bucket" and not spec.ageing


def logged(place: Path) -> dict[str, str]:
    """The Spark properties that make a run write the event log."""
    log = place / "events"
    log.mkdir(parents=True, exist_ok=True)
    return {"spark.eventLog.enabled": "true", "spark.eventLog.dir": log.as_uri()}


def tagging_ms(place: Path, skip: int) -> float:
    """The median of the batches after the first ``skip``, milliseconds. Raises ValueError: too few have a profile."""
    spans = [_union(intervals) for _, intervals in sorted(_tagging_stages(_events(place)).items())]
    if len(spans) <= skip:
        raise ValueError(f"{len(spans)} batches with a workload profile in {place / 'events'}")
    return statistics.median(spans[skip:])


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
        profiles = [n for n, job in enumerate(jobs) if _PROFILE in job["Properties"].get(_DESCRIPTION, "")]
        if profiles:
            stages = {stage for job in jobs[: profiles[-1] + 1] for stage in job["Stage IDs"]}
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
