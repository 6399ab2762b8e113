"""Where batches are cut so that they hold whole transactions: random sources, deaths, and what is seen of them when."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest

from binlake.decode.changes import RawRecords
from binlake.decode.messages.transactions import numbered
from binlake.position.ledger import Ledger
from binlake.rows.tasks.boundary import Boundary, Survey
from binlake.source.offsets import OffsetMap, OffsetRange, Offsets
from binlake.stream.transactions import Transactions, survey_records
from tests.binlake.stream.topic_log import settings
from tests.hypothesis_profile import scaled

TOPIC = "p.transaction"
TABLES = {"bank.a": 3, "bank.b": 1}
_KAFKA = {"bootstrap_servers": "127.0.0.1:1", "topics": [f"p.{table}" for table in TABLES], "transaction_topic": TOPIC}
SETTINGS = settings("memory://boundary", [], kafka=_KAFKA, batch={"transaction_consistent": True})


@dataclass
class Connector:
    """A connector as recorded: it sends transactions, and after a death some of them again, the first one in part.

    Args:
        parts: of the transaction topic.
        loses: whether a death takes records away that were sent last, of each partition other ones: a producer sends
            each partition's records by themselves.
    """

    random: Random
    parts: int = 1
    loses: bool = False
    log: dict[tuple[str, int], list[tuple[int, bytes]]] = field(default_factory=dict)
    clock_ms: int = 1000
    rows: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    truncates: set[str] = field(default_factory=set)
    sent: list[tuple[tuple[str, int], tuple[int, int]]] = field(default_factory=list)
    doing: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        places = [
            *((TOPIC, p) for p in range(self.parts)),
            *((f"p.{t}", p) for t, parts in TABLES.items() for p in range(parts)),
        ]
        self.log = {place: [] for place in places}

    def run(self, count: int, deaths: float) -> None:
        """Send so many transactions."""
        at, skip, furthest = 0, 0, -1
        planned = [self._plan(n) for n in range(count)]
        while at < count:
            name, rows = planned[at]
            self.doing = at, skip
            dies = (at > furthest or self.loses) and self.random.random() < deaths
            sent = self._send(name, rows[skip:], stop_after=self.random.randint(0, len(rows) - skip) if dies else None)
            furthest = max(furthest, at)
            at, skip = at + 1, 0
            if dies:  # the offset that it goes on from is somewhere before; to start again takes a moment
                self.clock_ms += 5
                if self.loses and self.sent:
                    at, skip = self._lose()
                    continue
                at = self.random.randint(max(0, at - 4), at - 1)
                skip = self.random.randint(0, max(0, min(sent, len(planned[at][1]) - 1)))

    def _lose(self) -> tuple[int, int]:
        """Take away what was sent last. Returns the transaction and row from which all is sent again."""
        first = max(0, len(self.sent) - self.random.randint(1, 12))
        unsure, goes_on = self.sent[first:], self.sent[first][1]
        for place in sorted({place for place, _ in unsure}):
            mine = sum(one == place for one, _ in unsure)
            lost = self.random.randint(0, mine)
            del self.log[place][len(self.log[place]) - lost :]
        self.sent.clear()
        return goes_on

    def _plan(self, n: int) -> tuple[str, list[tuple[str, int]]]:
        kind = self.random.random()
        many = 0 if kind < 0.1 else self.random.randint(1, 6)
        rows = [(self.random.choice(["bank.a", "bank.a", "bank.b", "other.c"]), 10 * n + i) for i in range(many)]
        if kind < 0.05:  # a statement has no END
            self.truncates.add(f"t-{n}")
            rows = [("bank.a", 10 * n)]
        return f"{'ddl' if 0.05 <= kind < 0.08 else 't'}-{n}", rows

    def _send(self, name: str, rows: Sequence[tuple[str, int]], stop_after: int | None) -> int:
        self._mark({"status": "BEGIN", "id": name, "event_count": None, "data_collections": None})
        counts: dict[str, int] = {}
        for sent, (table, key) in enumerate(rows):
            if stop_after is not None and sent >= stop_after:
                return sent
            counts[table] = counts.get(table, 0) + 1
            self._row(name, table, key, counts[table])
            self.doing = self.doing[0], self.doing[1] + 1
        if stop_after is None and not name.startswith("ddl") and name not in self.truncates:
            told = [{"data_collection": t, "event_count": n} for t, n in counts.items()]
            self._mark({"status": "END", "id": name, "event_count": len(rows), "data_collections": told})
        return len(rows)

    def _mark(self, document: dict[str, object]) -> None:
        part = int(str(document["id"]).rpartition("-")[2]) % self.parts
        self._add((TOPIC, part), document)

    def _row(self, name: str, table: str, key: int, order: int) -> None:
        if table in TABLES:
            self.rows.setdefault(name, set()).add((table, key))
            op = "t" if name in self.truncates else "u"
            database, short = table.split(".")
            member = {"id": name, "total_order": order, "data_collection_order": order}
            row = {"op": op, "source": {"db": database, "table": short}, "transaction": member, "key": key}
            self._add((f"p.{table}", key % TABLES[table]), row)

    def _add(self, place: tuple[str, int], document: dict[str, object]) -> None:
        self.log[place].append((self._tick(), json.dumps(document).encode()))
        self.sent.append((place, self.doing))

    def _tick(self) -> int:
        self.clock_ms += self.random.choice([0, 0, 1])
        return self.clock_ms

    def read(self, of: OffsetRange) -> RawRecords:
        held = self.log[of.topic, of.partition][of.start : of.end]
        stamps = np.array([ms for ms, _ in held], dtype=np.int64)
        offsets = np.arange(of.start, of.end, dtype=np.int64)
        return RawRecords(of.topic, of.partition, offsets, stamps, [None] * len(held), [value for _, value in held])

    def end(self) -> Offsets:
        return Offsets.of_places((topic, partition, len(records)) for (topic, partition), records in self.log.items())


@dataclass
class Reader:
    """A stream as far as it is about boundaries."""

    source: Connector
    ledger: Ledger = field(default_factory=lambda: Ledger("s"))
    seen: dict[str, set[tuple[str, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger.begin_at(Offsets.of_places((topic, p, 0) for topic, p in self.source.log))
        self.rules = Transactions(SETTINGS, self.ledger, self._survey, self._offset_at)

    def step(self, end: OffsetMap) -> Boundary:
        cut = self.rules.cut(list(self.ledger.positions.ranges_to(end)))
        for r in cut.ranges:
            self._take(self.source.read(r))
            self.ledger.begin_at({r.topic: {r.partition: r.end}})
        return cut

    def _survey(self, topic: str, ranges: Sequence[OffsetRange]) -> Survey:
        return survey_records(topic, [self.source.read(r) for r in ranges])

    def _offset_at(self, topic: str, partition: int, time_ms: int) -> int:
        return sum(at < time_ms for at, _ in self.source.log[topic, partition])

    def _take(self, records: RawRecords) -> None:
        for value in records.values:
            document = json.loads(value or b"")
            if records.topic == TOPIC:
                continue
            name = document["transaction"]["id"]
            table = f"{document['source']['db']}.{document['source']['table']}"
            self.seen.setdefault(name, set()).add((table, document["key"]))

    def halves(self) -> list[str]:
        """Transactions of which some rows are there and some are not."""
        return [name for name, rows in self.seen.items() if rows != self.source.rows[name]]


def _partial(source: Connector, start: Offsets, random: Random) -> Offsets:
    """An end somewhere on the way, another one for each partition."""
    return Offsets.of_places((t, p, random.randint(start.at(t, p), until)) for t, p, until in source.end().places())


def _moment(source: Connector, start: Offsets, random: Random) -> Offsets:
    """The ends at about one time, which differ by less than a connector needs to start again."""
    times = [ms for records in source.log.values() for ms, _ in records]
    moment = random.choice(times) if times else 0
    ends = ((*place, sum(ms <= moment + random.randint(0, 3) for ms, _ in log)) for place, log in source.log.items())
    return Offsets.of_places(ends).furthest(start)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("seed", range(scaled(750)))
def test_a_batch_is_named_by_its_newest_transaction(seed: int, parts: int) -> None:
    """Whatever the connector sends again, and which partitions of the transaction topic have one time: what was read is
    all up to the newest name so far."""
    random = Random(seed)
    source = Connector(random, parts)
    source.run(random.randint(1, 25), deaths=random.choice([0.0, 0.2]))
    reader, planned, newest = Reader(source), Offsets(), -1
    for _ in range(random.randint(1, 12)):
        planned = _partial(source, planned, random)
        last = reader.step(planned).last
        newest = max(newest, newest if last is None else numbered(last)[1])
        named = {name for name in source.rows if numbered(name)[1] <= newest}
        assert set(reader.seen) - source.truncates == named - source.truncates
        assert reader.rules.recorded is not None
        if not reader.rules.recorded.split:
            assert set(reader.seen) == named


@pytest.mark.parametrize("loses", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("seed", range(scaled(750)))
def test_no_batch_holds_half_a_transaction(seed: int, parts: int, loses: bool) -> None:
    random = Random(seed)
    source = Connector(random, parts, loses)
    source.run(random.randint(1, 25), deaths=random.choice([0.0, 0.2]))
    reader = Reader(source)
    planned = Offsets()
    for _ in range(random.randint(1, 12)):
        planned = (_moment if loses else _partial)(source, planned, random)
        reader.step(planned)
        assert reader.halves() == []
    # Nothing of another partition can come before what is in the topic then.
    source.clock_ms += 1
    source._send("ddl-0", [], None)
    source._send("ddl-1", [], None)
    for _ in range(3):
        cut = reader.step(source.end())
        assert reader.halves() == []
    assert cut.waiting is None
    assert reader.seen == source.rows


def test_without_a_boundary_halves_are_seen() -> None:
    """The control: the same readers, batches as planned."""
    halves = 0
    for seed in range(20):
        random = Random(seed)
        source = Connector(random)
        source.run(20, deaths=0.0)
        reader = Reader(source)
        for _ in range(5):
            positions = reader.ledger.positions
            for r in positions.ranges_to(_partial(source, positions, random)):
                reader._take(source.read(r))
                reader.ledger.begin_at({r.topic: {r.partition: r.end}})
            halves += len(reader.halves())
    assert halves > 20


def test_a_transaction_without_end_is_waited_for_and_named() -> None:
    source = Connector(Random(1))
    source._send("t-1", [("bank.a", 1), ("bank.b", 2)], None)
    source._send("t-2", [("bank.a", 3), ("bank.b", 4)], 1)
    reader = Reader(source)
    cut = reader.step(source.end())
    assert (cut.last, cut.waiting) == ("t-1", ("t-2", 1))
    assert cut.notices == ("1 record waits for the end of transaction t-2",)
    assert reader.step(source.end()).waiting == ("t-2", 1)
    source._send("t-2", [("bank.a", 3), ("bank.b", 4)], None)
    cut = reader.step(source.end())
    assert (cut.last, cut.waiting) == ("t-2", None)
    assert reader.seen == source.rows


def test_a_batch_with_a_truncate_and_without_its_transaction_is_split_for_who_reads_cuts() -> None:
    source = Connector(Random(1))
    source.truncates.add("t-2")
    source._send("t-1", [("bank.a", 1)], None)
    source._send("t-2", [("bank.b", 2)], None)
    reader, end = Reader(source), source.end()

    def step(marks: int) -> tuple[str | None, bool]:
        cut = reader.step(end.merge({TOPIC: {0: marks}}))
        assert reader.rules.recorded is not None
        return cut.last, reader.rules.recorded.split

    assert step(2) == ("t-1", True)
    assert reader.seen == source.rows
    assert step(2) == (None, True)
    assert step(3) == ("t-2", False)  # nothing need come behind it
    assert step(3) == (None, False)


def test_tables_that_the_stream_does_not_read_are_not_waited_for() -> None:
    source = Connector(Random(1))
    source._send("t-1", [("bank.a", 1), ("other.c", 2)], None)
    assert Reader(source).step(source.end()).waiting is None


def test_a_reader_that_begins_late_takes_what_it_finds_of_the_first_transaction() -> None:
    source = Connector(Random(1))
    source._send("t-1", [("bank.a", 1), ("bank.a", 4), ("bank.b", 2)], None)
    source._send("t-2", [("bank.a", 7)], None)
    reader = Reader(source)
    reader.ledger.begin_at({TOPIC: {0: 1}, "p.bank.a": {1: 1}})
    cut = reader.step(source.end())
    assert (cut.last, cut.waiting) == ("t-2", None)
    assert reader.seen == {"t-1": {("bank.a", 4), ("bank.b", 2)}, "t-2": {("bank.a", 7)}}
