"""A lake table that a stream feeds without Spark or Kafka while clusterings lay its rows out anew."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from binlake.position.ledger import Ledger
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import TableProgress
from binlake.stream.recovery import recover
from binlake.tables.audit import OFFSET_KEYS, audit
from binlake.tables.lake import Lake, locking
from binlake.tables.services.table_services import TableServices
from hudilake.format.timeline.instant import CLUSTERING, REPLACE_COMMIT, Instant
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, settings
from tests.hypothesis_profile import is_nightly
from tests.judges import hudi_rs
from tests.judges.agreement import read_ourselves

T = TypeVar("T")
R = TypeVar("R")
WAIT_S: Final = 30.0
_REGIONS = ("eu", "us")
#: Every commit with new rows begins new file groups, and a clustering makes one of them in each partition.
_FILES = {"target_bytes": 1 << 20, "small_bytes": 1}
ORDER: Final = {"columns": ["owner"], "curve": "linear"}

#: The kinds of tables, by name.
KINDS: Final[dict[str, dict[str, Any]]] = {
    "append": {"kind": "append"},
    "cow_bloom": {"type": "copy_on_write", "index": {"type": "bloom"}},
    "mor_record_index": {"type": "merge_on_read", "index": {"type": "record_index"}},
    "cow_in_memory": {"type": "copy_on_write", "index": {"type": "in_memory"}},
    "mor_external": {"type": "merge_on_read", "index": {"type": "external"}},
}
KEYED: Final = tuple(kind for kind in KINDS if kind != "append")


def drawn(*usual: str, among: Sequence[str] = tuple(KINDS)) -> list[str]:
    """The kinds that this run tries: some of them, in a nightly run all of ``among``."""
    return [*among] if is_nightly() else [*usual]


class Gate:
    """Runs the work of services here; each waits until it is let through, or fails."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.open, self.entered = threading.Event(), threading.Event()
        self.error: Exception | None = None
        if is_open:
            self.open.set()

    def __call__(self, function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
        self.entered.set()
        assert self.open.wait(WAIT_S)
        if self.error is not None:
            raise self.error
        return [function(item) for item in items]


class ClusteredLake:
    """Table ``shop.a``, partitioned by region, and the rows that it must have.

    Args:
        path: of the lake.
        kind: one of ``KINDS``.
        mode: of the clustering.
        gate: runs the work of services.
        seed: of the events.
        retention: how many commits cleaning keeps readable.
        clustering: rules of the clustering that differ from the usual ones here.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        mode: str,
        gate: Gate | None = None,
        seed: int = 0,
        retention: int = 50,
        **clustering: Any,  # noqa: ANN401 - YAML values
    ) -> None:
        self.path, self.gate, self.random = path, gate or Gate(), random.Random(seed)
        rules = {**KINDS[kind], "partition": {"column": "region"}, "files": _FILES, "retention": {"commits": retention}}
        if kind == "mor_external":
            rules["index"] = {"type": "external", "external": {"store": "lmdb", "path": str(path / "index")}}
        rules["clustering"] = {"mode": mode, "after_commits": 3, "select": "all", "order_by": ORDER, **clustering}
        rules["compaction"] = {"mode": "inline", "after_commits": 4, "log_ratio": None}
        self.appends = kind == "append"
        self.config = settings(str(path), ["a"], tables={"defaults": rules})
        self.log, self.batches, self.position = TopicLog(), 0, 100
        self.rows: dict[int, tuple[str, str]] = {}
        self.start()

    def start(self) -> None:
        """A new process of the stream."""
        root = open_storage(str(self.path), {"fsync": "false"})
        state = root.sub(".binlake/shop")
        self.services = TableServices(self.gate)
        lake = Lake(root, locking(self.config.locking, "stream shop", one_run=True))
        ledger = Ledger.load(state, "shop") or recover(self.config, root, lake)
        for source in ledger.tables:
            lake.get(self.config.table_rules(source))
        self.runner = BatchRunner(self.config, lake, state, ledger, SchemaRegistry(self.config), self.services)

    @property
    def place(self) -> Path:
        """The table's root."""
        return self.path / "shop" / "a"

    def table(self) -> HudiTable:
        """The table, as another process opens it."""
        return HudiTable.open(open_storage(str(self.place)))

    def put(self, op: str, key: int, owner: str, region: str) -> None:
        """An event; the row is noted."""
        self.position += 1
        row = {"id": key, "owner": owner, "balance": "AfQ=", "region": region}
        before = row | dict(zip(("owner", "region"), self.rows[key], strict=True)) if op == "u" else None
        self.log.add("s.shop.a", event("a", op, self.position, row, before), {"id": key})
        if op == "d":
            self.rows.pop(key)
        else:
            self.rows[key] = owner, region

    def insert(self, count: int) -> None:
        """Events of new keys."""
        for _ in range(count):
            key = self.position
            self.put("c", key, f"o{self.random.randrange(1000):03}", self.random.choice(_REGIONS))

    def change(self, count: int) -> None:
        """Updates and deletes of some rows; nothing in an append table."""
        for key in self.random.sample(sorted(self.rows), min(count, len(self.rows))) if not self.appends else ():
            owner, region = self.rows[key]
            gone = self.random.random() < 0.3
            self.put("d" if gone else "u", key, owner if gone else f"u{self.position}", region)

    def run(self) -> TableProgress:
        """Apply what came since the last batch."""
        (told,) = self.runner.run(self.batches, self.log.end(), 0, LocalEngine(self.log)).tables
        self.batches += 1
        return told

    def go_on(self) -> None:
        """A new process of the stream, which gives the table what it lacks."""
        self.start()
        engine = LocalEngine(self.log)
        self.runner.run(self.batches, self.log.end(), 0, engine)
        for source in list(self.runner.ledger.behind):
            while source in self.runner.ledger.behind:
                assert self.runner.catch_up(source, engine) is not None
        self.check()

    @property
    def waits(self) -> bool:
        """Whether there are events for a batch."""
        return bool(self.runner.ledger.positions.ranges_to(self.log.end()))

    def batch(self, inserts: int = 6, changes: int = 3) -> TableProgress:
        """A batch of random events, which must be right."""
        self.change(changes)
        self.insert(inserts)
        told = self.run()
        assert (told.error, told.warning) == (None, None)
        self.check()
        return told

    def check(self) -> None:
        """Both readers give the rows, and fsck and audit find nothing wrong."""
        wanted = Counter((key, *row) for key, row in self.rows.items())
        for rows in (read_ourselves(self.place), hudi_rs.snapshot(str(self.place))):
            found = Counter(zip(*(rows.column(n).to_pylist() for n in ("id", "owner", "region")), strict=True))
            assert found == wanted
        storage = open_storage(str(self.place))
        findings = [*fsck(storage, OFFSET_KEYS, grace_ms=0).findings, *audit(storage).findings]
        assert [(f.what, f.where) for f in findings if f.severity is Severity.ERROR] == []

    def settle(self) -> None:
        """Let the work beside the batches come to its end."""
        self.gate.open.set()
        for running in self.services.clustering:
            running.exception(WAIT_S)

    def clusterings(self) -> list[Instant]:
        """The completed ones."""
        timeline = self.table().timeline
        return [write for write in timeline.completed() if write.action == REPLACE_COMMIT]

    def pending(self) -> list[Instant]:
        """The pending ones."""
        return [one for one in self.table().timeline.pending() if one.action == CLUSTERING]

    def groups(self, region: str) -> list[str]:
        """The file groups of a partition."""
        return [s.file_id for s in self.table().file_slices() if s.partition_path == f"region={region}"]
