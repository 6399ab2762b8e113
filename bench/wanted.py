"""What the tables of a workload must hold, worked out once and kept beside the runs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from bench.events import Shape
from bench.kafka_load import table_events
from bench.model import expected, expected_of_loaded, newest
from bench.workloads import Workload


def wanted_of(work: Workload, place: Path) -> dict[str, Any]:
    """``tables``: the digest of each table; ``bytes``: those of the values of the measured events.

    ``place``: where it is kept.
    """
    file = place / "models" / f"{label_of(of_any_kind(work))}.json"
    if file.exists():
        return dict(json.loads(file.read_text()))
    size, tables = 0, {}
    for shape in work.shapes():
        records = _Sized(work, shape)
        wanted = expected_of_loaded(records, shape, work.loaded) if work.loaded else expected(newest(records), shape)
        tables[shape.table] = dataclasses.asdict(wanted)
        size += records.size
    file.parent.mkdir(parents=True, exist_ok=True)
    made: dict[str, Any] = {"bytes": size, "tables": tables}
    file.write_text(json.dumps(made))
    return made


def label_of(work: Workload) -> str:
    """A label that changes with the workload, so that results kept between calls are never mixed up."""
    return f"{work.name}-{sha256(repr(work).encode()).hexdigest()[:8]}"


def of_any_kind(work: Workload) -> Workload:
    """The workload without the kind of its table: the events are the same, and so is what the table must hold."""
    if not work.loaded:
        return work
    return dataclasses.replace(work, name="loaded", index="", table_type="")


class _Sized:
    """A table's events; ``size``: the bytes of the values after the earlier commits."""

    def __init__(self, work: Workload, shape: Shape) -> None:
        self._work, self._shape, self.size = work, shape, 0

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for number, (key, value) in enumerate(table_events(self._work, self._shape)):
            self.size += len(value) if number >= self._work.age_events else 0
            yield key, value
