"""The input and output of a run: JSON between the measuring program and the measured process."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.events import DATABASE, Shape
from bench.tree import processor_s
from bench.workloads import Workload
from binlake.source.offsets import Offsets
from hudilake.clock import now_ms

#: The Spark master of every session, the same for all writers.
MASTER = "local[2]"
HEAP_MB = 3072
SPARK_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.minBatchesToRetain": "5000",  # the offsets of all batches are read afterwards
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # no checksum beside each file of a checkpoint: binlake's own default, and less work for every writer
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.scheduler.mode": "FAIR",
}


@dataclass(frozen=True)
class Spec:
    """One run.

    Args:
        writer, workload: their names.
        bootstrap: the broker.
        place: the run's directory, with ``lake``, ``checkpoint``, ``batches.jsonl``, ``done`` and ``digests.json``.
        until: number of events after which a live run ends; 0: it ends when all events are applied.
        ageing: create the earlier commits of an old table, in batches of ``age_batch`` events.
        heap_mb: the driver's heap, in MB.
        prefix: the prefix of the topics' names.
    """

    writer: str
    workload: Workload
    bootstrap: str
    place: Path
    until: int = 0
    ageing: bool = False
    heap_mb: int = HEAP_MB
    prefix: str = ""

    @property
    def lake(self) -> Path:
        return self.place / "lake"

    @property
    def checkpoint(self) -> Path:
        return self.place / "checkpoint"

    @property
    def batch(self) -> int:
        return self.workload.age_batch if self.ageing else self.workload.batch

    def topics(self) -> dict[str, Shape]:
        """Topic -> the shape of its events."""
        return {f"{self.prefix or self.workload.name}.{DATABASE}.{s.table}": s for s in self.workload.shapes()}

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self) | {"place": str(self.place)})

    @staticmethod
    def from_json(text: str) -> Spec:
        told = json.loads(text)
        work = told["workload"]
        told["workload"] = Workload(**work | {"shape": Shape(**work["shape"])})
        return Spec(**told | {"place": Path(told["place"])})


@dataclass(frozen=True)
class Batch:
    """One batch: its number of events, when Spark's trigger fired, when the last table's commit was visible.

    ``processor_s``: processor seconds of the run's processes since the batch before.
    """

    number: int
    events: int
    trigger_ms: int
    visible_ms: int
    end: Offsets
    stage_ms: Mapping[str, float]
    processor_s: float = 0.0

    def to_json(self) -> str:
        return json.dumps(vars(self) | {"end": self.end.to_json()})

    @staticmethod
    def from_json(text: str) -> Batch:
        told: dict[str, Any] = json.loads(text)
        told["end"] = Offsets.from_json(told["end"])
        return Batch(**told)


class Recorder:
    """Appends each batch to ``batches.jsonl`` as it becomes visible."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._file = spec.place / "batches.jsonl"
        old = bool(spec.workload.age) and not spec.ageing and not spec.workload.loaded
        self.done = spec.workload.age_events if old else 0
        self._spent_s = 0.0

    def begin(self) -> None:
        """Leave out of the next batch's processor time what was spent since the last batch."""
        self._spent_s = processor_s()

    def note(self, number: int, end: Offsets, trigger_ms: int, stages: Mapping[str, float] | None = None) -> bool:
        """Record a batch that is now visible; returns whether all events of the run are applied."""
        visible, reached, spent_s = now_ms(), end.total, processor_s()
        events = reached - self.done
        self.done = reached
        batch = Batch(number, events, trigger_ms, visible, end, stages or {}, spent_s - self._spent_s)
        self._spent_s = spent_s
        with self._file.open("a") as out:
            out.write(batch.to_json() + "\n")
        return bool(self._spec.until) and reached >= self._spec.until


def read_batches(place: Path) -> list[Batch]:
    """The batches that a run has recorded so far, in order."""
    file = place / "batches.jsonl"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [Batch.from_json(line) for line in lines]
