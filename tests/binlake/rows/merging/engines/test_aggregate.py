"""aggregate against SQL's GROUP BY over the facts, however partitions, redeliveries, cuts and crashes fall."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from binlake.rows.merging.engines import heights
from binlake.rows.merging.engines.heights import FactHeights, FeedHeight
from hudilake.errors import UnsupportedError
from tests.binlake.rows.merging.engines.facts import FINAL, REVOCABLE, Counting, Event, Source
from tests.hypothesis_profile import scaled

SEEDS = range(scaled(400))


def topic(source: Source, rng: random.Random) -> dict[int, list[tuple[int, Event]]]:
    """What a connector that starts again now and then writes: each partition with suffixes delivered again."""
    logs: dict[int, list[Event]] = {0: [], 1: []}
    at = 0
    while at < len(source.events):
        end = rng.randint(at + 1, len(source.events))
        for event in source.events[rng.randint(max(0, at - 6), at) if rng.random() < 0.7 else at : end]:
            logs[event.partition].append(event)
        at = end
    return {partition: list(enumerate(log)) for partition, log in logs.items()}


def played(seed: int, *, inserts_only: bool = False, functions: Any = REVOCABLE) -> tuple[Source, Counting]:  # noqa: ANN401
    """A source, and a table that has read its topic in random batches, some of which died."""
    rng = random.Random(seed)
    source, table = Source(rng), Counting(functions)
    for _ in range(rng.randint(1, 6)):
        source.transaction(rng.randint(1, 8), inserts_only=inserts_only, one_order=rng.random() < 0.6)
    logs, read = topic(source, rng), {0: 0, 1: 0}
    while any(read[p] < len(log) for p, log in logs.items()):
        until = {p: rng.randint(read[p], len(log)) for p, log in logs.items()}
        table.commit({p: log[read[p] : until[p]] for p, log in logs.items()}, dies=(dies := rng.random() < 0.2))
        if not dies:
            read = until
    return source, table


@pytest.mark.parametrize("seed", SEEDS)
def test_every_fact_counts_once(seed: int) -> None:
    source, table = played(seed)
    assert table.values("amount", "score", "id") == source.groups()


@pytest.mark.parametrize("seed", range(scaled(100)))
def test_functions_that_take_nothing_back(seed: int) -> None:
    source, table = played(seed, inserts_only=True, functions=FINAL)
    by_user: dict[str, list[Any]] = {}
    for row in source.rows.values():
        by_user.setdefault(row["user"], []).append(row)
    found = table.values("amount", "score", "id", "note")
    for user, rows in by_user.items():
        amounts, scores = ([r[c] for r in rows if r[c] is not None] for c in ("amount", "score"))
        notes = [r["note"] for r in rows if r["note"] is not None]
        assert found[user]["amount"] == (max(amounts) if amounts else None)
        assert found[user]["score"] == (min(scores) if scores else None)
        assert found[user]["id"] == len(rows)
        assert found[user]["note"] == ('["' + '","'.join(notes) + '"]' if notes else None)
    assert found.keys() == by_user.keys()


def _row_order_only(self: FactHeights, rows: pa.Table) -> tuple[Any, FactHeights]:
    """What is not enough: the highest order of all partitions together."""
    fresh, reached = NOTHING.counted(rows)
    return fresh & (rows.column("__order").to_numpy() > self.newest), reached


def _nothing_known(self: FactHeights, rows: pa.Table) -> tuple[Any, FactHeights]:
    return NOTHING.counted(rows)


NOTHING = FactHeights()


@pytest.mark.parametrize("rule", [_row_order_only, _nothing_known], ids=["one order for all", "batches alone"])
def test_a_weaker_rule_miscounts(monkeypatch: pytest.MonkeyPatch, rule: Callable[..., Any]) -> None:
    """The control: the tests above find out what the heights are for."""
    counted = FactHeights.counted
    monkeypatch.setattr(
        NOTHING.__class__, "counted", lambda self, rows: (counted if self is NOTHING else rule)(self, rows)
    )
    wrong = 0
    for seed in range(20):
        try:
            source, table = played(seed)
            wrong += table.values("amount", "score", "id") != source.groups()
        except UnsupportedError:
            wrong += 1
    assert wrong > 5


def test_without_the_chain_a_transaction_of_one_order_is_miscounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control for equal orders: an event at the highest order is not new because it is at the highest order."""
    none = heights._repeated
    monkeypatch.setattr(heights, "_repeated", lambda *a: none(*a)[:0])
    wrong = 0
    for seed in range(40):
        try:
            source, table = played(seed)
            wrong += table.values("amount", "score", "id") != source.groups()
        except UnsupportedError:
            wrong += 1
    assert wrong > 2


def fact(key: int, amount: str = "1.00", order: int = 1 << 32, **more: Any) -> Event:  # noqa: ANN401 - any column
    row = {"id": key, "user": "a", "amount": Decimal(amount), "score": 1, "note": None, **more}
    return Event(order, None, row)


def test_a_sum_that_does_not_fit_is_an_error() -> None:
    table = Counting({"score": "sum"})
    table.commit({0: [(0, fact(2))]})
    row = next(iter(table.groups.values())).rows["a"]
    row["score"] = 2**63 - 1
    with pytest.raises(UnsupportedError, match="does not fit"):
        table.commit({0: [(1, fact(4, order=(1 << 32) + 5))]})


def test_facts_that_were_never_counted_cannot_be_taken_back() -> None:
    table = Counting(REVOCABLE)
    with pytest.raises(UnsupportedError, match="never counted"):
        table.commit({0: [(0, Event(1 << 32, fact(2).after, None))]})


def test_an_update_of_a_fact_that_was_never_counted_is_no_new_one() -> None:
    """Its halves are as many as none, so its key had no row, and the value was lost without a word."""
    table = Counting(REVOCABLE)
    with pytest.raises(UnsupportedError, match="never counted"):
        table.commit({0: [(0, Event(1 << 32, fact(2).after, fact(2, "3.00").after))]})


def test_a_second_snapshot_is_refused() -> None:
    table = Counting(REVOCABLE)
    second = 1_760_000_000
    table.commit({0: [(0, fact(2, order=second))], 1: [(0, fact(1, order=second))]})
    table.commit({0: [(1, fact(4, order=second)), (2, fact(6, order=1 << 33))]})
    assert table.values("id")["a"]["id"] == 4
    assert table.commit({0: [(3, fact(4, order=second))]}) == 1  # before what is streamed: delivered again
    with pytest.raises(UnsupportedError, match="second snapshot"):
        table.commit({1: [(1, fact(1, order=second + 9))]})


def test_heights_are_kept_as_text() -> None:
    known = FactHeights({-5: FeedHeight(9, {2**62: -(2**63), -1: 0}), 7: FeedHeight(1)}, snapshot=-1)
    assert FactHeights.from_text(known.to_text()) == known
    assert FactHeights.from_text(None) == FactHeights()
