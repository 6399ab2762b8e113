"""A whole history in one process: two streams, another writer and services over a store in memory, and a clock that a
history moves. Nothing sleeps, and all chance comes from the seed.

A process that dies leaves its store as it was at that call, and the next one begins. Whatever happened, in the end all
records are delivered and applied once: every table then holds the newest change of each key, fsck and audit find
nothing, each file holds what its commit recorded, and the quarantine has each record that nobody can read once.
"""

from __future__ import annotations

import random
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.tables.audit import OFFSET_KEYS, audit
from binlake.tables.lake import Lake
from hudilake import clock
from hudilake.commit.preconditions import MAX_CLOCK_SKEW_MS
from hudilake.errors import LakeError, TransientError
from hudilake.format.definition.bucket import bucket_ids
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite
from hudilake.read import Snapshot, TableReader
from hudilake.read.slice import read_table
from hudilake.services.compaction import completion
from hudilake.services.fsck import Severity, fsck
from hudilake.services.restore import finish_pending_restores, restore
from hudilake.storage import Storage, open_storage
from hudilake.storage.at_once import at_once
from hudilake.table import overtaking
from hudilake.table.group_names import group_names
from hudilake.table.table import HudiTable
from hudilake.write.group_writer import BaseWriter, GroupWriter, LogWriter
from tests.binlake.stream.dying_store import DyingStore, Fate, Killed
from tests.programs.crash_points.story import TABLES, Place, rows_of, stream
from tests.programs.simulation import services
from tests.programs.simulation.changes import Change, versions, wanted
from tests.programs.simulation.faults import DoubledFate, DrawnPool, Early, EarlyStore, copied
from tests.programs.simulation.kafka import DrawnEngine, SimulatedTopics
from tests.programs.simulation.shapes import Rules, engine_of, shape, table_in_order, tables_section
from tests.programs.simulation.steps import HOME, WORK, Fault, Happening, Step

#: The streams, and the beginning of their topics' names: the second one has the rows of orders with odd keys.
STREAMS = {"shop": "s", "second": "u"}
#: Of a version: its columns.
VERSION = ("id", "owner", "start_at", "end_at", "is_current")
_BEGINS_MS = 1_790_000_000_000


