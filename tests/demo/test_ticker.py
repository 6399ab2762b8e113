"""The demo prints a line a second, and at once what went wrong."""

from __future__ import annotations

from binlake.stream.monitoring.progress import DdlProgress, ProgressEvent, TableProgress
from demo.ticker import Ticker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def batch(number: int, *tables: TableProgress) -> ProgressEvent:
    some = tables or (TableProgress("shop.orders", events_read=10, applied=8),)
    return ProgressEvent(number, latency_ms=640.0, tables=some)


def test_batches_within_a_second_make_one_line_and_the_sums_come_at_the_end() -> None:
    said: list[str] = []
    clock = Clock()
    with Ticker(said.append, clock) as ticker:
        for number in range(10):
            ticker.update(batch(number))
            clock.now += 0.3
    assert said == [
        "   0 s: 10 events read, 8 rows applied to 1 table in 1 batch, last batch 640 ms, lag 0",
        "   1 s: 50 events read, 40 rows applied to 1 table in 5 batches, last batch 640 ms, lag 0",
        "   2 s: 90 events read, 72 rows applied to 1 table in 9 batches, last batch 640 ms, lag 0",
        "   3 s: 100 events read, 80 rows applied to 1 table in 10 batches, last batch 640 ms, lag 0",
    ]


def test_what_goes_wrong_is_told_at_once() -> None:
    said: list[str] = []
    with Ticker(said.append, Clock()) as ticker:
        ticker.update(batch(0))
        failed = TableProgress("shop.stock", error="the disk is full")
        warned = TableProgress("shop.orders", warning="compaction failed")
        told = ProgressEvent(1, 5.0, tables=(failed, warned), notices=("a new partition",))
        ticker.update(told)
        ticker.update(ProgressEvent(2, 5.0, ddl=(DdlProgress("shop.orders", error="locked"),)))
    assert said[1:5] == [
        "NOTICE: a new partition",
        "FAILED: shop.stock: the disk is full",
        "WARNING: shop.orders: compaction failed",
        "NOTICE: shop.orders: DDL could not be carried out yet: locked",
    ]
