"""Batches of a stream with many tables, without Kafka and Spark: processor time, and calls from Python.

    python -m bench.many_tables --tables 200 --busy 200 --events 20
    python -m bench.many_tables --tables 1000 --busy 50 --events 20
    python -m bench.many_tables --tables 1 --busy 1 --events 20000 --partitions 100

Each table has its topic. A first batch makes all of them; then each batch has ``--events`` events of ``--busy`` tables.
Tasks run in this process, as in ``bench.local_stream``: ``tasks`` is what they took, and all else is the driver's.
``--code DIR`` measures the packages of another checkout, to compare two commits in turns. Counts do not depend on the
machine; processor time hardly does. Prints a JSON line.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from binlake.rows.tasks.plan import BatchPlan, Item
    from binlake.source.offsets import OffsetRange, Offsets
    from binlake.stream.monitoring.progress import ProgressEvent
    from hudilake.storage import Storage

_WARM_UP = 3
_MADE_AT_ONCE = 200


@dataclass
class Calls:
    """Counts calls from Python in this thread and in all threads that start while it is ``on``.

    ``active``: whether they count now.
    """

    active: bool = False
    made: Counter[int] = field(default_factory=Counter)

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Be told of calls in this thread, and in those that start meanwhile."""
        before = sys.getprofile()
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)

    def take(self) -> int:
        """Those since the last call."""
        many = sum(self.made.values())
        self.made.clear()
        return many

    def _note(self, frame: FrameType, what: str, argument: object) -> None:
        if self.active and what in ("call", "c_call"):
            self.made[threading.get_ident()] += 1


class World:
    """A stream of so many tables over a lake.

    Args:
        uri: of the lake.
        tables: their number.
        events: that a busy table gets in a batch.
        options: of the store.
        wrap: the store that is used, of that of the lake.
        partitions: of each table; 0 for tables without.
    """

    def __init__(
        self,
        uri: str,
        tables: int,
        events: int,
        options: dict[str, str],
        wrap: Callable[[Storage], Storage] = lambda storage: storage,
        *,
        partitions: int = 0,
    ) -> None:
        from bench.events import DATABASE, Shape
        from bench.events import events as made
        from binlake.position.ledger import Ledger
        from binlake.settings import Settings
        from binlake.stream.definitions.schemas import SchemaRegistry
        from binlake.tables.lake import Lake, locking
        from hudilake.storage import open_storage

        shapes = [replace(Shape(partitions=partitions), table=f"orders_{n:04d}") for n in range(tables)]
        self.topics = [f"many.{DATABASE}.{shape.table}" for shape in shapes]
        document: dict[str, Any] = {
            "name": "many",
            "lake": {"uri": uri, "options": options},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": self.topics},
            "source": {"schemas": {f"{DATABASE}.{s.table}": {"columns": s.types(), "key": ["id"]} for s in shapes}},
            "tables": {
                "path": "{table}",
                "defaults": {
                    "buckets": 1,
                    "compaction": {"mode": "off"},
                    "partition": {"column": "country", "transform": "identity"} if partitions else None,
                    "immutable_partition": bool(partitions),  # a key's country never changes
                },
            },
        }
        self.settings = Settings.parse(json.dumps(document))
        self.root = wrap(open_storage(uri, options))
        self.state = self.root.sub(".binlake/many")
        self._feeds = [
            made(1 << 30, keys=200_000 if partitions else 200, shape=shape, seed=n) for n, shape in enumerate(shapes)
        ]
        self._events = events
        self.records: dict[str, list[tuple[bytes, bytes]]] = {topic: [] for topic in self.topics}
        self.task_s = 0.0
        self.batches = 0
        self.ledger = Ledger.load(self.state, "many") or Ledger("many")
        self.lake = Lake(self.root, locking(self.settings.locking, "stream many", one_run=True))
        self.registry = SchemaRegistry(self.settings)
        self.start()

    def start(self) -> None:
        """Make the runner, with its threads."""
        from binlake.stream.batches.runner import BatchRunner
        from binlake.tables.services.table_services import TableServices

        services = TableServices(lambda function, operations: [function(operation) for operation in operations])
        self.runner = BatchRunner(self.settings, self.lake, self.state, self.ledger, self.registry, services, None)

    def feed(self, busy: Iterable[int]) -> None:
        """Give the topics of these tables their next events."""
        for number in busy:
            self.records[self.topics[number]] += itertools.islice(self._feeds[number], self._events)

    def end(self) -> Offsets:
        """The next offsets."""
        from binlake.source.offsets import Offsets

        return Offsets({topic: {0: len(held)} for topic, held in self.records.items() if held})

    def batch(self, end: Offsets | None = None) -> ProgressEvent:
        """Apply what was fed, up to ``end`` or all. Raises RuntimeError for a table that did not commit."""
        self.batches += 1
        event = self.runner.run(self.batches, self.end() if end is None else end, 0, self)
        if bad := [t.error or t.warning for t in event.tables if t.error or t.warning or t.quarantined]:
            raise RuntimeError(f"batch {self.batches}: {bad}")
        return event

    def make(self) -> None:
        """Make all tables, some in each batch."""
        for first in range(0, len(self.topics), _MADE_AT_ONCE):
            self.feed(range(first, min(len(self.topics), first + _MADE_AT_ONCE)))
            self.batch()

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """See binlake.stream.engine.Engine."""
        from binlake.rows.tasks.decode_and_route import decode_records

        began = time.process_time()
        items = list(decode_records(plan, self._read(ranges)))
        self.task_s += time.process_time() - began
        return items

    def _read(self, ranges: Sequence[OffsetRange]) -> Iterator[Any]:
        import numpy as np

        from binlake.decode.changes import RawRecords

        for r in ranges:
            held = self.records[r.topic][r.start : r.end]
            offsets = np.arange(r.start, r.end, dtype=np.int64)
            times = np.full(len(held), 1_760_000_000_000)
            yield RawRecords(r.topic, r.partition, offsets, times, [k for k, _ in held], [v for _, v in held])


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """The figures of one run."""
    options = {} if given.fsync else {"fsync": "false"}
    calls, made = Calls(), list[int]()
    cpu, wall, tasks = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory(prefix="many-", dir=given.place) as place:
        lake = str(Path(place) / "lake")
        with calls.on() if given.calls else contextlib.nullcontext():
            world = World(lake, given.tables, given.events, options, partitions=given.partitions)
            world.make()
            for number in range(_WARM_UP + given.batches):
                world.feed(range(given.busy))
                world.task_s = 0.0
                began, clock = time.process_time(), time.monotonic()
                calls.active = given.calls
                world.batch()
                calls.active = False
                many = calls.take()
                if number >= _WARM_UP:
                    cpu.append(time.process_time() - began)
                    wall.append(time.monotonic() - clock)
                    tasks.append(world.task_s)
                    made.append(many)
            world.runner.close()
        opened = _opening(lake, given, options) if given.open else {}
    median = statistics.median(cpu)
    return {
        "tables": given.tables,
        "busy": given.busy,
        "events": given.events,
        "cpu_ms": round(median * 1000, 1),
        "cpu_ms_min": round(min(cpu) * 1000, 1),
        "cpu_ms_max": round(max(cpu) * 1000, 1),
        "task_ms": round(statistics.median(tasks) * 1000, 1),
        "ms": round(statistics.median(wall) * 1000, 1),
        "events_a_cpu_s": round(given.busy * given.events / median),
        **({"calls": statistics.median(made)} if given.calls else {}),
        **opened,
    }