class Simulation:
    """One history. ``name``: of its store, which no other one has."""

    def __init__(self, name: str) -> None:
        self.place = Place(f"memory://{name}", {})
        self.now_ms = self.newest_ms = _BEGINS_MS
        self.topics = SimulatedTopics()
        self.waiting: list[tuple[Change | None, str]] = []
        self.sent: list[tuple[Change | None, str]] = []
        #: What is in the topics for the stream, by topic and offset.
        self.changes: dict[tuple[str, int], Change] = {}
        self.others: list[Change] = []
        #: Of these the instants of their commits, as long as the active timeline has them.
        self.commits: dict[str, Change] = {}
        self.shapes: dict[str, Rules] = {}
        self._settings: dict[str, Settings] = {}
        self.unsure: list[tuple[str, Change]] = []
        #: The rows at the source, by table and key, as owner and region.
        self.rows: dict[tuple[str, int], tuple[str, str]] = {}
        self.pos, self.batches, self.broken = 100, 0, 0
        self.order = random.Random(0)
        self.hidden = 0
        self.following: Fate | None = None
        self.runners: dict[str, BatchRunner] = {}
        self.early: Early | None = None
        self.past: Storage | None = None

    # -- the source and Kafka ---------------------------------------------------------------------------------------

    def _change(self, table: str, key: int, owner: str | None, region: str | None = None) -> None:
        """``region``: where the row goes; None: it stays where it is."""
        self.pos += 10
        left = self.rows.pop((table, key), None)
        rules = self.shapes.get(table, {})
        if engine_of(rules) in ("partial_update", "first_row"):
            region = None  # the one quarantines what moves a row, the other leaves it where it is
        if engine_of(rules) == "append":
            left = None
        if owner is None and left is None and engine_of(rules) in ("append", "aggregate"):
            return  # what takes back what was never counted is refused
        place = region or (left[1] if left is not None else HOME)
        if owner is not None:
            self.rows[table, key] = (owner, place)
        self.waiting.append((Change(table, key, self.pos, owner, place, left), table))

    def _send(self, change: Change | None, table: str) -> None:
        topic = _topic(table, "second" if change is not None and table == "orders" and change.key % 2 else "shop")
        offset = len(self.topics.records.get((topic, 0), []))
        self.sent.append((change, table))
        if change is None:
            self.topics.add(topic, b"{broken", None)
            self.broken += 1
            return
        self.topics.add(topic, change.event(), {"id": change.key})
        self.changes[topic, offset] = change

    def _deliver(self, number: int) -> None:
        chance = random.Random(number)
        for _ in range(min(chance.randrange(1, 12), len(self.waiting))):
            at = 0 if number % 3 else chance.randrange(len(self.waiting))
            if table_in_order(self.shapes, self.waiting[at][1]):
                at = next(n for n, one in enumerate(self.waiting) if one[1] == self.waiting[at][1])
            self._send(*self.waiting.pop(at))

    def _again(self, number: int) -> None:
        chance, told = random.Random(number), [one for one in self.sent if one[0] is not None]
        told = [one for one in told if one not in self.waiting or not table_in_order(self.shapes, one[1])]
        for change, table in [chance.choice(told) for _ in range(3) if told]:
            self._send(change, table)

    def _aged(self, topic: str, stream: str) -> None:
        runner = self.runners.get(stream)
        if runner is not None and not runner.ledger.behind:
            self.topics.first[topic] = runner.ledger.positions.at(topic, 0)

    def _unread(self, topic: str, stream: str, number: int) -> None:
        """The stream's process knows what it has read."""
        runner, held = self.runners.get(stream), self.topics.records.get((topic, 0), [])
        if runner is None or runner.ledger.behind or not held:
            return
        first = max(runner.ledger.positions.at(topic, 0), len(held) - 1 - number % 4)
        places = [(topic, n) for n in range(first, len(held))]
        if all(place in self.changes for place in places):  # else Kafka has compacted it, or nobody can read one
            again = [self.changes.pop(place) for place in places]
            self.waiting = [*((change, change.table) for change in again), *self.waiting]
            self.topics.cut(topic, first)

    def _compacted(self, topic: str, stream: str) -> None:
        """What goes before the stream has read it is not told to it, unless a partition would not be told of it, or a
        sum would lack it."""
        runner = self.runners.get(stream)
        if runner is not None and not runner.ledger.behind:
            read = runner.ledger.positions.at(topic, 0)
            unread = [change for (t, n), change in self.changes.items() if t == topic and n >= read]
            if any(change.moves or engine_of(self.shapes.get(change.table, {})) == "aggregate" for change in unread):
                return
            for offset in self.topics.compact(topic):
                if offset >= read:
                    del self.changes[topic, offset]

    # -- processes --------------------------------------------------------------------------------------------------

    def root(self, fate: Fate | None = None) -> Storage:
        """The lake, as a process with that fate has it."""
        root = open_storage(self.place.uri, {})
        if self.early is not None:
            root = EarlyStore(root, self.early.past, self.early)
        return root if fate is None else DyingStore(root, fate)

    def _settings_of(self, name: str) -> Settings:
        if name not in self._settings:
            self._settings[name] = self.place.settings(**_sections(name), tables=tables_section(self.shapes))
        return self._settings[name]

    def stop(self, stream: str | None = None) -> None:
        """The process of a stream ends; of each stream, if none is named."""
        for name in list(self.runners) if stream is None else [stream] if stream in self.runners else []:
            self.runners.pop(name).close()

    def _batch(self, name: str, fate: Fate | None) -> list[str]:
        """The errors of a batch over what the topics show; tables that are behind catch up."""
        if name not in self.runners:
            self.runners[name] = stream(self.place, self.root(fate), self._settings_of(name))
        runner, engine = self.runners[name], DrawnEngine(self.topics, random.Random(self.batches))
        stands, ends = runner.ledger.positions, self.topics.end()
        mine = [(t, p, end) for t, p, end in ends.places() if t.startswith(f"{STREAMS[name]}.")]
        shown = ((t, p, max(stands.at(t, p), end - self.hidden)) for t, p, end in mine)
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
            fate = self._fate(step.fault)
        of_stream = step.what in (Happening.BATCH, Happening.SECOND)
        if fate is None and of_stream:
            troubles = do(None)  # nothing went wrong, so nothing may fail
            if troubles and self._is_far_behind:
                return
            assert troubles == []
            self._settle()
            return
        self.stop()
        try:
            do(fate)
        except (Killed, LakeError) as error:
            if fate is None and not isinstance(error, TransientError):  # the dead are in a service's way
                raise
        self.early = None
        if fate is not None:
            self.stop()
            late = fate.after(step.fault.arrives_at if step.fault else 0)
            self.following = late if late.arriving is not None else None
            if step.fault is None:
                fate.arrive()

    @property
    def _is_far_behind(self) -> bool:
        """Whether the clock was set back for so long that tables refuse it until it is corrected."""
        return self.newest_ms - self.now_ms > MAX_CLOCK_SKEW_MS

    def _fate(self, fault: Fault) -> Fate:
        if fault.early:
            if self.past is not None:
                self.early = Early(self.past, fault.at, self.place.uri)
            return Fate()
        return DoubledFate(fault.at) if fault.answer is None else Fate(fault.at, fault.answer)

    def _settle(self) -> None:
        """What became of the other writer's commits, once the stream has rolled back those of the dead."""
        table = self._table("orders", None)
        for instant, change in self.unsure if table is not None else ():
            write = table.timeline.find(instant) if table is not None else None
            if write is not None and write.completed:
                self.others.append(change)
                self.commits[instant] = change
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
        row[ORDER_FIELD] = change.order
        rows = pa.Table.from_pylist([row], table.schema)
        rows = rows.add_column(0, RECORD_KEY_FIELD, pa.array([str(key)]))
        (bucket,) = bucket_ids(pa.array([str(key)]), ("id",), table.config.bucket_count)
        group = FileGroupWrite("", group_names(table, table.config.name).of("", int(bucket)), upserts=rows)
        instant = table.begin()
        self.unsure.append((instant, change))
        context = table.write_context(instant)
        slices = table.file_slices()
        writer: GroupWriter = LogWriter(context, frozenset((s.partition_path, s.file_id) for s in slices))
        if table.config.kind.copies:
            writer = BaseWriter(context, {s.file_id: s.base_file for s in slices if s.base_file is not None})
        table.commit(instant, writer.write(table.storage, group))

    def _serve(self, step: Step, fate: Fate | None) -> None:
        if step.what in (Happening.LAY_OUT, Happening.REBUCKET):
            rules = self._settings_of("shop").table_rules(SourceTable("shop", step.table))
            if (opened := Lake(self.root(fate)).get(rules)) is not None:
                services.move_rows(opened, step)
            return
        table = self._table(self._served(step), fate)
        if table is None:
            return
        undecided = bool(self.unsure)  # the timeline would not say what became of them
        if step.what is not Happening.RESTORE:
            services.serve(table, step, undecided=undecided)
        elif not undecided and not self.topics.first and not self.topics.gone:  # else a stream asks for what is gone
            self._restore(step, fate)

    def _served(self, step: Step) -> str:
        """Services turn to the history of a table too."""
        has_one = "history" in self.shapes.get(step.table, {})
        return f"{step.table}_history" if has_one and step.number % 2 else step.table

    def _restore(self, step: Step, fate: Fate | None) -> None:
        """To a write that is drawn; who starts it finishes it, also after a death. A refusal changes nothing."""
        name = self._served(step)
        whole = self._table(name, None)
        writes = [i.requested_time for i in whole.timeline.completed()] if whole is not None else []
        if not writes:
            return
        chosen = writes[step.number % len(writes)]
        try:
            restore(HudiTable.open(self.root(fate).sub(f"shop/{name}")), chosen)
        except (Killed, LakeError):
            table = HudiTable.open(self.root(None).sub(f"shop/{name}"))
            finish_pending_restores(table)
            if fate is None:
                table.rollback_pending()
        left = HudiTable.open(self.root(None).sub(f"shop/{name}")).timeline
        undone = {time for time in writes if (write := left.find(time)) is None or not write.completed}
        gone = [self.commits.pop(time) for time in undone & self.commits.keys()]
        self.others = [change for change in self.others if change not in gone]

    # -- a history --------------------------------------------------------------------------------------------------

    def take(self, step: Step, following: Step | None = None) -> None:
        """One step. ``following``: the next one that is done by a process of its own."""
        if step.what not in WORK:
            self._happen(step)
            return
        past = None
        if following is not None and following.fault is not None and following.fault.early:
            # two processes of one stream would exclude each other
            past = copied(self.root(), f"{self.place.uri}-past") if following.what is not step.what else None
        self._happen(step)
        self.past = past

    def _happen(self, step: Step) -> None:
        what = step.what
        if what is Happening.SHAPE:
            if not self._settings:
                self.shapes[step.table] = shape(step.table, step.number)
        elif what is Happening.PUT:
            self._change(step.table, step.key, f"o{step.number}", step.region)
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
            self._aged(_topic(step.table, step.stream), step.stream)
        elif what is Happening.COMPACTED:
            self._compacted(_topic(step.table, step.stream), step.stream)
        elif what is Happening.UNREAD:
            self._unread(_topic(step.table, step.stream), step.stream, step.number)
        elif what is Happening.CLOCK:
            self.newest_ms = max(self.newest_ms, self.now_ms)
            self.now_ms = max(self.now_ms + step.number * 60_000, _BEGINS_MS)
        elif what is Happening.RESTART:
            self.stop()
        elif what is Happening.NO_LEDGER:
            self.stop()
            if not self.topics.first:  # else the stream asks for what Kafka has deleted, and rightly stops
                self.root(None).delete(f".binlake/{step.stream}/ledger.json")
        elif what in (Happening.BATCH, Happening.SECOND):
            self._work(step, lambda fate: self._batch("shop" if what is Happening.BATCH else "second", fate))
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
        self.now_ms = max(self.now_ms, self.newest_ms)  # a clock that is far behind is refused until it is corrected
        for _ in range(2):  # the first ones may roll back what the dead have left
            troubles = [trouble for name in STREAMS for trouble in self._batch(name, None)]
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
        rows, held = rows_of(storage), wanted(self.shapes.get(name, {}), changes)
        assert rows == held, f"{name}: {rows} for {held}"
        self._check_files(storage, name)
        if "history" in self.shapes.get(name, {}):
            history = self.root(None).sub(f"shop/{name}_history")
            found = TableReader.open(history).read(Snapshot(None), columns=VERSION).read_all().to_pylist()
            told = sorted((tuple(row.values()) for row in found), key=lambda row: row[:3])
            assert told == versions(changes), f"{name}_history: {told} for {versions(changes)}"
            self._check_files(history, f"{name}_history")
        quarantine = self.root(None).sub("_quarantine/shop")
        refused = (
            sum(part.num_rows for part in read_table(quarantine, ["offset"])) if HudiTable.exists(quarantine) else 0
        )
        assert refused == self.broken, "quarantine"

    @staticmethod
    def _check_files(storage: Storage, name: str) -> None:
        findings = [f for f in fsck(storage, OFFSET_KEYS, grace_ms=0).findings if f.severity is Severity.ERROR]
        assert findings == [], name
        assert audit(storage, contents=True).errors == [], name


