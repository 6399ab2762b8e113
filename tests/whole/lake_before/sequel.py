"""What happens at the sources after the lake was kept."""

from __future__ import annotations

import os
from pathlib import Path

from tests.binlake.load.replay.dumped import HOUR, lines_of, write
from tests.whole.lake_before.log import TimedLog
from tests.whole.lake_before.sources import MAXWELL_TOPIC, Bank, Shop


def transfer(bank: Bank, number: int) -> None:
    """A transaction over two tables."""
    with bank.transaction():
        bank.put("accounts", number % 6, balance=f"{100 - number}.00")
        bank.put("accounts", (number + 1) % 6, balance=f"{100 + number}.00")
        bank.put("transfers", number, amount=f"{number}.00")


def dump(place: Path, shop: Shop, hour: int, table: str, key: int) -> None:
    """Write a file of a dump with two rows of a table that the topics never bring."""
    topics, shop.log = shop.log, TimedLog()
    for n in (key, key + 1):
        row = {"owner": "dumped", "price": "5.00"} if table == "orders" else {"region": "eu", "stock": n}
        shop.put(table, n, **row)
    events = [value for records in shop.log.records.values() for _, value in records]
    shop.log = topics
    path = place / "dumps" / write(place / "dumps", table, HOUR + hour, f"{key}.jsonl", lines_of(events))
    os.utime(path, (1_760_000_000, 1_760_000_000))  # a commit knows a file by its time as well


def go_on(shop: Shop, bank: Bank) -> None:
    """The second part, at the sources alone: everything changes once more, and much is delivered again."""
    _deliver_again(shop.log, 6)
    shop.widen("orders", "size")
    for number in range(100, 125):
        shop.put("orders", number % 24, owner=f"after {number}", price=f"{number}.75", day=21_000, colour="green")
        shop.visit(2000 + number, f"page {number % 4}")
        if number % 4 == 0:
            shop.leave(1000 + (number - 96) // 4 * 3)
            shop.delete("orders", number % 24)
    _go_on_with_the_others(shop)
    shop.put("slow", 4, note="after")
    _go_on_at_the_bank(bank)


def _go_on_with_the_others(shop: Shop) -> None:
    shop.put("orders", 500, owner="newer than the dump")
    for key in range(0, 8, 2):
        shop.put("parts", key, region=("asia", "eu", "us")[key % 3], stock=1000 + key)
        shop.put("items_01", key, title=f"after {key}")
        shop.put("people", key, name=f"after {key}", town="there")
        shop.put("goods", key + 10, label="before the statement", qty=key)
    shop.delete("parts", 1)
    shop.delete("people", 1)
    shop.truncate("items_00")
    shop.put("items_00", 2, title="after a second TRUNCATE")
    shop.add("goods", "place", "varchar(9)", "shelf", "NOT NULL DEFAULT 'shelf'")
    shop.rename("goods", "label", "title")
    shop.put("goods", 4, title="after the statement", place="floor")
    shop.delete("goods", 5)
    shop.define_notes("by")
    shop.note(1, "after", by="me")
    shop.note(30, "new", by="you")
    shop.note(2, None)


def _go_on_at_the_bank(bank: Bank) -> None:
    bank.put("accounts", 2, balance="199.00")
    bank.end()
    for number in range(20, 30):
        transfer(bank, number)
        if number == 24:
            for place in bank.log.newest(5):
                bank.log.add_again(*place)


def _deliver_again(log: TimedLog, count: int) -> None:
    """The newest records of each topic partition once more, as after the death of a connector."""
    for topic, partition in list(log.records):
        records = log.records[topic, partition]
        for offset in range(max(0, len(records) - count), len(records)):
            if topic != MAXWELL_TOPIC or b"table-" not in (records[offset][1] or b""):
                log.add_again(topic, partition, offset)
