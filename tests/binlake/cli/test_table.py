"""``binlake table``: requests about one table, what the stream does about them, and what ``status`` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binlake.decode.changes import SourceTable, ordering_value
from binlake.position.binlog_height import climbed
from binlake.position.held_tables import Resync, ResyncStep, Stop
from binlake.position.table_requests import ResyncRequest, TableRequest, change_request
from binlake.settings import Settings
from binlake.source.signals import SnapshotSignal
from binlake.tables.resync_request import resync_request
from hudilake.errors import ConfigError, LakeError, UnsupportedError
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake

B = SourceTable("shop", "b")


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    made = FedLake(tmp_path, {"compaction": {"mode": "off"}})
    made.feed(3)
    return made


def held(lake: FedLake) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lake.json("status", "--no-kafka")[0]["held"]
    return found


def test_pause_and_resume(lake: FedLake) -> None:
    done = lake.run("table pause", "shop.b")
    assert (done.exit_code, "shop.b: is paused" in done.output) == (0, True)
    lake.runner.tend()
    lake.feed()
    lake.check(name="a")
    lake.check(3, name="b")
    (one,) = held(lake)
    waiting = lake.log.end().total - lake.log.end()["s.shop.a"][0] - sum(n + 2 for n in range(3))
    assert (one["table"], one["state"], one["waiting"], one["deleted"]) == ("shop.b", "paused", waiting, None)
    assert one["command"] == f"table resume {lake.conf} shop.b"
    text = lake.run("status", "--no-kafka").stdout
    assert f"{waiting} records wait" in text
    assert f"binlake table resume {lake.conf} shop.b" in text
    lake.start()
    lake.runner.tend()
    lake.feed()
    lake.check(3, name="b")
    assert lake.run("table resume", "shop.b").exit_code == 0
    lake.runner.tend()
    lake.catch_up()
    lake.check(name="b")
    assert held(lake) == []


@pytest.mark.parametrize("command", ["pause", "resume", "resync"])
def test_names_that_nobody_knows(lake: FedLake, command: str) -> None:
    done = lake.run(f"table {command}", "shop.nothing")
    assert isinstance(done.exception, ConfigError)
    assert done.exception.do_next == "did you mean shop.b or shop.a?"


def test_a_stream_without_a_ledger(lake: FedLake) -> None:
    (lake.path / ".binlake/shop/ledger.json").unlink()
    assert isinstance(lake.run("table pause", "shop.b").exception, ConfigError)


def test_status_names_the_command_that_helps(lake: FedLake) -> None:
    ledger, state = lake.runner.ledger, open_storage(f"{lake.path}/.binlake/shop")
    ledger.stop(B, Stop("its key is another [table=shop.b]", "correct the key", "ConfigError", 1), ["s.shop.b"])
    ledger.note_resync(SourceTable("shop", "a"), Resync("one", ResyncStep.FAILED, why="ABORTED"))
    ledger.save(state)
    text = lake.run("status", "--no-kafka").stdout
    assert "stopped: shop.b since" in text
    assert "its key is another [table=shop.b]. Next: correct the key" in text
    assert f"binlake table resume {lake.conf} shop.b" in text
    assert "resync failed: shop.a: ABORTED" in text
    assert f"binlake table resync {lake.conf} shop.a" in text
    ledger.note_resync(SourceTable("shop", "a"), Resync("one", ResyncStep.READING))
    ledger.save(state)
    change_request(
        state,
        SourceTable("shop", "a"),
        lambda _: TableRequest(resync=ResyncRequest("one", B, "s", 1, 1, 1_760_000_000_000)),
    )
    assert "resync: shop.a since" in lake.run("status", "--no-kafka").stdout


def with_topics(lake: FedLake, **more: Any) -> Settings:  # noqa: ANN401 - any YAML value
    """Settings with the topics of a connector that takes signals."""
    document = json.loads(lake.conf.read_text())
    document["source"] |= {"debezium": {"signal_topic": "signals", "notification_topic": "notify"}, **more}
    lake.conf.write_text(json.dumps(document))
    return Settings.load(lake.conf)


def test_the_request_stands_between_all_stored_rows_and_all_rows_that_it_brings(lake: FedLake) -> None:
    settings, ledger = with_topics(lake), lake.runner.ledger
    newest = max(order for order, _ in ledger.heights[B]["s.shop.b"].values())
    asked = resync_request(settings, ledger, B)
    assert asked.order == asked.place == newest > ordering_value(0, 3, 200)
    assert (asked.prefix, asked.origin) == ("s", B)
    again = resync_request(settings, ledger, B, asked)  # its rows come after those of the first
    assert (again.order, again.place) == (newest + 1, newest)
    said = json.loads(SnapshotSignal(asked.id, asked.prefix, asked.origin).value())
    assert said == {
        "id": asked.id,
        "type": "execute-snapshot",
        "data": {"data-collections": ["shop\\.b"], "type": "INCREMENTAL"},
    }
    ledger.climb(climbed({}, []))  # a ledger that was lost knows no heights: the stored rows do
    assert resync_request(settings, ledger, B).order == ordering_value(0, 3, 202)


def test_tables_that_cannot_be_fetched_anew(lake: FedLake) -> None:
    ledger = lake.runner.ledger
    cases: list[tuple[dict[str, Any], type[LakeError], str]] = [
        ({"format": "canal"}, UnsupportedError, "format canal"),
        ({"format": "debezium", "debezium": {}}, ConfigError, "signal_topic"),
    ]
    for more, kind, said in cases:
        with pytest.raises(kind, match=said):
            resync_request(with_topics(lake, **more), ledger, B)
    document = json.loads(lake.conf.read_text())
    document["source"] = {"debezium": {"signal_topic": "x", "notification_topic": "y", "topic_prefix": "given"}}
    given = resync_request(Settings.parse(json.dumps(document)), ledger, B)
    assert given.prefix == "given"


@pytest.mark.full
def test_a_signal_topic_that_kafka_does_not_know_leaves_no_request(lake: FedLake) -> None:
    with_topics(lake)
    assert lake.run("table resync", "shop.b").exit_code != 0
    assert not (lake.path / ".binlake/shop/requests.json").exists()
