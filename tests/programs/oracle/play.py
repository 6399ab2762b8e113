"""The ways in which a recording is played into binlake, without Spark or Kafka.

* ``live``: records come in small portions in the order of time, DDL in step with them.
* ``backlog``: all of it is there before the stream first starts.
* ``kills``: as live, and the storage dies at random calls; the process starts again, at times without its ledger.
"""

from __future__ import annotations

import json
import random
import shutil
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.recovery import recover
from binlake.tables.lake import Lake
from demo.truth import TruthTable
from hudilake.storage import Storage, open_storage
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, services
from tests.programs.oracle.forms import Encoder
from tests.programs.oracle.recording import Recording

STREAM = "oracle"
WAYS = ("live", "backlog", "kills")
_OPTIONS = {"fsync": "false"}
_STEPS = 8
_KILLS = 6
_TRIES = 4


@dataclass
class Stream:
    """A stream of a recording into a lake at ``place``; ``random`` decides portions and deaths.

    ``told``: the progress of all batches. ``fate``: when the storage dies next.
    """

    recording: Recording
    place: Path
    encoder: Encoder
    random: random.Random
    partitions: int = 1
    fate: Fate = field(default_factory=Fate)
    told: list[ProgressEvent] = field(default_factory=list)
    delivered: int = 0
    log: TopicLog = field(default_factory=TopicLog)
    ddl: list[bytes] = field(default_factory=list)
    runner: BatchRunner | None = None
    registry: SchemaRegistry | None = None

    @property
    def truth(self) -> tuple[TruthTable, ...]:
        """The server's tables."""
        return self.recording.truth

    @property
    def schemas(self) -> SchemaRegistry:
        """Of the running process."""
        assert self.registry is not None
        return self.registry

    def behind(self) -> Iterable[SourceTable]:
        """The tables that could not be brought up to the stream's position."""
        assert self.runner is not None
        return self.runner.ledger.behind

    def columns_ever(self) -> frozenset[str]:
        """The names of all columns that the recording has."""
        return self.recording.columns_ever()

    def settings(self) -> Settings:
        """One stream over all tables."""
        document: dict[str, Any] = {
            "name": STREAM,
            "lake": {"uri": str(self.place), "options": _OPTIONS},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": r"s\..*"},
            "tables": {"defaults": {"buckets": 2, "compaction": {"after_commits": 4}}},
            "quarantine": {"max_records_per_batch": 100_000, "max_fraction": 1.0},
        }
        return Settings.parse(json.dumps(document | self.encoder.settings()))

    def start(self) -> None:
        """A new process: what the DDL topic has is read anew."""
        config = self.settings()
        root: Storage = DyingStore(open_storage(str(self.place), _OPTIONS), self.fate)
        lake, state = Lake(root), root.sub(f".binlake/{STREAM}")
        ledger = Ledger.load(state, config.name) or recover(config, root, lake)
        for source in ledger.tables:
            lake.get(config.table_rules(source))
        self.registry = SchemaRegistry(config)
        self.registry.learn(self.ddl)
        self.runner = BatchRunner(config, lake, state, ledger, self.registry, services(), ends=self._ends)

    def _ends(self, known: Offsets) -> Offsets:
        """The ends of these topics: nothing more is on its way."""
        ends = self.log.end()
        return Offsets({topic: ends[topic] for topic in known if topic in ends})

    def stop(self) -> None:
        """The process ends."""
        if self.runner is not None:
            self.runner.close()
        self.runner = self.registry = None

    def deliver(self, count: int) -> None:
        """The next records arrive in the topics."""
        news = self.recording.records[self.delivered : self.delivered + count]
        for at, record in enumerate(news, self.delivered):
            key, value = self.encoder.encoded(record)
            if record.topic is None:
                assert value is not None
                self.ddl.append(value)
                if self.registry is not None:
                    self.registry.learn([value])
            else:
                partition = (zlib.crc32(record.key.encode()) if record.key else at) % self.partitions
                self.log.records.setdefault((record.topic, partition), []).append((key, value))
        self.delivered += len(news)

    def run(self) -> None:
        """One batch of what is there. Raises LakeError."""
        assert self.runner is not None
        event = self.runner.run(len(self.told), self.log.end(), 0, LocalEngine(self.log))
        self.told.append(event)

    def finish(self) -> None:
        """As at the end of a run: DDL that came without data, and tables that are behind. Raises LakeError."""
        self.run()
        assert self.runner is not None
        for turn in range(_TRIES + len(self.ddl)):  # each statement may wait for the rows before it
            if turn >= _TRIES and not self.runner.ledger.behind:
                break
            settled = self.runner.settle()
            self.told += [settled] if settled is not None else []
            for source in list(self.runner.ledger.behind):
                caught_up = self.runner.catch_up(source, LocalEngine(self.log))
                self.told += [caught_up] if caught_up is not None else []


def play(stream: Stream, way: str) -> None:
    """Play the whole recording. Raises what the stream raises."""
    ways: dict[str, Callable[[Stream], None]] = {"live": _live, "backlog": _backlog, "kills": _kills}
    ways[way](stream)


def _backlog(stream: Stream) -> None:
    stream.deliver(len(stream.recording.records))
    stream.start()
    stream.finish()


def _portion(stream: Stream) -> int:
    mean = max(2, len(stream.recording.records) // _STEPS)
    return stream.random.randint(1, 2 * mean)


def _live(stream: Stream) -> None:
    stream.start()
    while stream.delivered < len(stream.recording.records):
        stream.deliver(_portion(stream))
        stream.run()
    stream.finish()


def _kills(stream: Stream) -> None:
    """Each death is followed by a new process; a third of these find no ledger."""
    deaths = 0
    while stream.delivered < len(stream.recording.records) or stream.runner is None:
        stream.deliver(_portion(stream))
        if stream.runner is None or (deaths < _KILLS and stream.random.random() < 0.6):
            stream.stop()
            at = stream.random.randrange(120) if deaths < _KILLS else -1
            stream.fate = Fate(at, stream.random.choice((Answer.LOST, Answer.DONE)))
        try:
            if stream.runner is None:
                stream.start()
            stream.run()
        except Killed:
            deaths += 1
            stream.fate.settle()
            stream.stop()
            if stream.random.random() < 1 / 3:
                shutil.rmtree(stream.place / ".binlake" / STREAM, ignore_errors=True)
    stream.stop()
    stream.fate = Fate()
    stream.start()
    stream.finish()
