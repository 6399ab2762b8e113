"""A stream and a replay that write the same tables at the same time, each with commits that overtake the other's."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.audit import audit
from binlake.tables.lake import Lake, locking
from hudilake.storage import open_storage
from tests.binlake.load.replay.dumped import HOUR, lines_of, replay, settings, write
from tests.binlake.stream.soundness import errors_in
from tests.binlake.stream.test_exactly_once import ORDERS, row, rows_of
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, services

ROUNDS, KEYS = 12, 7


def change(order: int) -> dict[str, Any]:
    """The order-th change of a key that goes with it; some are deletes."""
    key = order % KEYS
    kind = "d" if order % 5 == 0 else "u"
    return event("orders", kind, order, row(key, f"v{order}"))


def expected() -> list[tuple[Any, ...]]:
    newest = {order % KEYS: order for order in range(100, 100 + 4 * ROUNDS)}
    return sorted((key, f"v{order}", "5.00", "eu") for key, order in newest.items() if order % 5)


def stream(config: Settings, log: TopicLog) -> BatchRunner:
    root = open_storage(str(config.lake.uri), {"fsync": "false"})
    lake = Lake(root, locking(config.locking, "stream shop", one_run=True))
    return BatchRunner(config, lake, root.sub(".binlake/shop"), Ledger("shop"), SchemaRegistry(config), services())


@pytest.mark.full
@pytest.mark.parametrize("shuffled", [False, True])
def test_at_the_same_time(tmp_path: Path, shuffled: bool) -> None:
    """The odd changes come by the stream, the even ones by files."""
    dump = {"path": "{database}.{table}/dt={date}/hour={hour}/*", "commit_bytes": 1, "base_files_from_rows": 1}
    sections: dict[str, Any] = {"batch": {"shuffle_above_bytes": 0}} if shuffled else {}
    tables = {"defaults": {"buckets": 2, "compaction": {"mode": "inline", "after_commits": 9}}}
    config = settings(tmp_path / "lake", tmp_path / "dumps", dump=dump, tables=tables, **sections)
    log = TopicLog()
    for order in range(101, 100 + 4 * ROUNDS, 2):
        log.add("s.shop.orders", change(order), {"id": order % KEYS})
    for number in range(ROUNDS):
        orders = (100 + 4 * number, 102 + 4 * number)
        write(tmp_path / "dumps", "orders", HOUR + number, "a.jsonl", lines_of(change(o) for o in orders))
    begun = threading.Barrier(2)

    def streaming() -> None:
        runner = stream(config, log)
        begun.wait()
        for number in range(1, ROUNDS + 1):
            end = Offsets({"s.shop.orders": {0: 2 * number}})
            while runner.ledger.positions != end:
                runner.run(number, end, 0, LocalEngine(log))
            while ORDERS in runner.ledger.behind:  # overtaken: it is caught up
                runner.catch_up(ORDERS, LocalEngine(log))

    def replaying() -> None:
        begun.wait()
        assert len(replay(config).taken) == ROUNDS

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(streaming), pool.submit(replaying)]:
            done.result(timeout=200)
    assert rows_of(tmp_path / "lake", "orders") == expected()
    path = tmp_path / "lake" / "shop" / "orders"
    assert errors_in(path) == []
    told = audit(open_storage(str(path)))
    assert told.errors == []
    assert {stream: counts.read for stream, counts in told.sums().items()} == {
        "shop": 2 * ROUNDS,
        "shop.replay": 2 * ROUNDS,
    }
    assert replay(config).taken == []
