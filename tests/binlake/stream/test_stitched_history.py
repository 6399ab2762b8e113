"""Random histories of the sources of a stitched table, cut into batches anywhere, delivered twice, killed in between.

The model knows the events that are applied of each source, and joins them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.tables.audit import audit
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import open_storage
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.binlake.stream.test_exactly_once import runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs
from tests.selection import first

ORDERS, CLICKS = "s.shop.orders", "s.shop.clicks"
SCHEMAS = {
    "shop.orders": {"columns": {"id": "bigint", "owner": "varchar(40)", "cents": "int"}, "key": ["id"]},
    "shop.clicks": {"columns": {"no": "bigint", "order_id": "int", "n": "int"}, "key": ["no"]},
}
#: What a source says of a key: its columns in the lake; None after a delete.
Said = dict[int, tuple[Any, ...] | None]


@dataclass
class Source:
    """A source table. ``states``: what each of its topic's prefixes says, by the number of records."""

    topic: str
    rows: dict[int, tuple[int, Any]] = field(default_factory=dict)
    said: Said = field(default_factory=dict)
    states: list[Said] = field(default_factory=lambda: [{}])


@dataclass
class History:
    """Statements at both sources, and their topics."""

    random: random.Random
    log: TopicLog = field(default_factory=TopicLog)
    orders: Source = field(default_factory=lambda: Source(ORDERS))
    clicks: Source = field(default_factory=lambda: Source(CLICKS))
    position: int = 0

    def __post_init__(self) -> None:
        for topic in (ORDERS, CLICKS):
            self.log.records[topic, 0] = []

    def statement(self) -> None:
        self.position += 10
        source = self.random.choice([self.orders, self.clicks])
        if self.random.random() < 0.04:
            self._truncate(source)
        elif source is self.orders:
            self._order(self.random.randrange(8), self.random.choice([None, "ann", "bo"]), self.random.randrange(9))
        else:
            self._click(self.random.randrange(6), self.random.randrange(8), self.random.randrange(100))
        while len(source.states) <= len(self.log.records[source.topic, 0]):
            source.states.append(dict(source.said))

    def again(self, source: Source) -> None:
        """The connector was killed: it sends its last records once more."""
        records = self.log.records[source.topic, 0]
        last = records[-self.random.randrange(1, 6) :]
        if any(value is not None and json.loads(value)["op"] == "t" for _, value in last):
            return  # Kafka Connect's own offsets come after a TRUNCATE's row events here
        records += last
        source.states += [dict(source.said)] * len(last)

    def _put(self, source: Source, op: str, key: int, row: dict[str, Any], before: dict[str, Any] | None) -> None:
        table, name = source.topic.rpartition(".")[2], "id" if source is self.orders else "no"
        self.log.add(source.topic, event(table, op, self.position, row, before), {name: key})

    def _order(self, key: int, owner: str | None, cents: int) -> None:
        old = self.orders.rows.get(key)
        before = None if old is None else {"id": key, "owner": old[1], "cents": old[0]}
        if before is not None and self.random.random() < 0.4:
            self._put(self.orders, "d", key, before, None)
            del self.orders.rows[key]
            self.orders.said[key] = None
            return
        row = {"id": key, "owner": owner, "cents": cents}
        self._put(self.orders, "c" if before is None else "u", key, row, before)
        self.orders.rows[key] = cents, owner
        self.orders.said[key] = owner, cents * 2

    def _click(self, number: int, order: int, n: int) -> None:
        """``order_id`` is unique at the source, and an UPDATE may change it."""
        old, rows = self.clicks.rows.get(number), self.clicks.rows
        if any(row[0] == order and other != number for other, row in rows.items()):
            return
        before = None if old is None else {"no": number, "order_id": old[0], "n": old[1]}
        if before is not None and old is not None and self.random.random() < 0.3:
            self._put(self.clicks, "d", number, before, None)
            del rows[number]
            self.clicks.said[old[0]] = None
            return
        row = {"no": number, "order_id": order, "n": n}
        self._put(self.clicks, "c" if before is None else "u", number, row, before)
        rows[number] = order, n
        if old is not None and old[0] != order:
            self.clicks.said[old[0]] = None
        self.clicks.said[order] = number, n

    def _truncate(self, source: Source) -> None:
        table = source.topic.rpartition(".")[2]
        self.log.add(source.topic, event(table, "t", self.position, {}) | {"before": None, "after": None}, None)
        source.rows.clear()
        source.said = dict.fromkeys(source.said)

    def expected(self, upto: Offsets, on_delete: str) -> dict[int, tuple[Any, ...]]:
        """The stitched table after these offsets; ``on_delete``: what a delete of a click does."""
        orders, clicks = (s.states[upto.at(s.topic, 0)] for s in (self.orders, self.clicks))
        return stitched_rows(orders, clicks, on_delete)


