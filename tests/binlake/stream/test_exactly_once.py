"""A batch over two tables, and everything that must change nothing. ``tests/programs/crash_points`` lets it die.

Everything is real but Spark and Kafka: the tasks run in this process over records in memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hudi import HudiTableBuilder

from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.recovery import recover
from binlake.tables.lake import Lake
from hudilake.errors import BadInputError, TransientError
from hudilake.locking.ownership import Locking
from hudilake.storage import Storage, StorageError, open_storage
from tests.binlake.stream.dying_store import DyingStore, Fate
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, services, settings

ACCOUNTS, ORDERS = SourceTable("shop", "accounts"), SourceTable("shop", "orders")


def row(key: int, owner: str = "a", balance: str = "AfQ=", region: str = "eu") -> dict[str, Any]:
    return {"id": key, "owner": owner, "balance": balance, "region": region}


def first_events() -> TopicLog:
    log = TopicLog()
    for n in range(20):
        log.add("s.shop.accounts", event("accounts", "c", 100 + n, row(n)), {"id": n}, n % 2)
        log.add("s.shop.orders", event("orders", "c", 500 + n, row(n, "order")), {"id": n})
    return log


def second_events(log: TopicLog) -> None:
    for n in range(10):
        log.add("s.shop.accounts", event("accounts", "u", 1000 + n, row(n, "changed")), {"id": n}, n % 2)
    log.add("s.shop.accounts", event("accounts", "d", 1100, row(3, "changed")), {"id": 3}, 1)
    log.add("s.shop.orders", event("orders", "d", 1200, row(5)), {"id": 5})
    log.add("s.shop.orders", None, {"id": 5})
    log.add("s.shop.orders", b"{broken", {"id": 6})
    log.add("s.shop.orders", event("orders", "u", 1201, row(7, "seven")), {"id": 7})


def runner(config: Settings, root: Storage, locking: Locking | None = None) -> BatchRunner:
    """What the start of a stream does, without Spark. ``locking``: how it shares its tables; None for not at all."""
    lake = Lake(root, locking)
    state = root.sub(f".binlake/{config.name}")
    ledger = Ledger.load(state, config.name) or recover(config, root, lake)
    for source in ledger.tables:
        lake.get(config.table_rules(source))
    return BatchRunner(config, lake, state, ledger, SchemaRegistry(config), services())


def rows_of(lake: Path, table: str) -> list[tuple[Any, ...]]:
    batches = HudiTableBuilder.from_base_uri(str(lake / "shop" / table)).build().read()
    found = [r for b in batches for r in b.to_pylist()]
    return sorted((r["id"], r["owner"], str(r["balance"]), r["region"]) for r in found)


def quarantined(lake: Path) -> list[tuple[Any, ...]]:
    found = HudiTableBuilder.from_base_uri(str(lake / "_quarantine" / "shop")).build().read()
    return sorted((r["topic"], r["offset"], r["value"], r["reason"]) for b in found for r in b.to_pylist())


EXPECTED = {
    "accounts": sorted((n, "changed" if n < 10 else "a", "5.00", "eu") for n in range(20) if n != 3),
    "orders": sorted((n, "seven" if n == 7 else "order", "5.00", "eu") for n in range(20) if n != 5),
}


def check(lake: Path) -> None:
    assert {t: rows_of(lake, t) for t in EXPECTED} == EXPECTED
    assert quarantined(lake) == [("s.shop.orders", 22, b"{broken", "malformed_json")]


def prepare(path: Path) -> tuple[Settings, TopicLog]:
    config = settings(str(path), ["accounts", "orders"])
    log = first_events()
    runner(config, open_storage(str(path), {"fsync": "false"})).run(0, log.end(), 0, LocalEngine(log))
    second_events(log)
    return config, log


def commits(lake: Path) -> int:
    return len(list(lake.glob("shop/*/.hoodie/timeline/*_*.deltacommit")))


def test_a_batch_is_applied_and_accounted_for(tmp_path: Path) -> None:
    config, log = prepare(tmp_path)
    event_ = runner(config, open_storage(str(tmp_path))).run(1, log.end(), 0, LocalEngine(log))
    check(tmp_path)
    for table in event_.tables:
        parts = table.applied + table.superseded + table.filtered + table.quarantined + table.already_applied
        assert table.events_read == parts
    assert {t.table: (t.applied, t.superseded, t.filtered, t.quarantined) for t in event_.tables} == {
        "shop.accounts": (10, 1, 0, 0),
        "shop.orders": (2, 0, 1, 1),
    } or event_.quarantined == 1


def test_a_lost_ledger_repeats_nothing(tmp_path: Path) -> None:
    config, log = prepare(tmp_path)
    store = open_storage(str(tmp_path))
    runner(config, store).run(1, log.end(), 0, LocalEngine(log))
    before = commits(tmp_path)
    (tmp_path / ".binlake" / "shop" / "ledger.json").unlink()
    again = runner(config, store)
    assert set(again.ledger.tables) == {ACCOUNTS, ORDERS}
    event_ = again.run(0, log.end(), 0, LocalEngine(log))
    check(tmp_path)
    assert commits(tmp_path) == before
    assert sum(t.applied for t in event_.tables if t.table.startswith("shop.")) == 0


def test_redelivered_events_change_nothing(tmp_path: Path) -> None:
    config, log = prepare(tmp_path)
    store = open_storage(str(tmp_path))
    run = runner(config, store)
    run.run(1, log.end(), 0, LocalEngine(log))
    for (topic, partition), records in list(log.records.items()):
        log.records[(topic, partition)] = records + records[5:]
    run.run(2, log.end(), 0, LocalEngine(log))
    assert {t: rows_of(tmp_path, t) for t in EXPECTED} == EXPECTED


def test_a_gap_stops_with_both_positions() -> None:
    ledger = Ledger("shop", positions={"t": {0: 10, 1: 5}})
    ledger.check_no_gap({"t": {0: 10, 1: 3}, "new": {0: 7}})
    with pytest.raises(BadInputError) as caught:
        ledger.check_no_gap({"t": {0: 12, 1: 5}})
    assert "12" in str(caught.value)
    assert "10" in str(caught.value)


class _FullDisk(DyingStore):
    """One table's data files cannot be written."""

    full = True

    def write(self, path: str, data: bytes) -> None:
        if _FullDisk.full and ".log." in path and "orders" in self.name:
            raise StorageError("no space left", path=path)
        super().write(path, data)

    def sub(self, path: str) -> _FullDisk:
        return _FullDisk(self.inner.sub(path), self.fate, f"{self.name}{path}/")


