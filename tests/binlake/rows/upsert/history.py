"""A table's life: MySQL changes rows, the connector repeats and delays events, batches are cut anywhere, processes
die; and after every commit the table holds what the model holds.
"""

from __future__ import annotations

import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from hypothesis import strategies as st

from binlake.decode.changes import ordering_value
from hudilake.format.definition.kind import TableKind
from tests.binlake.rows.upsert.ingest import MERGE_ON_READ, TYPES, Ingest, Kind, rows_of
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same
from tests.model import Change, Delivered, KeylessModel, Row, Shape, Source, TableModel

KEYED = {
    "one key column": Shape(("id",)),
    "a text key": Shape(("code",)),
    "two key columns": Shape(("code", "id")),
    "by region": Shape(("id",), "region", "identity", "region"),
    "by region, bare names": Shape(("code",), "region", "identity", "region", hive_style=False),
    "by date": Shape(("id", "code"), "day", "identity", "day"),
    "by day": Shape(("id",), "at", "day", "at_day"),
    "two key columns by hour": Shape(("code", "id"), "at", "hour", "at_hour"),
}
KEYLESS = {
    "no key": Shape(()),
    "no key, by region": Shape((), "region", "identity", "region"),
    "no key, by month": Shape((), "at", "month", "at_month"),
}
CODES = ["a", "", "a,b:c", "x:1", ",", "é😀", "a,id:2", "__null__", "id:1,code:a"]
REGIONS = ["eu", "us", None, "", "a/b c", "x:y=1,%é", "日本", "50%25"]
_META = ["_binlake_order", "_hoodie_record_key", "_hoodie_partition_path"]
_SNAPSHOT_S = 1_700_000_000


def values(seed: int) -> Row:
    """Every column but the key and the region, as a function of a small number: nulls, bounds, odd bytes."""
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) + timedelta(days=seed % 3 * 365, microseconds=seed)
    return {
        "at": None if seed % 5 == 4 else moment,
        "day": None if seed % 4 == 3 else date(2024, 2, 28) + timedelta(days=seed % 3),
        "amount": None if seed % 6 == 5 else Decimal(seed * seed - 20).scaleb(-2),
        "big": Decimal(2**64 - 1 - seed),
        "ratio": [0.1, -0.0, None, 1.7976931348623157e308, 5e-324][seed % 5],
        "flag": [True, False, None][seed % 3],
        "data": [b"", b"\x00\xff", None, "é".encode("latin-1")][seed % 4],
    }


@dataclass(frozen=True)
class Round:
    """Some statements at the source, some trouble in the connector, then one batch of what came.

    Args:
        statements: (kind, three small numbers), see the methods of ``World``.
        troubles: (kind, small number), the same.
        emitted: events that reach Kafka.
        takes: records that the batch takes of each partition, at most.
        chunks, shuffle: how the batch is worked on.
        death: when the process dies, if it does.
    """

    statements: Sequence[tuple[str, int, int, int]]
    troubles: Sequence[tuple[str, int]]
    emitted: int
    takes: tuple[int, int, int]
    chunks: int
    shuffle: bool
    death: str


_SMALL = st.integers(0, 9)
_STATEMENTS = [
    *["insert"] * 3,
    *["update"] * 4,
    *["delete"] * 2,
    *["change_key", "shift_keys", "transaction", "truncate", "new_file"],
]
_TAKE = st.integers(0, 20)
ROUNDS = st.lists(
    st.builds(
        Round,
        statements=st.lists(st.tuples(st.sampled_from(_STATEMENTS), _SMALL, _SMALL, _SMALL), min_size=1, max_size=8),
        troubles=st.lists(
            st.tuples(st.sampled_from(["restart_connector", "hold", "release", "repeat"]), st.integers(0, 20)),
            max_size=4,
        ),
        emitted=st.integers(0, 20),
        takes=st.tuples(_TAKE, _TAKE, _TAKE),
        chunks=st.integers(1, 3),
        shuffle=st.booleans(),
        death=st.sampled_from(["no", "no", "no", "between batches", "before the commit", "before the ledger"]),
    ),
    min_size=2,
    max_size=7,
)


