"""A whole history in one process: a stream, another writer and services over a store in memory, and a clock that a
history moves. Nothing sleeps, and all chance comes from the seed.

A process that dies leaves its store as it was at that call, and the next one begins. Whatever happened, in the end all
records are delivered and applied once: every table then holds the newest change of each key, fsck and audit find
nothing, each file holds what its commit recorded, and the quarantine has each record that nobody can read once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import RawRecords
from binlake.decode.order import binlog_order
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.source.offsets import OffsetRange, Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.tables.audit import OFFSET_KEYS, audit
from hudilake import clock
from hudilake.errors import LakeError, TransientError
from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.read.slice import read_table
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import CompactionConfig, completion, run
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import Storage, open_storage
from hudilake.table import overtaking
from hudilake.table.table import HudiTable
from tests.binlake.stream.dying_store import CHANGING, DyingStore, Fate, Killed
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event
from tests.hudilake.services.compaction.steps import serially
from tests.programs.crash_points.story import TABLES, Place, rows_of, stream
from tests.programs.simulation.steps import Happening, Step

_COMPACTION = CompactionConfig(after_commits=1 << 20, log_ratio=None)
_RETENTION = 3
T = TypeVar("T")
_FILE = "mysql-bin.000003"
_BEGINS_MS = 1_790_000_000_000


@dataclass(frozen=True)
class Change:
    """What a record is to its table: the newest position of a key wins. ``owner``: None for a delete."""

    table: str
    key: int
    pos: int
    owner: str | None


@dataclass
class SimulatedTopics(TopicLog):
    """Topics that lose what Kafka may lose: records below ``first``, and records of keys that come again."""

    gone: set[tuple[str, int, int]] = field(default_factory=set)
    first: dict[str, int] = field(default_factory=dict)

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        """The records that are still there. Raises AssertionError for a range that Kafka deleted."""
        for r in ranges:
            assert r.start >= self.first.get(r.topic, 0), f"{r.topic} is read from {r.start}, which is deleted"
            kept = [n for n in range(r.start, r.end) if (r.topic, r.partition, n) not in self.gone]
            held = [self.records[r.topic, r.partition][n] for n in kept]
            times, offsets = np.full(len(kept), 1_760_000_000_000), np.array(kept, dtype=np.int64)
            yield RawRecords(r.topic, r.partition, offsets, times, [k for k, _ in held], [v for _, v in held])

    def compact(self, topic: str) -> set[int]:
        """Of each key the newest record stays. Returns the offsets of those that went."""
        newest: dict[bytes | None, int] = {}
        went: set[int] = set()
        for n, (key, _) in enumerate(self.records.get((topic, 0), [])):
            if key is not None and key in newest:
                went.add(newest[key])
            newest[key] = n
        went -= {n for name, _, n in self.gone if name == topic}
        self.gone |= {(topic, 0, n) for n in went}
        return went


@dataclass
class DoubledFate(Fate):
    """The call is done and answered, and the network does it once more later."""

    @property
    def is_deadly(self) -> bool:
        return False

    def _answered(self, method: str, path: str, action: Callable[[], T], late: Callable[[], object]) -> T:
        if method in CHANGING:
            self._late = late
        return action()


class Simulation:
    """One history. ``name``: of its store, which no other one has."""

    def __init__(self, name: str) -> None:
        self.place = Place(f"memory://{name}", {})
        self.now_ms = _BEGINS_MS
        self.topics = SimulatedTopics()
        self.waiting: list[tuple[Change | None, str]] = []
        self.sent: list[tuple[Change | None, str]] = []
        #: What is in the topics for the stream, by topic and offset.
        self.changes: dict[tuple[str, int], Change] = {}
        self.others: list[Change] = []
        self.unsure: list[tuple[str, Change]] = []
        self.pos, self.batches, self.broken = 100, 0, 0
        self.hidden = 0
        self.following: Fate | None = None
        self.runner: BatchRunner | None = None

    # -- the source and Kafka ---------------------------------------------------------------------------------------

    def _change(self, table: str, key: int, owner: str | None) -> None:
        self.pos += 10
        self.waiting.append((Change(table, key, self.pos, owner), table))

    def _send(self, change: Change | None, table: str) -> None:
        topic = f"s.shop.{table}"
        offset = len(self.topics.records.get((topic, 0), []))
        self.sent.append((change, table))
        if change is None:
            self.topics.add(topic, b"{broken", None)
            self.broken += 1
            return
        row = {"id": change.key, "owner": change.owner or "", "balance": "AfQ=", "region": "eu"}
        self.topics.add(topic, event(table, "d" if change.owner is None else "u", change.pos, row), {"id": change.key})
        self.changes[topic, offset] = change

    def _deliver(self, number: int) -> None:
        chance = random.Random(number)
        for _ in range(min(chance.randrange(1, 12), len(self.waiting))):
            self._send(*self.waiting.pop(0 if number % 3 else chance.randrange(len(self.waiting))))

    def _again(self, number: int) -> None:
        chance, told = random.Random(number), [one for one in self.sent if one[0] is not None]
        for change, table in [chance.choice(told) for _ in range(3) if told]:
            self._send(change, table)

    def _aged(self, table: str) -> None:
        if self.runner is not None and not self.runner.ledger.behind:
            self.topics.first[f"s.shop.{table}"] = self.runner.ledger.positions.at(f"s.shop.{table}", 0)

    def _compacted(self, table: str) -> None:
        """What goes before the stream has read it is not told to it."""
        topic = f"s.shop.{table}"
        if self.runner is not None and not self.runner.ledger.behind:
            read = self.runner.ledger.positions.at(topic, 0)
            for offset in self.topics.compact(topic):
                if offset >= read:
                    del self.changes[topic, offset]

    # -- processes --------------------------------------------------------------------------------------------------

    def root(self, fate: Fate | None = None) -> Storage:
        """The lake, as a process with that fate has it."""
        root = open_storage(self.place.uri, {})
        return root if fate is None else DyingStore(root, fate)

    def stop(self) -> None:
        """The process of the stream ends."""
        if self.runner is not None:
            self.runner.close()
        self.runner = None

    def _batch(self, fate: Fate | None) -> list[str]:
        """The errors of a batch over what the topics show; tables that are behind catch up."""
        if self.runner is None:
            self.runner = stream(self.place, self.root(fate))
        runner, engine = self.runner, LocalEngine(self.topics)
        stands, ends = runner.ledger.positions, self.topics.end()
        shown = ((t, p, max(stands.at(t, p), end - self.hidden)) for t, p, end in ends.places())
        done = runner.run(self.batches, Offsets.of_places(shown), self.now_ms, engine)
        self.batches, self.hidden = self.batches + 1, 0
        for source in list(runner.ledger.behind):
            while source in runner.ledger.behind and runner.catch_up(source, engine) is not None:
                pass
        behind = [f"{source} is behind" for source in runner.ledger.behind]
        return [str(t.error) for t in done.tables if t.error and t.error not in behind] and behind

    def _work(self, step: Step, do: Callable[[Fate | None], object]) -> None:
        """A process of its own does it, with its fault; a call that is late from before arrives in it."""
        fate, self.following = self.following, None
        if step.fault is not None:
            if fate is not None:
                fate.arrive()
            answer = step.fault.answer
            fate = DoubledFate(step.fault.at) if answer is None else Fate(step.fault.at, answer)
        if fate is None and step.what is Happening.BATCH:
            assert do(None) == []  # nothing went wrong, so nothing may fail
            self._settle()
            return
        self.stop()
        try:
            do(fate)
        except (Killed, LakeError) as error:
            if fate is None and not isinstance(error, TransientError):  # the dead are in a service's way
                raise
        if fate is not None:
            self.stop()
            late = fate.after(step.fault.arrives_at if step.fault else 0)
            self.following = late if late.arriving is not None else None
            if step.fault is None:
                fate.arrive()

    def _settle(self) -> None:
        """What became of the other writer's commits, once the stream has rolled back those of the dead."""
        table = self._table("orders", None)
        for instant, change in self.unsure if table is not None else ():
            write = table.timeline.find(instant) if table is not None else None
            if write is not None and write.completed:
                self.others.append(change)
        self.unsure.clear()

    def _table(self, table: str, fate: Fate | None) -> HudiTable | None:
        storage = self.root(fate).sub(f"shop/{table}")
        return HudiTable.open(storage) if HudiTable.exists(storage) else None

    def _other(self, key: int, fate: Fate | None) -> None:
        """A commit of a writer that knows nothing of streams."""
        table = self._table("orders", fate)
        if table is None:
            return
        self.pos += 10
        change = Change("orders", key, self.pos, f"other {self.pos}")
        row = dict.fromkeys(table.schema.names) | {"id": key, "owner": change.owner, "region": "eu"}
        row[ORDER_FIELD] = binlog_order(0, _FILE, self.pos)
        rows = pa.Table.from_pylist([row], table.schema)
        rows = rows.add_column(0, RECORD_KEY_FIELD, pa.array([str(key)]))
        (bucket,) = bucket_ids(pa.array([str(key)]), ("id",), table.config.bucket_count)
        group = FileGroupWrite("", file_id(table.config.name, "", int(bucket)), upserts=rows)
        instant = table.begin()
        self.unsure.append((instant, change))
        table.commit(instant, [write_file_group(table.storage, table.write_context(instant), group)])

    def _serve(self, step: Step, fate: Fate | None) -> None:
        table = self._table(step.table, fate)
        if table is None:
            return
        if step.what is Happening.COMPACT:
            run(table, _COMPACTION, serially, now=True)
        elif step.what is Happening.CLEAN:
            clean(table, CleaningConfig(commits=_RETENTION, hours=None))
        elif not self.unsure:  # else the timeline would not say what became of them
            archive(table, ArchivalConfig(2, 3))

    # -- a history --------------------------------------------------------------------------------------------------

    def take(self, step: Step) -> None:
        """One step."""
        what = step.what
        if what is Happening.PUT:
            self._change(step.table, step.key, f"o{step.number}")
        elif what is Happening.DELETE:
            self._change(step.table, step.key, None)
        elif what is Happening.POISON:
            self.waiting.append((None, step.table))
        elif what is Happening.DELIVER:
            self._deliver(step.number)
        elif what is Happening.AGAIN:
            self._again(step.number)
        elif what is Happening.LAG:
            self.hidden = step.number % 5
        elif what is Happening.AGED:
            self._aged(step.table)
        elif what is Happening.COMPACTED:
            self._compacted(step.table)
        elif what is Happening.CLOCK:
            self.now_ms = max(self.now_ms + step.number * 60_000, _BEGINS_MS)
        elif what is Happening.RESTART:
            self.stop()
        elif what is Happening.NO_LEDGER:
            self.stop()
            if not self.topics.first:  # else the stream asks for what Kafka has deleted, and rightly stops
                self.root(None).delete(".binlake/shop/ledger.json")
        elif what is Happening.BATCH:
            self._work(step, self._batch)
        elif what is Happening.OTHER:
            self._work(step, lambda fate: self._other(step.key, fate))
        else:
            self._work(step, lambda fate: self._serve(step, fate))

    def end(self) -> None:
        """Everything is delivered and applied; then all must be right. Raises AssertionError."""
        while self.waiting:
            self._send(*self.waiting.pop(0))
        if self.following is not None:
            self.following.arrive()
        self.stop()
        for _ in range(2):  # the first one may roll back what the dead have left
            troubles = self._batch(None)
        assert troubles == []
        self._settle()
        self.stop()
        for table in TABLES:
            self._check(table)

    def _check(self, name: str) -> None:
        storage = self.root(None).sub(f"shop/{name}")
        changes = [change for change in self.changes.values() if change.table == name]
        if not HudiTable.exists(storage):
            assert all(change.owner is None for change in changes), f"{name} does not exist"
            return
        changes += [change for change in self.others if change.table == name]
        newest: dict[int, Change] = {}
        for change in sorted(changes, key=lambda change: change.pos):
            newest[change.key] = change
        wanted = sorted((key, c.owner, "eu") for key, c in newest.items() if c.owner is not None)
        rows = rows_of(storage)
        assert rows == wanted, f"{name}: {rows} for {wanted}"
        findings = [f for f in fsck(storage, OFFSET_KEYS, grace_ms=0).findings if f.severity is Severity.ERROR]
        assert findings == [], name
        assert audit(storage, contents=True).errors == [], name
        quarantine = self.root(None).sub("_quarantine/shop")
        held = sum(part.num_rows for part in read_table(quarantine, ["offset"])) if HudiTable.exists(quarantine) else 0
        assert held == self.broken, "quarantine"


@contextmanager
def simulated_clock(simulation: Simulation) -> Iterator[None]:
    """The clock module's time is the simulation's: each look at it moves it by a millisecond."""

    def time_ns() -> int:
        simulation.now_ms += 1
        return simulation.now_ms * 1_000_000

    def sleep(seconds: float) -> None:
        simulation.now_ms += int(seconds * 1000)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "time", SimpleNamespace(time_ns=time_ns, monotonic=lambda: time_ns() / 1e9))
        for waiting in (completion, overtaking):
            patch.setattr(waiting, "sleep", sleep)
        yield


_runs = iter(range(1 << 40))


def play(steps: Sequence[Step]) -> str:
    """What is wrong after a history; "" if nothing is."""
    simulation = Simulation(f"simulation-{next(_runs)}")
    with simulated_clock(simulation):
        try:
            for step in steps:
                simulation.take(step)
            simulation.end()
        except Exception as error:  # whatever it is, it is a fault of the history
            return f"{type(error).__name__}: {error}"
        finally:
            simulation.stop()
    return ""