def test_one_bad_table_does_not_stop_the_others(tmp_path: Path) -> None:
    config, log = prepare(tmp_path)
    store = _FullDisk(open_storage(str(tmp_path)), Fate())
    run = runner(config, store)
    event_ = run.run(1, log.end(), 0, LocalEngine(log))
    assert rows_of(tmp_path, "accounts") == EXPECTED["accounts"]
    assert rows_of(tmp_path, "orders") != EXPECTED["orders"]
    assert [t.table for t in event_.tables if t.error] == ["shop.orders"]
    assert run.ledger.behind == {ORDERS: {"s.shop.orders": {0: 20}}}
    log.add("s.shop.orders", event("orders", "u", 1300, row(8, "eight")), {"id": 8})
    log.add("s.shop.accounts", event("accounts", "u", 1301, row(11, "eleven")), {"id": 11})
    run.run(2, log.end(), 0, LocalEngine(log))
    assert run.ledger.behind == {ORDERS: {"s.shop.orders": {0: 20}}}
    assert run.catch_up(ORDERS, LocalEngine(log)) is None
    _FullDisk.full = False
    again = runner(config, open_storage(str(tmp_path)))
    assert again.catch_up(ORDERS, LocalEngine(log)) is not None
    assert again.ledger.behind == {}
    assert (8, "eight", "5.00", "eu") in rows_of(tmp_path, "orders")
    assert (11, "eleven", "5.00", "eu") in rows_of(tmp_path, "accounts")
    assert quarantined(tmp_path) == [("s.shop.orders", 22, b"{broken", "malformed_json")]


