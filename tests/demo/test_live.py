import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import yaml

from demo.live import PARTITIONS, LiveSource
from demo.live_tables import LiveTable, accounts, events
from demo.messages import Message
from demo.verdict import judge
from tests.demo.lake_from_truth import lake_table
from tests.paths import CONF

START_US = 1_795_242_000_123_456


def ticking() -> Callable[[], int]:
    steps = count(START_US, 3_571)
    return lambda: next(steps)


def played(seed: int, transactions: int) -> tuple[LiveSource, list[Message]]:
    source = LiveSource(seed, ticking())
    messages = source.snapshot(50)
    for _ in range(transactions):
        messages += source.transaction()
    return source, messages


def test_one_seed_and_one_clock_make_the_same_messages() -> None:
    assert played(3, 400)[1] == played(3, 400)[1]
    assert played(3, 400)[0].truth() == played(3, 400)[0].truth()
    assert played(3, 400)[1] != played(4, 400)[1]


def changes(messages: list[Message]) -> Iterator[tuple[str, tuple[int, int], bytes, dict[str, Any] | None]]:
    """Topic, order, key, row as the JSON carries it; nothing shared with the generator."""
    for m in messages:
        if m.value is not None:
            event = json.loads(m.value)
            place = event["source"]
            order = (0, 0) if event["op"] == "r" else (int(place["file"].split(".")[1]), place["pos"])
            assert m.key is not None
            yield m.topic, order, m.key, event["after"]


def final_rows(messages: list[Message]) -> dict[str, dict[bytes, dict[str, Any]]]:
    newest: dict[tuple[str, bytes], tuple[tuple[int, int], dict[str, Any] | None]] = {}
    for topic, order, key, row in changes(messages):
        if (topic, key) not in newest or newest[(topic, key)][0] <= order:
            newest[(topic, key)] = (order, row)
    tables: dict[str, dict[bytes, dict[str, Any]]] = {}
    for (topic, key), (_, row) in newest.items():
        if row is not None:
            tables.setdefault(topic, {})[key] = row
    return tables


def expected_rows(table: LiveTable) -> list[str]:
    return sorted(json.dumps(table.wire(row)) for row in table.rows.values())


@pytest.mark.first(4)
@pytest.mark.parametrize("seed", range(5))
def test_the_newest_message_of_every_key_gives_the_truth(seed: int) -> None:
    source, messages = played(seed, 2_000)
    found = final_rows(messages)
    for table in source.tables:
        assert sorted(json.dumps(row) for row in found[table.topic].values()) == expected_rows(table)


def test_every_kind_of_change_occurs() -> None:
    _, messages = played(1, 2_000)
    ops = {json.loads(m.value)["op"] for m in messages if m.value is not None}
    assert ops == {"r", "c", "u", "d"}
    assert any(m.value is None and m.headers for m in messages), "tombstone of a changed key"
    moved = [m for m in messages if m.headers and m.headers[0][0] == "__debezium.oldkey"]
    assert moved
    assert {m.partition for m in messages} == set(range(PARTITIONS))
    assert len(messages) > len({(m.topic, m.key, m.value) for m in messages}), "redelivered messages"
    files = [json.loads(m.value)["source"]["file"] for m in messages if m.value is not None]
    assert max(files) != max(files, key=lambda f: int(f.split(".")[1])), "names that compare wrong as text"


def test_the_demo_settings_promise_only_what_the_tables_keep() -> None:
    """live.events is partitioned by day with immutable_partition: no change of a living row may move its day."""
    _, messages = played(6, 6_000)
    days: dict[bytes, int] = {}
    returned = 0
    for topic, _, key, row in changes(list(dict.fromkeys(messages))):
        if topic.endswith(".events"):
            day = None if row is None else row["at"] // 86_400_000_000
            returned += day is not None and days.get(key) == -1
            assert day is None or days.get(key, -1) in (-1, day)
            days[key] = -1 if day is None else day
    assert returned > 5, "rows that come back after a delete"


def test_a_changed_key_is_a_delete_and_a_create_at_one_position() -> None:
    _, messages = played(1, 2_000)
    at = next(i for i, m in enumerate(messages) if m.headers and m.headers[0][0] == "__debezium.oldkey")
    delete, tombstone, create = messages[at - 2 : at + 1]
    assert delete.value is not None
    assert create.value is not None
    assert tombstone.value is None
    before, after = json.loads(delete.value), json.loads(create.value)
    assert (before["op"], after["op"]) == ("d", "c")
    assert (before["source"]["file"], before["source"]["pos"]) == (after["source"]["file"], after["source"]["pos"])
    assert delete.headers == (("__debezium.newkey", create.key),)
    assert create.headers == (("__debezium.oldkey", delete.key),)


def test_one_key_stays_in_one_partition() -> None:
    _, messages = played(2, 1_000)
    places: dict[tuple[str, bytes | None], set[int]] = {}
    for m in messages:
        places.setdefault((m.topic, m.key), set()).add(m.partition)
    assert all(len(p) == 1 for p in places.values())


def test_the_truth_can_be_judged() -> None:
    source, _ = played(5, 500)
    for truth in source.truth():
        lake = lake_table(truth)
        assert judge(truth, lake).equal
        fewer = replace(truth, rows=truth.rows[1:])
        assert not judge(fewer, lake).equal


def test_the_demo_settings_describe_the_live_tables() -> None:
    conf = yaml.safe_load((CONF / "demo.yaml").read_text())
    assert conf["source"]["schemas"] == {f"live.{t.name}": t.schema() for t in (accounts(), events())}