def stitched_rows(
    orders: Mapping[int, tuple[Any, ...] | None], clicks: Mapping[int, tuple[Any, ...] | None], on_delete: str
) -> dict[int, tuple[Any, ...]]:
    """The stitched table of what both sources said last of each key, None for a delete; ``on_delete``: what that of a
    click does."""
    found = {}
    for key in orders.keys() | clicks.keys():
        order, click = orders.get(key), clicks.get(key)
        hidden = on_delete == "row" and key in clicks and click is None
        if (order is not None or click is not None) and not hidden:
            found[key] = (*(order or (None, None)), *(click or (None, None)))
    return found


def settings(lake: Path, on_delete: str) -> Settings:
    sources = [
        {"name": "orders", "match": "shop.orders", "columns": {"owner": "owner", "twice": "cents * 2"}},
        {"name": "clicks", "match": "shop.clicks", "key": ["order_id"], "on_delete": on_delete},
    ]
    compaction = {"mode": "inline", "after_commits": 4}
    document = {
        "name": "shop",
        "lake": {"uri": str(lake), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [ORDERS, CLICKS]},
        "source": {"schemas": SCHEMAS},
        "tables": {
            "defaults": {"buckets": 2, "compaction": compaction},
            "stitched": [{"table": "wide.orders", "key": ["id"], "sources": sources}],
        },
    }
    return Settings.parse(json.dumps(document))


def lake_rows(lake: Path) -> dict[int, tuple[Any, ...]]:
    """The table through hudi-rs, when fsck and audit find nothing wrong with it."""
    place = lake / "wide" / "orders"
    storage = open_storage(str(place))
    findings = [*fsck(storage, grace_ms=0).findings, *audit(storage).findings]
    assert [f.what for f in findings if f.severity is Severity.ERROR] == []
    found = hudi_rs.snapshot(place).to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    assert [row for row in found if str(row["id"]) != row["_hoodie_record_key"]] == []
    return {row["id"]: tuple(row.get(name) for name in ("owner", "twice", "no", "n")) for row in found}


def step(history: History, at: Offsets) -> Offsets:
    """Some records further, in one of the topics or in both."""
    pick = history.random
    further = {}
    for topic in (ORDERS, CLICKS):
        left = len(history.log.records[topic, 0]) - at.at(topic, 0)
        further[topic] = {0: at.at(topic, 0) + pick.choice([0, pick.randint(0, left), left])}
    return Offsets(further)


@pytest.mark.full
@pytest.mark.parametrize("on_delete", ["columns", "row"])
@pytest.mark.parametrize("seed", first(1, range(scaled(20, least=2, divisor=10))))
def test_every_batch_gives_the_join_of_what_is_applied(tmp_path: Path, seed: int, on_delete: str) -> None:
    history = History(random.Random(f"{seed} {on_delete}"))
    conf, root = settings(tmp_path, on_delete), open_storage(str(tmp_path), {"fsync": "false"})
    at, stream = Offsets({ORDERS: {0: 0}, CLICKS: {0: 0}}), runner(conf, root)
    for number in range(14):
        for _ in range(history.random.randint(1, 12)):
            history.statement()
        if history.random.random() < 0.3:
            history.again(history.random.choice([history.orders, history.clicks]))
        at = step(history, at)
        if history.random.random() < 0.3:
            stream = died(history, conf, root, number, at)
        done = stream.run(number, at, 0, LocalEngine(history.log))
        assert [table.error for table in done.tables if table.error] == []
        for table in done.tables:
            fates = table.applied + table.superseded + table.filtered + table.quarantined
            assert table.events_read == fates + table.already_applied
        if (tmp_path / "wide").exists():
            assert lake_rows(tmp_path) == history.expected(at, on_delete), f"batch {number}"
    assert not (tmp_path / "_quarantine").exists()


def test_a_truncate_reaches_what_another_group_hides(tmp_path: Path) -> None:
    """The row of an order is kept in a tombstone only: its click was deleted before it came."""
    history = History(random.Random(1))
    conf, root = settings(tmp_path, "row"), open_storage(str(tmp_path), {"fsync": "false"})
    click, order = {"no": 1, "order_id": 5, "n": 7}, {"id": 5, "owner": "ann", "cents": 1}
    truncate = event("orders", "t", 300, {}) | {"before": None, "after": None}
    steps = [
        (CLICKS, event("clicks", "d", 100, click)),
        (ORDERS, event("orders", "c", 200, order)),
        (ORDERS, truncate),
        (CLICKS, event("clicks", "c", 400, click)),
    ]
    for number, (topic, said) in enumerate(steps):
        history.log.add(topic, said, None if said is truncate else {"no": 1} if topic == CLICKS else {"id": 5})
        runner(conf, root).run(number, history.log.end(), 0, LocalEngine(history.log))
        assert lake_rows(tmp_path) == ({5: (None, None, 1, 7)} if number == 3 else {})


def died(history: History, conf: Settings, root: Any, number: int, at: Offsets) -> BatchRunner:  # noqa: ANN401
    """A process that dies at one of its calls of the store, and the next process."""
    fate = Fate(history.random.randrange(60), history.random.choice([Answer.DONE, Answer.LOST]))
    try:
        runner(conf, DyingStore(root, fate)).run(number, at, 0, LocalEngine(history.log))
    except Killed:
        fate.settle()
    return runner(conf, root)
