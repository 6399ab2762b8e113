"""What happens at the sources, and to the lake that follows them, until the lake is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from binlake.load.replay.quarantine import replay
from binlake.load.replay.quarantine_records import QuarantineSelection, held_records
from binlake.settings import Settings
from binlake.source.offsets import OffsetRange, Offsets
from binlake.tables.quarantine import QuarantineTable
from binlake.tables.seal import Seal
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.load.replay.dumped import replay as replay_dumps
from tests.binlake.stream.topic_log import services
from tests.whole.lake_before.running import HERE, Process, command, configure
from tests.whole.lake_before.sequel import dump, transfer
from tests.whole.lake_before.sources import KEYLESS, Bank, Shop

#: With so many instants on the timeline the next commits move some to the history: 5 + 20 stay, 50 go at once.
NEARLY_ARCHIVED = 68
ORDERS = "s.shop.orders"


@dataclass
class Before:
    """The first part of the story. ``place``: where the lakes and the dump are."""

    place: Path
    shop: Shop = field(default_factory=Shop)
    bank: Bank = field(default_factory=Bank)
    _running: Process | None = None

    def tell(self) -> None:
        """All of it. ``place`` must be the working directory."""
        configure(self.place, uri=HERE, more=(), indexed=("id", "stock"))
        self._begin()
        self._quarantine()
        self._skip()
        self._grow()
        self._ddl()
        self._last()
        self._bank()

    def _start(self) -> None:
        """A new process of the shop's stream."""
        if self._running is not None:
            self._running.close()
        self._running = Process(self.place, "shop", self.shop.log)
        self._running.registry.learn(self.shop.ddl)

    @property
    def stream(self) -> Process:
        """The one that runs."""
        assert self._running is not None
        return self._running

    def _begin(self) -> None:
        shop = self.shop
        self._start()
        shop.create("goods", {"id": "int", "name": "varchar(20)", "qty": "int"})
        shop.define_notes()
        for key in range(8):
            shop.put("orders", key, owner=f"o{key}", price=f"{key}.50", day=20_000 + key)
            shop.put("parts", key, region=("eu", "us", "asia")[key % 3], stock=key)
            shop.put("goods", key, name=f"g{key}", qty=key)
            shop.put("items_00", key, title=f"zero {key}")
            shop.put("items_01", key, title=f"one {key}")
            shop.put("people", key, name=f"name {key % 5}", town="here")
            shop.put("slow", key, note="first")
            shop.note(key, f"note {key}")
            shop.visit(key, "start")
        self.stream.registry.learn(shop.ddl)
        self.stream.feed()
        shop.truncate("orders")
        shop.truncate("items_01")
        for key in range(20):
            shop.put("orders", key, owner="after the TRUNCATE", price="1.00", day=20_100)
        shop.put("items_01", 3, title="after the TRUNCATE")
        self.stream.feed()
        dump(self.place, shop, 0, "orders", 500)
        dump(self.place, shop, 0, "parts", 500)
        replay_dumps(Settings.load(self.place / "shop.json"))
        configure(self.place, uri=HERE, more=())
        self._start()

    def _quarantine(self) -> None:
        """Two records are replayed, and of one of them the quarantine forgets it; one can be replayed later."""
        shop = self.shop
        shop.stray("orders", 600, owner="replayed", price="6.00", colour="red")
        shop.stray("orders", 601, owner="replayed, not marked", price="6.01", colour="blue")
        shop.log.add(ORDERS, b'{"op": "c", "after": {"owner": "broken', None)
        shop.log.add("s.shop.people", b'{"op": "c", "after": {"name": "broken', None)
        self.stream.feed()
        configure(self.place, uri=HERE, more=("colour",))
        shop.widen("orders", "colour")
        self._start()
        forget_replay(self.stream, b"not marked")
        self._start()
        shop.stray("orders", 602, owner="waits", price="6.02", size="big")
        self.stream.feed()

    def _skip(self) -> None:
        """Three records of a topic are gone from Kafka, and passed over on demand."""
        start = len(self.shop.log.records[ORDERS, 0])
        for _ in range(3):
            self.shop.log.add(ORDERS, b"{gone", None)
        self.stream.ledger.note_skipped(OffsetRange(ORDERS, 0, start, start + 3))
        self.stream.ledger.begin_at({ORDERS: {0: start + 3}})
        self.stream.ledger.save(self.stream.state)
        self._start()

    def _grow(self) -> None:
        """Small batches until instants were archived, and the next archival is near."""
        number = 0
        while not self._is_long():
            number += 1
            self._one_batch(number)
            self.stream.feed()

    def _is_long(self) -> bool:
        timeline = HudiTable.open(open_storage(str(self.place / "lake/shop/orders"))).timeline
        return bool(timeline.history().files) and len(timeline.completed()) >= NEARLY_ARCHIVED

    def _one_batch(self, number: int) -> None:
        shop, key = self.shop, number % 20
        shop.put("orders", key, owner=f"batch {number}", price=f"{number}.25", day=20_200 + number)
        shop.visit(1000 + number, f"page {number % 4}")
        if number % 3 == 0:
            shop.leave(1000 + number - 2)
            shop.delete("orders", key)
        if number % 6 == 0:
            shop.put("parts", number % 8, region=("us", "asia", "eu")[number % 3], stock=number)
            shop.put("items_00", key, title=f"batch {number}")
            shop.put("people", number % 8, name=f"name {number % 5}")
            shop.put("goods", number % 8, qty=number)
            shop.note(number % 8, f"batch {number}")

    def _ddl(self) -> None:
        shop = self.shop
        shop.add("goods", "tier", "int", 3, "NOT NULL DEFAULT 3")
        shop.rename("goods", "name", "label")
        shop.modify("goods", "qty", "bigint")
        self.stream.registry.learn(shop.ddl)
        shop.put("goods", 1, label="renamed", tier=4, qty=2**40)
        shop.delete("goods", 2)
        shop.note(7, None)
        self.stream.feed()

    def _last(self) -> None:
        """A savepoint, a compaction that is planned only, a table that is behind, and deletes before their rows."""
        shop = self.shop
        command(self.place, "shop", "savepoint create", "shop.orders", "--comment", "before")
        command(self.place, "shop", "compact", "shop.parts", "--now", "--schedule-only")
        self._start()
        shop.visit(9000, "owed", partition=0)
        shop.visit(9001, "owed", partition=0)
        owed = f"s.shop.{KEYLESS}"
        end = Offsets({**shop.log.end(), owed: {1: shop.log.end().at(owed, 1) + 2}})
        shop.leave(9000, partition=1)
        shop.leave(9001, partition=1)
        self.stream.feed(end)
        shop.put("slow", 3, note="behind")
        shop.put("orders", 3, owner="last of before", price="0.01", day=0)
        with out_of_order(self.place / "lake/shop/slow/.hoodie/timeline"):
            topic = f"s.shop.{KEYLESS}"
            end = shop.log.end().merge({topic: self.stream.ledger.positions[topic]})
            assert [t.table for t in self.stream.run(end).tables if t.error] == ["shop.slow"]
        self.stream.close()

    def _bank(self) -> None:
        bank = self.bank
        stream = Process(self.place, "bank", bank.log)
        for key in range(6):
            with bank.transaction():
                bank.put("accounts", key, balance="100.00")
        bank.log.add("b.shop.accounts", b"{broken", None)
        stream.feed()
        for number in range(1, 12):
            transfer(bank, number)
            stream.feed()
        with bank.transaction(ended=False):
            bank.begin()
            bank.put("accounts", 1, balance="1.00")
        stream.feed()
        stream.close()


def forget_replay(stream: Process, text: bytes) -> None:
    """Replay what waits; then the quarantine forgets it of the records with a text, as if the replay had died."""
    config = Settings.load(stream.place / "shop.json")
    place, seal = open_storage(f"{config.lake.uri}/_quarantine/shop"), Seal(config.quarantine.secret())
    waiting = held_records(place, QuarantineSelection(), seal, payload=True)
    done = replay(config, QuarantineSelection())
    assert (done.applied, done.failed, done.errors) == (2, 2, {})
    again = [held.row() for held in waiting if text in (held.value or b"")]
    assert len(again) == 1
    with ThreadPoolExecutor(1) as pool:
        QuarantineTable(config, stream.runner._lake, services()).restate(again, "shop.quarantine", pool)


@contextlib.contextmanager
def out_of_order(directory: Path) -> Iterator[None]:
    """A table whose timeline cannot be read for a while."""
    away = directory.rename(directory.with_name("away"))
    directory.write_text("no directory")
    yield
    directory.unlink()
    away.rename(directory)
