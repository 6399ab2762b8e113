"""A source whose events come late, twice and in any order, the lake that follows it, and the model of both."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.order import binlog_order
from binlake.load.replay.quarantine import replay
from binlake.load.replay.quarantine_records import QuarantineSelection, ReplayResult
from binlake.position.ledger import Ledger
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.recovery import recover
from binlake.tables.lake import Lake as OpenLake
from binlake.tables.lake import locking
from hudilake import clock
from hudilake.errors import LakeError, LostOwnershipError
from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.storage import Storage, local, local_calls, open_storage
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import FILE, DdlSource
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, services
from tests.programs.machine.pasts import Event, Lake, Row

Record = tuple[str, bytes | None, bytes | None, int]


@dataclass
class Waiting(TopicLog):
    """Topics whose records wait for their delivery. ``told``: everything that was ever delivered."""

    waiting: list[tuple[Record, str, Event | None]] = field(default_factory=list)
    told: list[tuple[Record, str, Event | None]] = field(default_factory=list)
    meaning: tuple[str, Event | None] = ("", None)

    def add(
        self, topic: str, value: dict[str, Any] | bytes | None, key: dict[str, Any] | None, partition: int = 0
    ) -> None:
        """A record that waits; ``meaning`` says of which lake table it is, and what it is to it."""
        raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        record = topic, None if key is None else json.dumps(key).encode(), raw, partition
        self.waiting.append((record, *self.meaning))

    def deliver(self, record: Record, table: str, event: Event | None) -> None:
        """It is in its topic now."""
        topic, key, value, partition = record
        self.records.setdefault((topic, partition), []).append((key, value))
        self.told.append((record, table, event))
        self.meant.setdefault((topic, partition), []).append((table, event))

    meant: dict[tuple[str, int], list[tuple[str, Event | None]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """How the stream is set.

    Args:
        framed: events carry their schema.
        metadata: tables have a metadata table.
        often: a compaction after every third commit; else only before a column's type changes.
        shuffled: tasks write the files.
        hours: the retention is an hour and not three commits.
    """

    framed: bool
    metadata: bool
    often: bool
    shuffled: bool
    hours: bool

    @property
    def retention(self) -> dict[str, Any]:
        """The retention of the tables."""
        return {"commits": None, "hours": 1.0} if self.hours else {"commits": 3}


class World:
    """See the docstring of this module. ``place``: the lake's directory."""

    def __init__(self, plan: Plan, place: Path) -> None:
        self.plan, self.place = plan, place
        self.log = Waiting()
        self.source = DdlSource(log=self.log, framed=plan.framed)
        self.lakes: dict[str, Lake] = {}
        self.path_of: dict[str, str] = {}
        self.ddl_known = 0
        self.policies: dict[str, str] = {}
        self.batches = 0
        self._runner: BatchRunner | None = None
        self._registry: SchemaRegistry | None = None

    # -- the source -------------------------------------------------------------------------------------------------

    def create(self, table: str) -> None:
        """A new table."""
        columns = {"id": "int", "name": "varchar(20)", "qty": "int"}
        self.source.create(table, columns, snapshot=False)
        self.lakes[table], self.path_of[table] = Lake(list(columns)), table

    def lake_of(self, table: str) -> Lake:
        """The model of the lake table that a source table goes to."""
        return self.lakes[self.path_of[table]]

    def put(self, table: str, key: int, **values: Any) -> None:  # noqa: ANN401 - any JSON
        """A row is inserted or updated."""
        held = self.source.tables[table]
        row = {name: values.get(name, held.rows.get(key, {}).get(name)) for name in held.columns} | {"id": key}
        self.log.meaning = self.path_of[table], Event(self.source.pos + 10, key, row)
        self.source.put(table, key, **values)

    def delete(self, table: str, key: int) -> None:
        """A row is deleted."""
        self.log.meaning = self.path_of[table], Event(self.source.pos + 10, key)
        self.source.delete(table, key)

    def truncate(self, table: str) -> None:
        """All rows of a table go."""
        self.log.meaning = self.path_of[table], Event(self.source.pos + 10)
        self.source.truncate(table)

    def poison(self, table: str) -> None:
        """A record that nobody can read."""
        self.log.meaning = self.path_of[table], None
        self.log.add(f"s.shop.{table}", b"{broken", {"id": 0})

    def alter(self, table: str, do: Callable[[], None], step: Callable[[Row], object]) -> None:
        """A statement: ``do`` executes it, ``step`` is what it does to a row."""
        do()
        lake = self.lake_of(table)
        lake.steps.append((self.source.pos, step))
        lake.columns = list(self.source.tables[table].columns)

    def rename_table(self, old: str, new: str) -> None:
        """A table gets another name; its lake table stays where it is."""
        self.source.rename_tables((old, new))
        self.path_of[new] = self.path_of.pop(old)

    # -- delivery ---------------------------------------------------------------------------------------------------

    def deliver(self, chance: random.Random, count: int, *, in_order: bool) -> None:
        """So many of the records that wait come, the first ones or any."""
        for _ in range(min(count, len(self.log.waiting))):
            at = 0 if in_order else chance.randrange(len(self.log.waiting))
            self.log.deliver(*self.log.waiting.pop(at))

    def redeliver(self, chance: random.Random, count: int) -> None:
        """Records come again, any in any order."""
        for told in [chance.choice(self.log.told) for _ in range(count) if self.log.told]:
            self.log.deliver(*told)

    # -- the stream -------------------------------------------------------------------------------------------------

    def settings(self) -> Settings:
        """One stream over all tables."""
        rules = {
            "buckets": 2,
            "retention": self.plan.retention,
            "metadata": {"enabled": self.plan.metadata},
            "compaction": {"mode": "inline", "after_commits": 3 if self.plan.often else 1 << 20},
            "schema_changes": self.policies,
        }
        document = {
            "name": "shop",
            "lake": {"uri": str(self.place), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": r"s(\.shop\..*)?"},
            "tables": {"defaults": rules},
            "quarantine": {"max_records_per_batch": 1000, "max_fraction": 1.0},
            "batch": {"shuffle_above_bytes": 0 if self.plan.shuffled else 1 << 30},
            "locking": {"lock": "process"},
        }
        return Settings.parse(json.dumps(document))

    def root(self, fate: Fate | None = None) -> Storage:
        """The lake's root."""
        root = open_storage(str(self.place), {"fsync": "false"})
        return root if fate is None else DyingStore(root, fate)

    def stop(self) -> None:
        """The process of the stream ends."""
        if self._runner is not None:
            self._runner.close()
        self._runner = None

    def stream(self, fate: Fate | None = None) -> BatchRunner:
        """The stream's process; a new one if there is none, or one with a fate of its own."""
        if self._runner is None or self._registry is None:
            config, root = self.settings(), self.root(fate)
            lake = OpenLake(root, locking(config.locking, "stream shop", one_run=True))
            state = root.sub(".binlake/shop")
            ledger = Ledger.load(state, config.name) or recover(config, root, lake)
            for source in ledger.tables:
                lake.get(config.table_rules(source))
            self._registry = SchemaRegistry(config)
            self._runner = BatchRunner(config, lake, state, ledger, self._registry, services())
        return self._runner

    def run(self, share: float = 1.0, fate: Fate | None = None) -> None:
        """A batch over a share of what is in the topics, all statements known; then tables that are behind catch up."""
        runner = self.stream(fate)
        assert self._registry is not None
        self._registry.learn(self.source.ddl)
        self.ddl_known = len(self.source.ddl)
        stands, ends = runner.ledger.positions, self.log.end()
        places = ((t, p, stands.at(t, p) + round((until - stands.at(t, p)) * share)) for t, p, until in ends.places())
        end, engine = Offsets.of_places(places), LocalEngine(self.log)
        records = stands.ranges_to(end).records
        event = runner.run(self.batches, end, 0, engine)
        self.batches += 1
        errors = [t.error for t in event.tables if t.error] + [d.error for d in event.ddl if d.error]
        warnings = [t.warning for t in event.tables if t.warning]
        if fate is None:
            assert errors + warnings == []
            late = {topic for held in runner.ledger.behind.values() for topic, _, _ in held.places()}
            later = sum(until - stands.at(t, p) for t, p, until in end.places() if t in late)
            assert event.events_read in (records, records - later)  # a table that is behind reads its own below
            for t in event.tables:
                assert t.events_read == t.applied + t.superseded + t.filtered + t.quarantined + t.already_applied, t
        for source in list(runner.ledger.behind):
            while source in runner.ledger.behind:
                assert runner.catch_up(source, engine) is not None, f"{source} stays behind"
        self._take(end)

    def _take(self, end: Offsets) -> None:
        """The model's tables get everything up to there."""
        for lake in self.lakes.values():
            lake.delivered = [e for e in lake.delivered if e.instant]
        for (topic, partition), meant in self.log.meant.items():
            for table, event in meant[: end.at(topic, partition)]:
                if event is not None:
                    self.lakes[table].delivered.append(event)

    def crash(self, at: int, answer: Answer, arrives_at: int, do: Callable[[Fate], object]) -> Fate:
        """Work of a new process that gets an answer of fate; then the next process, where a late call arrives."""
        self.stop()
        fate = Fate(at, answer)
        try:
            do(fate)
        except (Killed, LakeError, AssertionError) as error:
            if isinstance(error, AssertionError) and answer is not Answer.FAILED and answer is not Answer.UNANSWERED:
                raise
        self.stop()
        return fate.after(arrives_at)

    def go_on(self, following: Fate) -> None:
        """The processes after a crash, until one is through."""
        try:
            self.run(fate=following)
        except (LostOwnershipError, LakeError):
            self.stop()
            if following.arriving is not None:
                raise
        following.arrive()
        self.stop()
        self.run()

    @property
    def knows_all_statements(self) -> bool:
        """Whether the stream has carried out all statements."""
        return self.ddl_known == len(self.source.ddl)

    def open(self, name: str, fate: Fate | None = None) -> HudiTable | None:
        """A lake table as another process opens it to work on it."""
        config = self.settings()
        lake = OpenLake(self.root(fate), locking(config.locking, "upkeep"))
        table = lake.get(config.table_rules(SourceTable("shop", name)))
        return table.hudi if table is not None else None

    def write_foreign(self, name: str, key: int, values: Row) -> None:
        """A commit of a writer that knows nothing of streams, newer than all events so far."""
        table = self.open(name)
        assert table is not None
        self.source.pos += 10
        row = dict.fromkeys(table.schema.names) | values | {"id": key}
        order = binlog_order(0, FILE, self.source.pos)
        rows = pa.Table.from_pylist([row | {ORDER_FIELD: order}], table.schema)
        rows = rows.add_column(0, RECORD_KEY_FIELD, pa.array([str(key)]))
        (bucket,) = bucket_ids(pa.array([str(key)]), ("id",), table.config.bucket_count)
        group = FileGroupWrite("", file_id(table.config.name, "", int(bucket)), upserts=rows, deletes=None)
        instant = table.begin()
        table.commit(instant, [write_file_group(table.storage, table.write_context(instant), group)])
        shown = {column: row.get(column) for column in self.lakes[name].columns}
        self.lakes[name].delivered.append(Event(self.source.pos, key, shown, instant))

    def uri(self, name: str) -> Path:
        """A lake table's root."""
        return self.place / "shop" / name

    @property
    def poisoned(self) -> int:
        """How many records that nobody can read lie below the stream's position."""
        assert self._runner is not None
        stands = self._runner.ledger.positions
        return sum(e is None for (t, p), meant in self.log.meant.items() for _, e in meant[: stands.at(t, p)])

    def replay(self) -> ReplayResult:
        """``binlake quarantine replay``. The records' Kafka times are long ago, the deletes are not."""
        done = replay(self.settings(), QuarantineSelection(), even_too_old=True)
        assert done.errors == {}
        return done


def moved(clock_: SimpleNamespace) -> SimpleNamespace:
    """What the clock module asks: real time, moved on by ``clock_.ahead_ms``."""

    def time_ns() -> int:
        return time.time_ns() + int(clock_.ahead_ms) * 1_000_000

    return SimpleNamespace(time_ns=time_ns, monotonic=time.monotonic)


def move_disk(patch: pytest.MonkeyPatch) -> None:
    """Files bear the time of the clock module, as on a disk of this machine: the store's clock moves on with the
    process's."""
    write, touch = local_calls.write_new, LocalStorage.touch

    def date(file: str | Path) -> None:
        os.utime(file, ns=(now := clock.now_ms() * 1_000_000, now))

    def write_dated(file: str, data: bytes, *, sync: bool) -> None:
        write(file, data, sync=sync)
        date(file)

    def touch_dated(storage: LocalStorage, path: str) -> bool:
        done = touch(storage, path)
        if done:
            date(storage.root / path)
        return done

    patch.setattr(local, "write_new", write_dated)
    patch.setattr(LocalStorage, "touch", touch_dated)
