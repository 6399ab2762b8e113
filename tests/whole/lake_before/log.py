"""Topics held in memory with a time for every record, and as JSON."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from binlake.decode.changes import RawRecords
from binlake.rows.tasks.boundary import Survey
from binlake.source.offsets import OffsetMap, OffsetRange
from binlake.stream.transactions import survey_records
from tests.binlake.stream.topic_log import TopicLog

_FIRST_MS = 1_760_000_000_000
#: A topic, a partition, a time in milliseconds, and key and value as text.
Stored = tuple[str, int, int, str | None, str | None]


@dataclass
class TimedLog(TopicLog):
    """A log whose records are a millisecond apart, in the order in which they were added."""

    times: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    now_ms: int = _FIRST_MS

    def add(
        self, topic: str, value: dict[str, Any] | bytes | None, key: dict[str, Any] | None, partition: int = 0
    ) -> None:
        """Append one record."""
        super().add(topic, value, key, partition)
        self.now_ms += 1
        self.times.setdefault((topic, partition), []).append(self.now_ms)

    def add_again(self, topic: str, partition: int, offset: int) -> None:
        """Append a record that is there once more, as a connector does that has died."""
        records = self.records[topic, partition]
        records.append(records[offset])
        self.now_ms += 1
        self.times[topic, partition].append(self.now_ms)

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        """The records of the ranges."""
        for r in ranges:
            held = self.records[r.topic, r.partition][r.start : r.end]
            times = np.array(self.times[r.topic, r.partition][r.start : r.end], dtype=np.int64)
            offsets = np.arange(r.start, r.end, dtype=np.int64)
            yield RawRecords(r.topic, r.partition, offsets, times, [k for k, _ in held], [v for _, v in held])

    def survey(self, topic: str, ranges: Sequence[OffsetRange]) -> Survey:
        """What the records of the ranges say of transactions."""
        return survey_records(topic, self.read(ranges))

    def offset_at(self, topic: str, partition: int, time_ms: int) -> int:
        """The first offset of that time or later."""
        return bisect.bisect_left(self.times.get((topic, partition), []), time_ms)

    def stored(self) -> list[Stored]:
        """All records, by time."""
        rows = [
            (topic, partition, ms, _text(key), _text(value))
            for (topic, partition), records in self.records.items()
            for ms, (key, value) in zip(self.times[topic, partition], records, strict=True)
        ]
        return sorted(rows, key=lambda row: row[2])

    def newest(self, count: int) -> list[tuple[str, int, int]]:
        """Topic, partition and offset of the newest records, in their order."""
        places = [(ms, topic, p, at) for (topic, p), times in self.times.items() for at, ms in enumerate(times)]
        return [(topic, partition, at) for _, topic, partition, at in sorted(places)[-count:]]

    @staticmethod
    def restored(rows: Sequence[Stored]) -> TimedLog:
        """The log that ``stored`` gave."""
        log = TimedLog()
        for topic, partition, ms, key, value in rows:
            record = tuple(None if text is None else text.encode() for text in (key, value))
            log.records.setdefault((topic, partition), []).append((record[0], record[1]))
            log.times.setdefault((topic, partition), []).append(ms)
            log.now_ms = max(log.now_ms, ms)
        return log

    def after(self, start: OffsetMap, part: int, parts: int) -> dict[str, dict[int, int]]:
        """The ends of the ``part``-th of ``parts`` equal batches (from 1) from ``start`` to the end of the log."""
        ends: dict[str, dict[int, int]] = {}
        for (topic, partition), records in self.records.items():
            first, end = start.get(topic, {}).get(partition, 0), len(records)
            ends.setdefault(topic, {})[partition] = first + (end - first) * part // parts
        return ends


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