@dataclass(frozen=True)
class Plan:
    """Where a history takes place: layout, buckets, Kafka partitions, rows in the snapshot, commits to a compaction (0
    for none)."""

    shape: Shape
    buckets: int
    partitions: int
    snapshot: int
    compacted_after: int = 0
    kind: Kind = MERGE_ON_READ


def plans(
    shapes: dict[str, Shape], compacted_after: Sequence[int] = (0,), kinds: Sequence[Kind] = (MERGE_ON_READ,)
) -> st.SearchStrategy[Plan]:
    """Any layout of these, of any of these kinds, compacted by any of these numbers."""
    return st.builds(
        Plan,
        shape=st.sampled_from(list(shapes)).map(lambda name: shapes[name]),
        buckets=st.integers(1, 3),
        partitions=st.integers(1, 3),
        snapshot=st.integers(0, 4),
        compacted_after=st.sampled_from(compacted_after),
        kind=st.sampled_from(kinds),
    )


@contextmanager
def world(plan: Plan) -> Iterator[World]:
    """A world in a directory of its own."""
    directory = Path(tempfile.mkdtemp(prefix="binlake-history-"))
    made = World(plan, directory)
    try:
        yield made
    finally:
        made.ingest.pool.shutdown()
        shutil.rmtree(directory)