def one_by_one(calls: Sequence[Callable[[], Any]], *, reads: Storage | None = None) -> list[Any]:
    """What ``at_once`` does, in one thread: the threads of its pool outlive a history."""
    return [call() for call in calls]


def _topic(table: str, stream: str) -> str:
    return f"{STREAMS[stream]}.shop.{table}"


def _sections(stream: str) -> dict[str, Any]:
    """The settings of a stream that differ from those of the first one."""
    if stream == "shop":
        return {}
    kafka = {"bootstrap_servers": "127.0.0.1:1", "topics": [_topic("orders", stream)]}
    return {"name": stream, "kafka": kafka}


@contextmanager
def simulated_clock(simulation: Simulation) -> Iterator[None]:
    """The clock module's time is the simulation's: each look at it moves it by a millisecond."""

    def time_ns() -> int:
        simulation.now_ms += 1
        return simulation.now_ms * 1_000_000

    def sleep(seconds: float) -> None:
        simulation.now_ms += int(seconds * 1000)

    with pytest.MonkeyPatch.context() as patch:
        for module in [module for name, module in sys.modules.items() if name.startswith("hudilake")]:
            if hasattr(module, "ThreadPoolExecutor"):
                patch.setattr(module, "ThreadPoolExecutor", lambda *_, **__: DrawnPool(simulation.order))
            if getattr(module, "at_once", None) is at_once:
                patch.setattr(module, "at_once", one_by_one)
        patch.setattr(clock, "time", SimpleNamespace(time_ns=time_ns, monotonic=lambda: time_ns() / 1e9))
        ids = SimpleNamespace(uuid4=lambda: uuid.UUID(int=simulation.order.getrandbits(128), version=4))
        patch.setattr(clock, "uuid", ids)
        for waiting in (completion, overtaking):
            patch.setattr(waiting, "sleep", sleep)
        yield


_runs = iter(range(1 << 40))


def play(steps: Sequence[Step]) -> str:
    """What is wrong after a history; "" if nothing is."""
    simulation = Simulation(f"simulation-{next(_runs)}")
    with simulated_clock(simulation):
        try:
            for number, step in enumerate(steps):
                simulation.take(step, next((one for one in steps[number + 1 :] if one.what in WORK), None))
            simulation.end()
        except Exception as error:  # whatever it is, it is a fault of the history
            return f"{type(error).__name__}: {error}"
        finally:
            simulation.stop()
    return ""