def take_turns(given: argparse.Namespace) -> None:
    """A batch, or the opening of all tables, for each line of standard input; print its processor time."""
    options = {} if given.fsync else {"fsync": "false"}
    with tempfile.TemporaryDirectory(prefix="many-", dir=given.place) as place:
        lake = str(Path(place) / "lake")
        world = World(lake, given.tables, given.events, options, partitions=given.partitions)
        world.make()
        for _ in range(_WARM_UP):
            world.feed(range(given.busy))
            world.batch()
        print(0, flush=True)
        for _ in sys.stdin:
            if given.open:
                cpu_s = _opening(lake, given, options)["open_cpu_s"]
            else:
                world.feed(range(given.busy))
                began = time.process_time()
                world.batch()
                cpu_s = time.process_time() - began
            print(cpu_s * 1000, flush=True)
        world.runner.close()


def _opening(lake: str, given: argparse.Namespace, options: dict[str, str]) -> dict[str, float]:
    from binlake.stream.recovery import open_known

    world = World(lake, given.tables, given.events, options, partitions=given.partitions)
    began, clock = time.process_time(), time.monotonic()
    open_known(world.settings, world.lake, world.ledger)
    opened = time.process_time() - began, time.monotonic() - clock
    world.runner.close()
    return {"open_cpu_s": round(opened[0], 3), "open_s": round(opened[1], 3)}


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--busy", type=int, default=200, help="tables of a batch")
    parser.add_argument("--events", type=int, default=20, help="events of a table in a batch")
    parser.add_argument("--partitions", type=int, default=0, help="of each table; 0: tables without")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--code", help="measure the packages of this checkout")
    parser.add_argument("--calls", action="store_true", help="count calls from Python, which makes it slow")
    parser.add_argument("--open", action="store_true", help="open all tables anew afterwards")
    parser.add_argument("--fsync", action="store_true")
    parser.add_argument("--turns", action="store_true", help="wait for a line before each batch: bench.in_turns")
    parser.add_argument("--place", help="directory for the lake")
    given = parser.parse_args()
    if given.code:
        sys.path.insert(0, str(Path(given.code) / "pipeline"))
    if given.turns:
        take_turns(given)
    else:
        print(json.dumps(measure(given)))


if __name__ == "__main__":
    main()