class World:
    """A source table, its topic, and the lake table that follows it.

    ``instants`` and ``pictures``: of every commit, its requested time and the rows the table must hold after it.
    """

    rs_every = 4

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.shape, self.partitions = plan.shape, plan.partitions
        self.source = Source(plan.shape)
        is_global = not TableKind(plan.kind.type, plan.kind.index).scope.by_partition
        self.model = TableModel(plan.shape, is_global) if plan.shape.key else None
        self.keyless = None if plan.shape.key else KeylessModel(plan.shape)
        self.ingest = Ingest.at(directory, plan.shape, plan.buckets, plan.compacted_after, plan.kind)
        self.binlog = [0, 1, 4]
        self.at_position = 0
        self.topic: list[list[Delivered]] = [[] for _ in range(plan.partitions)]
        self.applied = [0] * plan.partitions
        self.emitted = 0
        self.held: list[Change] = []
        self.instants: list[str] = []
        self.pictures: list[list[Row]] = []
        self._snapshot(plan.snapshot)

    def live(self, rounds: Sequence[Round]) -> None:
        """Go through the rounds; then everything comes at last, and the table is the source's table."""
        for one in rounds:
            self._live_round(one)
        self._emit(len(self.source.log))
        while self.held:
            self.release(0)
        while self._next([100] * 3):
            self._batch([100] * 3, 2, shuffle=True)
        if self.is_created():
            live = [self.shape.lake_row(row) for row in self.source.rows]
            assert_same("the model", self.expected(), live, [c for c in self.columns() if c not in _META])
            self.check(with_rs=True)

    def _live_round(self, one: Round) -> None:
        for kind, *numbers in one.statements:
            statement: Callable[[int, int, int], None] = getattr(self, kind)
            statement(*numbers)
        for kind, number in one.troubles:
            trouble: Callable[[int], None] = getattr(self, kind)
            trouble(number)
        self._emit(one.emitted)
        if one.death == "before the commit":
            self._leave_files_behind(one.takes)
        else:
            self._batch(one.takes, one.chunks, shuffle=one.shuffle, keep_position=one.death == "before the ledger")
        if one.death != "no":
            self.ingest.restart()

    # -- statements ------------------------------------------------------------------------------------------------

    def _snapshot(self, count: int) -> None:
        rows: list[Row] = []
        for number in range(count):
            row = self._row(number, number, number)
            if not any(self._same_key(row, other) for other in rows):
                rows.append(row)
        self.source.apply([Change(ordering_value(0, 0, _SNAPSHOT_S), 0, None, row) for row in rows])
        self.snapshot_events = len(rows)

    def _row(self, key: int, seed: int, region: int) -> Row:
        code, place = CODES[key % len(CODES)], REGIONS[region % len(REGIONS)]
        return {"id": key % 4, "code": code, "region": place, **values(seed)}

    def _same_key(self, a: Row, b: Row) -> bool:
        return bool(self.shape.key) and all(a[name] == b[name] for name in self.shape.key)

    def _order(self) -> int:
        if self.at_position:
            self.at_position -= 1
        else:
            self.binlog[2] += 37
        return ordering_value(*self.binlog)

    def transaction(self, statements: int, *_: int) -> None:
        """The next statements have one position, and their rows count from 0 each: MariaDB since 11.4
        (``binlog_legacy_event_pos=OFF``). Without a key such events are known by content, which is not tried here."""
        if self.shape.key:
            self._order()
            self.at_position = statements

    def _at(self, number: int) -> Row:
        return self.source.rows[number % len(self.source.rows)]

    def insert(self, key: int, seed: int, region: int) -> None:
        """A new row, or the same key written over; without a key, up to three equal rows."""
        row = self._row(key, seed, region)
        old = next((r for r in self.source.rows if self._same_key(r, row)), None)
        copies = 1 if self.shape.key else 1 + region % 3
        order = self._order()
        self.source.apply([Change(order, n, old, {**row, **self._key_of(old)}) for n in range(copies)])

    def _key_of(self, row: Row | None) -> Row:
        return {name: row[name] for name in self.shape.key} if row else {}

    def update(self, at: int, seed: int, region: int) -> None:
        """Other values; the region changes for some numbers."""
        if self.source.rows:
            old = self._at(at)
            place = REGIONS[region] if region < len(REGIONS) else old["region"]
            self.source.apply([Change(self._order(), 0, old, {**old, **values(seed), "region": place})])

    def delete(self, at: int, _seed: int, _region: int) -> None:
        """A row goes."""
        if self.source.rows:
            self.source.apply([Change(self._order(), 0, self._at(at), None)])

    def change_key(self, at: int, key: int, form: int) -> None:
        """A changed primary key comes as delete and create at one position; some formats send one update."""
        if not (self.source.rows and self.shape.key):
            return
        old = self._at(at)
        new = {**old, "id": key % 4, "code": CODES[key % len(CODES)]}
        if any(self._same_key(r, new) for r in self.source.rows):
            return
        in_transaction = self.at_position > 0
        order = self._order()
        if form % 2 and self.shape.partition and not in_transaction:
            self.source.apply([Change(order, 0, old, new)])
        else:
            self.source.apply([Change(order, 0, old, None), Change(order, 0, None, new)])

    def shift_keys(self, *_: int) -> None:
        """``UPDATE t SET id = id + 1 ORDER BY id DESC``: one event whose rows pass keys on to each other."""
        if self.shape.key == ("id",):
            order = self._order()
            for n, old in enumerate(sorted(self.source.rows, key=lambda r: -int(r["id"]))):
                new = {**old, "id": old["id"] + 1}
                self.source.apply([Change(order, n, old, None), Change(order, n, None, new)])

    def truncate(self, number: int, *_: int) -> None:
        """Half of them: a table that is often empty shows little. DDL ends a transaction."""
        self.at_position = 0
        if number % 2:
            self.source.apply([Change(self._order(), 0, None, None)])

    def new_file(self, number: int, *_: int) -> None:
        """The next binlog file, or a failover to a server that counts anew."""
        self.at_position = 0
        epoch, file = self.binlog[:2]
        self.binlog = [epoch + 1, 1, 4] if number == 0 else [epoch, file + 1, 4]

    # -- the connector and the topic -------------------------------------------------------------------------------

    def _emit(self, count: int) -> None:
        for change in self.source.log[self.emitted : self.emitted + count]:
            self._produce(change)
        self.emitted = min(len(self.source.log), self.emitted + count)

    def restart_connector(self, back: int) -> None:
        """It died before it stored its position: events come again, in order."""
        self.emitted = min(self.emitted, max(self._first_repeatable(), self.emitted - back))

    def hold(self, _: int) -> None:
        """The next event comes late."""
        if self.emitted < len(self.source.log) and self._alone(self.source.log[self.emitted]):
            self.held.append(self.source.log[self.emitted])
            self.emitted += 1

    def release(self, at: int) -> None:
        """An event that was held comes now."""
        if self.held:
            self._produce(self.held.pop(at % len(self.held)))

    def repeat(self, at: int) -> None:
        """One old event comes once more, whatever came since."""
        old = [c for c in self.source.log[self._first_repeatable() : self.emitted] if self._alone(c)]
        if old:
            self._produce(old[at % len(old)])

    def _first_repeatable(self) -> int:
        """Nothing tells a repeated snapshot row without a key from another row of that content."""
        return 0 if self.shape.key else self.snapshot_events

    def _alone(self, change: Change) -> bool:
        """Whether no other row of its event may be about the same key: only then its order alone decides."""
        if self.at_position and change.order == ordering_value(*self.binlog):
            return False
        return not self.shape.key or sum(c.order == change.order for c in self.source.log) == 1

    def _produce(self, change: Change) -> None:
        image = change.after or change.before
        if image is None:
            partition = 0
        elif self.shape.key:
            partition = zlib.crc32(self.shape.record_key(image).encode()) % self.partitions
        else:
            partition = (change.order // 37 + change.row) % self.partitions
        self.topic[partition].append(Delivered(change, partition, len(self.topic[partition])))

    # -- the stream ------------------------------------------------------------------------------------------------

    def _next(self, takes: Sequence[int]) -> list[Delivered]:
        starts = [self.ingest.positions.get(p, 0) for p in range(self.partitions)]
        return [d for p, start in enumerate(starts) for d in self.topic[p][start : start + takes[p]]]

    def is_created(self) -> bool:
        """Whether there is a lake table yet."""
        return self.ingest.lake.get(self.ingest.rules) is not None

    def _leave_files_behind(self, takes: Sequence[int]) -> None:
        records = [d for d in self._next(takes) if not d.change.is_truncate]
        if records and self.is_created():
            self.ingest.leave_files_behind(records)

    def _batch(self, takes: Sequence[int], chunks: int, *, shuffle: bool, keep_position: bool = False) -> None:
        records = self._next(takes)
        if not (self.is_created() or any(not d.change.is_truncate for d in records)):
            for d in records:  # a TRUNCATE of a table that is not there is passed over
                self.ingest.positions[d.partition] = self.applied[d.partition] = d.offset + 1
            return
        if not records:
            return
        fresh = [d for d in records if d.offset >= self.applied[d.partition]]
        outcome, counts = self.ingest.run(records, chunks=chunks, shuffle=shuffle, keep_position=keep_position)
        assert counts.already_applied == sum(not d.change.is_truncate for d in records) - sum(
            not d.change.is_truncate for d in fresh
        )
        assert counts.read == len(records) - counts.already_applied == counts.applied + counts.superseded
        if outcome.instant is not None:
            self.instants.append(outcome.instant)
            for d in records:
                self.applied[d.partition] = max(self.applied[d.partition], d.offset + 1)
            self._model(fresh)
            self.pictures.append(self.expected())
            self.check(with_rs=len(self.instants) % self.rs_every == 0)

    def _model(self, fresh: Sequence[Delivered]) -> None:
        if self.model is not None:
            self.model.commit(fresh)
        if self.keyless is not None:
            self.keyless.commit(fresh)

    # -- the truth -------------------------------------------------------------------------------------------------

    def expected(self) -> list[Row]:
        """The table's rows by the model."""
        if self.model is not None:
            return self.model.rows()
        assert self.keyless is not None
        return [{"_hoodie_partition_path": self.shape.path(row), **row} for row in self.keyless.rows()]

    def columns(self) -> list[str]:
        """What is compared: of a table without a key no one row's order or key is promised."""
        added = [] if self.shape.transform == "identity" else [self.shape.partition_name]
        return [*TYPES, *added, *(_META if self.shape.key else _META[2:])]

    def check(self, *, with_rs: bool) -> None:
        """The readers show what the model holds."""
        expected = self.expected()
        assert_same("binlake", rows_of(self.ingest.root), expected, self.columns())
        if with_rs:
            assert_same("hudi-rs", hudi_rs.snapshot(self.ingest.uri), expected, self.columns())
