"""``binlake dump``: writes Kafka's records to files by hour or day, each record to exactly one file.

The records that are dumped together are a roll: a range of offsets of every partition. Its ranges are saved in the
dump's own directory before the first of its files is written. If a run dies in between, the next run repeats the same
roll before anything else: the same ranges give files of the same names and bytes, and existing files are not written
again. A reader that lists the directories therefore never sees a record twice.

The position file (``_binlake/<name>/position.json``) also holds the positions below which everything is in files. If it
is lost, the position is derived from the files' names: the newest range of every partition may be incomplete, and is
repeated.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from binlake.decode.changes import RawRecords
from binlake.position.lease import StreamLease
from binlake.position.state_document import StateDocument
from binlake.settings import Settings
from binlake.source.dump_layout import safe_topic
from binlake.source.dump_source import KafkaSource, RecordSource
from binlake.source.dump_write import DumpFormat, NewFile, range_of
from binlake.source.offsets import NO_OFFSETS, NO_RANGES, OffsetRange, Offsets, Ranges
from binlake.source.positions import TopicIds, check_topic_ids
from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError
from hudilake.storage import Storage, open_storage

STATE = "_binlake"
_POSITION = "position.json"
_DOCUMENT = StateDocument(
    _POSITION,
    "the dump's position",
    "delete the file: the position is then worked out from the names of the dumped files",
)
_PARALLEL_WRITES = 8
_POLL_S = 1.0
_LOOK_S = 30.0
_RECORD_BYTES = 600.0


@dataclass(frozen=True)
class RollReport:
    """A completed roll: its ranges, the files with their records, bytes written, and the offsets not dumped yet."""

    ranges: Ranges
    files: tuple[tuple[str, int], ...]
    size: int
    lag: int
    repeated: bool = False

    @property
    def records(self) -> int:
        """The number of records in the roll."""
        return sum(count for _, count in self.files)


@dataclass
class _Position:
    """``done``: everything below is in files. ``roll``: the ranges begun after that. ``ids``: of the topics."""

    done: Offsets = NO_OFFSETS
    roll: Ranges = NO_RANGES
    ids: TopicIds = field(default_factory=dict)


class DumpService:
    """One dump of a stream's topics.

    Args:
        settings: of the stream.
        source: the source of the records; None for Kafka.
        storage: the dump's root; None for the root in the settings.
    """

    def __init__(self, settings: Settings, source: RecordSource | None = None, storage: Storage | None = None) -> None:
        self._settings = settings
        self._source = source or KafkaSource(settings)
        self._storage = storage or _root(settings)
        self._state = self._storage.sub(f"{STATE}/{settings.name}")
        self._format = DumpFormat(settings.dump, settings.kafka.ddl_topics)
        self._lease = StreamLease(self._state, f"{settings.name}.dump")
        self._mean_bytes = _RECORD_BYTES
        self._position, self._looked_s = _Position(), 0.0

    def run(
        self,
        *,
        once: bool,
        on_roll: Callable[[RollReport], None] = lambda report: None,
        stop: threading.Event | None = None,
    ) -> None:
        """Dump until ``stop`` is set; with ``once``, until the records that existed at the start are dumped.

        ``on_roll`` is called after every roll. Raises LostOwnershipError if another dump of the stream is running,
        BadInputError for offsets that Kafka has deleted, ConfigError, TransientError; the next run continues the dump.
        """
        stopped = stop or threading.Event()
        with self._lease:
            self._open(on_roll)
            self._look()
            ends = self._source.ends(self._position.done) if once else None
            last = monotonic_s()
            while not stopped.is_set():
                if monotonic_s() - self._looked_s > _LOOK_S:
                    self._look()
                reach = ends or self._source.ends(self._position.done)
                ranges = self._position.done.ranges_to(reach)
                if once and not ranges:
                    break
                if ranges and (once or self._is_due(ranges, monotonic_s() - last)):
                    self._lease.check()
                    on_roll(self._roll(ranges, reach))
                    last = monotonic_s()
                elif not once:
                    stopped.wait(min(_POLL_S, self._settings.dump.roll_seconds))
            self._save(NO_RANGES)

    def _is_due(self, ranges: Ranges, waited_s: float) -> bool:
        rules = self._settings.dump
        return waited_s >= rules.roll_seconds or ranges.records * self._mean_bytes >= rules.roll_bytes

    def _look(self) -> None:
        """Add new topics and partitions, and check that no topic was replaced."""
        self._position.done = self._position.done.merge(self._source.start(self._position.done))
        ids = self._source.ids(sorted(self._position.done))
        check_topic_ids(self._position.ids, ids)
        self._position.ids |= ids
        self._looked_s = monotonic_s()

    # -- position -------------------------------------------------------------------------------------------------

    def _open(self, on_roll: Callable[[RollReport], None]) -> None:
        """Load the position, and complete the roll that a dead run left."""
        self._position = self._load() or self._position_of_names()
        if self._position.roll:
            on_roll(self._write(self._position.roll, self._source.read(self._position.roll), repeated=True))

    def _load(self) -> _Position | None:
        def parse(fields: dict[str, Any]) -> _Position:
            roll = Ranges(OffsetRange(*r) for r in fields["roll"])
            return _Position(Offsets.from_json(fields["done"]), roll, dict(fields["topic_ids"]))

        return _DOCUMENT.read(self._state, parse)

    def _position_of_names(self) -> _Position:
        """The position derived from the files' names. Lists the whole dump."""
        newest: dict[tuple[str, int], tuple[int, int]] = {}
        for info in self._storage.walk(""):
            named = None if info.path.startswith(f"{STATE}/") else range_of(info.path.rpartition("/")[2])
            if named is not None:
                topic, partition, first, end = named
                newest[topic, partition] = max((first, end), newest.get((topic, partition), (0, 0)))
        topics = list(self._source.start(NO_OFFSETS)) if newest else []
        known = {spelled: topic for topic in topics for spelled in (topic, safe_topic(topic))}
        roll = Ranges(OffsetRange(known[t], p, first, end) for (t, p), (first, end) in newest.items() if t in known)
        return _Position(roll.starts(), roll)

    def _save(self, roll: Ranges) -> None:
        ranges = [[r.topic, r.partition, r.start, r.end] for r in roll]
        data: dict[str, object] = {"version": _DOCUMENT.version, "done": self._position.done.to_json(), "roll": ranges}
        data["topic_ids"] = self._position.ids
        self._state.write(_POSITION, json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode())
        self._position.roll = roll

    # -- a roll ---------------------------------------------------------------------------------------------------

    def _roll(self, ranges: Ranges, ends: Offsets) -> RollReport:
        """Dump the ranges, up to the size of one roll."""
        chunks, taken = self._take(ranges)
        self._save(taken)
        return self._write(taken, iter(chunks), ends)

    def _take(self, ranges: Ranges) -> tuple[list[RawRecords], Ranges]:
        """Records up to the size of a roll, and their ranges."""
        chunks: list[RawRecords] = []
        size = 0
        reading = self._source.read(ranges)
        for chunk in reading:
            chunks.append(chunk)
            size += _size(chunk)
            if size >= self._settings.dump.roll_bytes:
                break
        else:
            return chunks, ranges
        reached = Offsets.of_places((c.topic, c.partition, int(c.offsets[-1]) + 1) for c in chunks)
        cut = (OffsetRange(r.topic, r.partition, r.start, reached.at(r.topic, r.partition)) for r in ranges)
        return chunks, Ranges(r for r in cut if len(r))

    def _write(
        self,
        ranges: Ranges,
        records: Iterator[RawRecords],
        ends: Offsets = NO_OFFSETS,
        *,
        repeated: bool = False,
    ) -> RollReport:
        by_place: dict[tuple[str, int], list[RawRecords]] = {}
        size = count = 0
        for chunk in records:
            by_place.setdefault((chunk.topic, chunk.partition), []).append(chunk)
            size, count = size + _size(chunk), count + len(chunk)
        self._mean_bytes = size / count if count else self._mean_bytes
        files = [f for r in ranges for f in self._format.files(r, by_place.get((r.topic, r.partition), []))]

        def put(file: NewFile) -> int:
            if repeated and self._storage.stat(file.path) is not None:
                return 0  # a file that exists is complete
            data = self._format.encode(file)
            self._storage.write(file.path, data)
            return len(data)

        with ThreadPoolExecutor(_PARALLEL_WRITES) as pool:
            written = sum(pool.map(put, files))
        self._position.done = self._position.done.merge(ranges.ends())
        lag = self._position.done.ranges_to(ends).records
        return RollReport(ranges, tuple((f.path, f.records) for f in files), written, lag, repeated)


def _size(chunk: RawRecords) -> int:
    return sum(len(v) for v in chunk.values if v is not None) + sum(len(k) for k in chunk.keys if k is not None)


def _root(settings: Settings) -> Storage:
    if settings.dump.uri is None:
        raise ConfigError("dump.uri is not set", do_next="set dump.uri in the settings to the directory for dumps")
    return open_storage(settings.dump.uri, settings.dump.storage_options(settings.dump.uri, settings.lake))