class _NoNewTables(DyingStore):
    """One table cannot be made."""

    def create(self, path: str, data: bytes) -> None:
        if "orders" in self.name:
            raise StorageError("permission denied", path=path)
        super().create(path, data)

    def sub(self, path: str) -> _NoNewTables:
        return _NoNewTables(self.inner.sub(path), self.fate, f"{self.name}{path}/")


def test_a_table_that_cannot_be_made_loses_nothing(tmp_path: Path) -> None:
    """Its later events are passed over until the earlier ones are in."""
    config = settings(str(tmp_path), ["accounts", "orders"])
    log = first_events()
    run = runner(config, _NoNewTables(open_storage(str(tmp_path)), Fate()))
    run.run(0, log.end(), 0, LocalEngine(log))
    second_events(log)
    run.run(1, log.end(), 0, LocalEngine(log))
    assert not (tmp_path / "shop" / "orders" / ".hoodie" / "hoodie.properties").exists()
    again = runner(config, open_storage(str(tmp_path)))
    assert again.ledger.behind == {ORDERS: {"s.shop.orders": {0: 0}}}
    log.add("s.shop.accounts", event("accounts", "u", 1400, row(12, "a")), {"id": 12})
    log.add("s.shop.orders", event("orders", "u", 1401, row(7, "seven")), {"id": 7})
    again.run(2, log.end(), 0, LocalEngine(log))
    assert again.catch_up(ORDERS, LocalEngine(log)) is not None
    check(tmp_path)
    assert again.ledger.behind == {}


def test_an_outage_of_the_store_stops_the_stream(tmp_path: Path) -> None:
    config = settings(str(tmp_path), ["orders"])
    log = TopicLog()
    log.add("s.shop.orders", event("orders", "c", 1, row(1)), {"id": 1})
    _FullDisk.full = True
    with pytest.raises(TransientError):
        runner(config, _FullDisk(open_storage(str(tmp_path)), Fate())).run(0, log.end(), 0, LocalEngine(log))
    runner(config, open_storage(str(tmp_path))).run(0, log.end(), 0, LocalEngine(log))
    assert [r[0] for r in rows_of(tmp_path, "orders")] == [1]


def test_too_many_bad_records_stop_before_anything_is_written(tmp_path: Path) -> None:
    config = settings(str(tmp_path), ["orders"], quarantine={"max_records_per_batch": 3})
    log = TopicLog()
    log.add("s.shop.orders", event("orders", "c", 1, row(1)), {"id": 1})
    for _ in range(4):
        log.add("s.shop.orders", b"nonsense", {"id": 2})
    run = runner(config, open_storage(str(tmp_path)))
    with pytest.raises(BadInputError, match="4 of 5"):
        run.run(0, log.end(), 0, LocalEngine(log))
    assert not (tmp_path / "shop").exists()
    assert not (tmp_path / ".binlake").exists()


def test_a_refused_table_goes_to_quarantine(tmp_path: Path) -> None:
    """A type that cannot become what is stored: the table's records are kept raw, the others go on."""
    config = settings(str(tmp_path), ["orders"])
    log = TopicLog()
    log.add("s.shop.orders", event("orders", "c", 1, row(1)), {"id": 1})
    runner(config, open_storage(str(tmp_path))).run(0, log.end(), 0, LocalEngine(log))
    changed = settings(
        str(tmp_path),
        ["orders"],
        source={"schemas": {"shop.orders": {"columns": {"id": "bigint", "owner": "int"}, "key": ["id"]}}},
    )
    log.add("s.shop.orders", event("orders", "c", 2, {"id": 2, "owner": 5}), {"id": 2})
    run = runner(changed, open_storage(str(tmp_path)))
    run.run(1, log.end(), 0, LocalEngine(log))
    assert run.catch_up(ORDERS, LocalEngine(log)) is not None
    assert run.ledger.behind == {}
    assert [(*q[:2], q[3]) for q in quarantined(tmp_path)] == [("s.shop.orders", 1, "table_refused")]
    assert [r[0] for r in rows_of(tmp_path, "orders")] == [1]
