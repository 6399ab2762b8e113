"""The soak is worth what its source does: everything it promises happens, and the number of rows stays bounded."""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from itertools import count
from typing import Any

import pytest

from binlake.decode.schemas.schema_change import schema_changes
from demo.messages import Message
from tests.programs.soak.source import ADDED_COLUMNS, LATE_S, ROWS, SoakSource

_START_US, _TICK_US = 1_795_242_000_123_456, 3_000
_TRANSACTIONS = 16_000


@lru_cache
def lived(seed: int, transactions: int) -> tuple[SoakSource, list[Message]]:
    clock = count(_START_US, _TICK_US)
    source = SoakSource(seed, lambda: next(clock), "soak")
    messages = source.begin(50)
    for number in range(transactions):
        if number % 1_000 == 999:
            source.alter()
        messages += source.transaction()
    return source, messages


def events(messages: list[Message]) -> list[tuple[Message, dict[str, Any]]]:
    return [(m, json.loads(m.value)) for m in messages if m.value is not None and m.topic != "soak"]


def place(event: dict[str, Any]) -> tuple[int, int]:
    return int(event["source"]["file"].split(".")[1]), int(event["source"]["pos"])


@pytest.mark.full
def test_everything_happens() -> None:
    source, messages = lived(5, _TRANSACTIONS)
    told = events(messages)
    kinds = Counter((event["source"]["table"], event["op"]) for _, event in told)
    assert all(kinds[(table, op)] > 100 for table in ("accounts", "events", "visits") for op in "cud")
    assert kinds[("visits", "t")] > 0
    assert kinds[("accounts", "r")] == 50
    assert sum(message.value is None for message in messages) > 1_000
    assert sum("__debezium.newkey" in dict(message.headers) for message in messages) > 100
    moved = [e for _, e in told if e["op"] == "u" and e["source"]["table"] == "accounts"]
    assert any(e["before"]["tier"] != e["after"]["tier"] for e in moved)
    altered = [change for m in messages if m.topic == "soak" for change in schema_changes(m.value or b"")]
    assert Counter(change.kind for change in altered) == {"CREATE": 3, "ALTER": 3 * ADDED_COLUMNS}
    assert not any(change.unsupported for change in altered)
    assert all(0 < len(table.rows) <= ROWS + 1 for table in source.tables)


def test_events_come_late_but_not_too_late() -> None:
    _, messages = lived(5, _TRANSACTIONS)
    newest: dict[tuple[str, int], tuple[int, int]] = {}
    late = []
    sent_ms = 0
    for message, event in events(messages):
        where, at = (message.topic, message.partition), place(event)
        if at < newest.get(where, (0, 0)):
            late.append(sent_ms - message.timestamp_ms)
        newest[where] = max(newest.get(where, (0, 0)), at)
        sent_ms = max(sent_ms, message.timestamp_ms)
    assert len(late) > 300
    assert LATE_S / 2 * 1000 < max(late) <= LATE_S * 1000


def test_keyless_rows_have_no_kafka_key_and_go_anywhere() -> None:
    _, messages = lived(5, 3_000)
    visits = [m for m, event in events(messages) if event["source"]["table"] == "visits"]
    assert {m.key for m in visits} == {None}
    assert len({m.partition for m in visits}) == 3


def test_one_seed_makes_one_history() -> None:
    again = lived.__wrapped__(7, 500)
    assert lived(7, 500)[1] == again[1]
    assert lived(7, 500)[1] != lived(8, 500)[1]
