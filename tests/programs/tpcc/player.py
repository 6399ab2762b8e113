"""A recording applied in one process, without Spark or Kafka, by streams whose storage dies."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from binlake.position.ledger import Ledger
from binlake.rows.tasks.boundary import Survey
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.rows.tasks.write_parcels import write_parcels
from binlake.settings import Settings
from binlake.source.offsets import OffsetRange, Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.recovery import recover
from binlake.stream.transactions import Transactions, survey_records
from binlake.tables.lake import Lake
from hudilake.storage import Storage, open_storage
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.binlake.stream.topic_log import services
from tests.programs.tpcc.recording import DATABASE, PREFIX, STREAM, TABLES, TRANSACTIONS, TpccRecording

_OPTIONS = {"fsync": "false"}
_CALLS = 700


def settings(lake: str, servers: str, *, whole: bool = True, **batch: Any) -> dict[str, Any]:  # noqa: ANN401 - YAML
    """The settings of a stream of TPC-C's tables without its DDL topic; ``batch``: further ones of that section."""
    return {
        "name": STREAM,
        "lake": {"uri": lake, "options": _OPTIONS},
        "kafka": {
            "bootstrap_servers": servers,
            "topic_pattern": rf"{PREFIX}\.{DATABASE}\..*",
            "transaction_topic": TRANSACTIONS,
        },
        "batch": {"transaction_consistent": whole, **batch},
        "tables": {"defaults": {"buckets": 2, "compaction": {"mode": "inline", "after_commits": 7}}},
        "quarantine": {"max_records_per_batch": 0},
    }


@dataclass(frozen=True)
class _Engine:
    recording: TpccRecording

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        items = decode_records(plan, (self.recording.cut_out(r) for r in ranges))
        return list(write_parcels(plan, items) if shuffle else items)


@dataclass
class TpccStream:
    """A stream of a recording into a lake.

    Args:
        recording: the topics.
        place: of the lake.
        whole: with whole transactions only.
        fate: when its storage dies.
    """

    recording: TpccRecording
    place: Path
    whole: bool = True
    fate: Fate = field(default_factory=Fate)
    batches: int = 0
    deaths: int = 0
    runner: BatchRunner | None = None

    def start(self) -> None:
        """A new process."""
        config = Settings.parse(json.dumps(settings(str(self.place), "127.0.0.1:1", whole=self.whole)))
        root: Storage = DyingStore(open_storage(str(self.place), _OPTIONS), self.fate)
        lake, state = Lake(root), root.sub(f".binlake/{STREAM}")
        ledger = Ledger.load(state, STREAM) or recover(config, root, lake)
        for source in ledger.tables:
            lake.get(config.table_rules(source))
        registry = SchemaRegistry(config)
        registry.learn(self.recording.values(PREFIX))
        cutter = Transactions(config, ledger, self._survey, self.recording.offset_at) if self.whole else None
        self.runner = BatchRunner(config, lake, state, ledger, registry, services(), cutter)

    def stop(self) -> None:
        """The process ends."""
        if self.runner is not None:
            self.runner.close()
        self.runner = None

    def batch(self, end: Offsets) -> None:
        """Apply what is there up to ``end``. Raises LakeError, Killed."""
        if self.runner is None:
            self.start()
        assert self.runner is not None
        event = self.runner.run(self.batches, end, 0, _Engine(self.recording))
        self.batches += 1
        assert [t.error for t in event.tables if t.error] == []

    def kill(self, chance: random.Random, *, forget: bool) -> None:
        """The next process dies at one of its calls; ``forget``: it finds no ledger."""
        self.stop()
        if forget:
            shutil.rmtree(self.place / ".binlake" / STREAM, ignore_errors=True)
        self.fate = Fate(chance.randrange(_CALLS), chance.choice((Answer.LOST, Answer.DONE, Answer.LATE)))

    def _survey(self, topic: str, ranges: Sequence[OffsetRange]) -> Survey:
        return survey_records(topic, (self.recording.cut_out(r) for r in ranges))


def ends(recording: TpccRecording, chance: random.Random, steps: int) -> list[Offsets]:
    """Where Kafka stood at moments of a recording, no two partitions at quite the same one, and its end."""
    times = sorted(ms for (t, _), held in recording.topics.items() if t == TRANSACTIONS for ms, _, _ in held)
    moments = sorted(chance.choices(times, k=steps))
    reached: list[Offsets] = []
    for moment in moments:
        places = ((t, p, recording.offset_at(t, p, moment - chance.randint(0, 20))) for t, p in data(recording))
        reached.append(Offsets.of_places(places).furthest(reached[-1] if reached else {}))
    return [*reached, Offsets.of_places((t, p, len(recording.topics[t, p])) for t, p in data(recording))]


def data(recording: TpccRecording) -> list[tuple[str, int]]:
    """The topic partitions that the stream reads."""
    wanted = {TRANSACTIONS, *(f"{PREFIX}.{DATABASE}.{table}" for table in TABLES)}
    return [place for place in recording.topics if place[0] in wanted]


def play(stream: TpccStream, seed: int, *, steps: int = 24, kills: int = 8) -> None:
    """All of the recording, with processes that die and batches that are cut again elsewhere. Raises LakeError."""
    chance = random.Random(seed)
    for end in ends(stream.recording, chance, steps):
        if stream.deaths < kills and chance.random() < 0.5:
            stream.kill(chance, forget=chance.random() < 0.3)
        try:
            stream.batch(end)
        except Killed:
            stream.deaths += 1
            following = stream.fate.after(chance.randrange(_CALLS))
            stream.stop()
            stream.fate = following
            if chance.random() < 0.5:
                stream.batch(end)
    stream.stop()
    stream.fate.arrive()
    stream.fate = Fate()
    for _ in range(2):
        stream.batch(ends(stream.recording, chance, 0)[-1])
    assert stream.runner is not None
    rows = Offsets.of_places((t, p, len(stream.recording.topics[t, p])) for t, p in data(stream.recording))
    assert not stream.runner.ledger.positions.short_of(rows), "records are left"
