"""``binlake check`` names the tables whose rows from before their topics nobody will bring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlake.cli.commands.stream.check_load import first_op, late_topics, unfinished
from binlake.decode.changes import RawRecords
from binlake.settings import Settings
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.decode.recordings import records
from tests.binlake.stream.topic_log import event

TOPIC = "p.shop.orders"
DATABASE = "source: {database: {host: db.example.org}}\n"


def settings(lake: Path, more: str = "") -> Settings:
    return Settings.parse(
        f"name: shop\nlake: {{uri: 'file://{lake}'}}\n"
        f"kafka: {{bootstrap_servers: '127.0.0.1:9', topics: [{TOPIC}]}}\n{more}"
    )


def sample(*ops: str) -> RawRecords:
    values: list[bytes | None] = [
        json.dumps(event("orders", op, 5 + n, {"id": n})).encode() for n, op in enumerate(ops)
    ]
    return records([None] * len(values), values, TOPIC)


@pytest.mark.parametrize(
    ("ops", "deleted", "more", "why"),
    [
        ("uc", 0, "", "begins with a change of a row, and not with a snapshot"),
        ("d", 0, "", "begins with a delete of a row"),
        ("cu", 0, DATABASE, "begins with a new row"),
        ("cu", 0, "", None),  # a table that was made after the connector
        ("ru", 0, DATABASE, None),
        ("ur", 0, DATABASE, None),  # changes while an incremental snapshot runs
        ("r", 12, "", "Kafka has deleted the first 12 records"),
    ],
)
def test_a_topic_that_does_not_begin_with_its_rows(
    tmp_path: Path, ops: str, deleted: int, more: str, why: str | None
) -> None:
    lake = open_storage(str(tmp_path))
    named = list(late_topics(settings(tmp_path, more), lake, {TOPIC: sample(*ops)}, {TOPIC: deleted}))
    assert [one.name for one in named] == ([] if why is None else ["first load of shop.orders"])
    for one in named:
        assert str(why) in one.detail
        assert "binlake load CONF shop.orders" in one.detail
        assert one.error is None


def test_tables_that_are_left_out_or_there_wait_for_no_load(tmp_path: Path) -> None:
    left_out = settings(tmp_path, "tables: {exclude: [shop.orders]}\n")
    assert list(late_topics(left_out, open_storage(str(tmp_path)), {TOPIC: sample("u")}, {})) == []
    fed = FedLake(tmp_path)
    fed.feed(1)
    known = Settings.load(fed.conf)
    lake = open_storage(known.lake.uri)
    samples = {"s.shop.a": sample("u"), "s.shop.none": sample("u")}
    assert [one.name for one in late_topics(known, lake, samples, {})] == ["first load of shop.none"]
    assert list(unfinished(known, lake)) == []


@pytest.mark.parametrize(
    "value", [b"", b"[1]", b"\x00\x01", b'{"op": "u"}', b'{"payload": null}', b'{"type": "insert"}']
)
def test_what_is_no_event_of_debezium_tells_nothing(value: bytes) -> None:
    assert first_op(records([None], [value], TOPIC)) == ""
