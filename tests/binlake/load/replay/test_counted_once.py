"""Hours replayed out of turn into tables that count each fact once: what they cannot tell from known facts is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from binlake.load.replay.quarantine import replay as replay_quarantine
from binlake.load.replay.quarantine_records import QuarantineSelection
from binlake.settings import Settings
from binlake.source.dump_layout import Window
from hudilake.storage import open_storage
from tests.binlake.load.replay.dumped import HOUR, as_json, replay, settings, write
from tests.binlake.load.replay.test_replay import records
from tests.binlake.stream.test_exactly_once import row, runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event
from tests.judges.agreement import read_ourselves

MERGES = {
    "aggregate": {"key": ["owner"], "merge": {"engine": "aggregate", "columns": {"id": "count"}}},
    "first_row": {"merge": {"engine": "first_row"}},
}
#: What each table must show of the facts 0 to 8: how many of the owners ann and bob, or the first row of each key.
SHOWN = {"aggregate": {"ann": 4, "bob": 4}, "first_row": dict.fromkeys(range(4), "ann")}


def config_of(place: Path, engine: str) -> Settings:
    layout = {"path": "{database}.{table}/dt={date}/hour={hour}/*"}
    return settings(place / "lake", place / "dumps", tables={"defaults": MERGES[engine]}, dump=layout)


def dumped(place: Path, engine: str, copies: Sequence[int] = ()) -> TopicLog:
    """Eight facts, four in each of two hours. ``copies``: hours with a copy of the hour before in a file of its own."""
    log = TopicLog()
    for number in range(8):
        key = number if engine == "aggregate" else number % 4
        owner = "ann" if number < 4 else "bob"
        log.add("s.shop.orders", event("orders", "c", 100 * number + 100, row(key, owner)), {"id": key})
    whole = records(log, "orders")
    for hour in (0, 1):
        write(place / "dumps", "orders", HOUR + hour, "a.jsonl", as_json(whole[4 * hour : 4 * hour + 4]))
    for hour in copies:
        write(place / "dumps", "orders", HOUR + hour, "copy.jsonl", as_json(whole[4 * hour - 4 : 4 * hour]))
    return log


def waiting(place: Path) -> list[str]:
    """The reasons of the records in the quarantine."""
    held = place / "lake" / "_quarantine" / "shop"
    return [one["reason"] for one in read_ourselves(held).to_pylist()] if held.exists() else []


def shown(place: Path, engine: str) -> dict[object, object]:
    rows = read_ourselves(place / "lake" / "shop" / "orders").to_pylist()
    names = ("owner", "id") if engine == "aggregate" else ("id", "owner")
    return {one[names[0]]: one[names[1]] for one in rows}


@pytest.mark.parametrize("engine", MERGES)
def test_an_hour_after_a_later_one_waits_in_the_quarantine(tmp_path: Path, engine: str) -> None:
    """It was taken for delivered: its facts were in no table, without a word."""
    dumped(tmp_path, engine)
    config = config_of(tmp_path, engine)
    replay(config, Window(HOUR + 1))
    assert waiting(tmp_path) == []
    replay(config)
    assert waiting(tmp_path) == ["table_refused"] * 4
    assert shown(tmp_path, engine) != SHOWN[engine]
    assert replay_quarantine(config, QuarantineSelection()).applied == 4
    assert shown(tmp_path, engine) == SHOWN[engine]


@pytest.mark.parametrize("engine", MERGES)
def test_hours_below_those_of_a_stream(tmp_path: Path, engine: str) -> None:
    """A stream that began with the second hour has not brought the first; one that has read all has."""
    for begin, unknown in ((4, 4), (0, 0)):
        place = tmp_path / str(begin)
        log, config = dumped(place, engine), config_of(place, engine)
        stream = runner(config, open_storage(str(place / "lake")))
        stream.ledger.begin_at({"s.shop.orders": {0: begin}})
        stream.run(0, log.end(), 0, LocalEngine(log))
        replay(config)
        assert len(waiting(place)) == unknown


@pytest.mark.parametrize("engine", MERGES)
def test_control_hours_in_their_order(tmp_path: Path, engine: str) -> None:
    dumped(tmp_path, engine)
    config = config_of(tmp_path, engine)
    for _ in range(2):
        replay(config, Window(HOUR, HOUR + 1))
        replay(config)
    assert waiting(tmp_path) == []
    assert shown(tmp_path, engine) == SHOWN[engine]


def test_control_records_that_an_hour_has_again(tmp_path: Path) -> None:
    """A dump that was written at least once: the end of an hour stands in the next one, too."""
    dumped(tmp_path, "aggregate", copies=[1])
    config = config_of(tmp_path, "aggregate")
    replay(config, Window(HOUR, HOUR + 1))
    replay(config)
    assert waiting(tmp_path) == []
    assert shown(tmp_path, "aggregate") == SHOWN["aggregate"]
