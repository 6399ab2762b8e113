"""Records without a value: what ends Debezium's deletes, and all that the flat form may say of one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from binlake.load.replay.quarantine import replay
from binlake.load.replay.quarantine_records import QuarantineSelection
from binlake.settings import Settings
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.test_exactly_once import row, runner
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event
from tests.judges.agreement import read_ourselves

TOPIC = "s.shop.orders"
Value = dict[str, Any] | None


def flat(key: int, **added: str) -> dict[str, Any]:
    return row(key) | {f"__{name}": value for name, value in added.items()}


DELETED = event("orders", "d", 700, row(5))


class World:
    """A stream of one table, batch by batch."""

    def __init__(self, place: Path, **debezium: Any) -> None:  # noqa: ANN401 - settings
        self.place, self.log, self.number = place, TopicLog(), 0
        self.configure(0, **debezium)

    def configure(self, epoch: int = 0, **debezium: Any) -> None:  # noqa: ANN401 - settings
        """Another process of the stream, with these settings of the connector."""
        document = {
            "name": "shop",
            "lake": {"uri": str(self.place), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
            "source": {
                "epoch": epoch,
                "schemas": {"shop.orders": {"columns": COLUMNS, "key": ["id"]}},
                "debezium": debezium,
            },
        }
        self.settings = Settings.parse(json.dumps(document))
        self.stream = runner(self.settings, open_storage(str(self.place), {"fsync": "false"}))

    def batch(self, *values: Value, key: int = 5, partition: int = 0) -> None:
        """Records of a key, in a batch."""
        for value in values:
            self.log.add(TOPIC, value, {"id": key}, partition)
        self.stream.run(self.number, self.log.end(), 0, LocalEngine(self.log))
        self.number += 1

    def ids(self) -> list[int]:
        return sorted(read_ourselves(self.place / "shop" / "orders").column("id").to_pylist())

    def doubted(self) -> list[int]:
        """The offsets of the records in the quarantine."""
        path = self.place / "_quarantine" / "shop"
        rows = read_ourselves(path).to_pylist() if path.exists() else []
        assert {one["reason"] for one in rows} <= {"unknown_op", "no_position"}
        return sorted(one["offset"] for one in rows)


@pytest.mark.parametrize("alone", [1, 2])
def test_a_lone_tombstone_of_the_flat_form_is_no_nothing(tmp_path: Path, alone: int) -> None:
    """A batch that has the delete alone tells no form: it was counted, and the row stayed without a word."""
    world = World(tmp_path)
    world.batch(flat(5, op="c"))
    world.batch(*[None] * alone)
    assert world.doubted() == [*range(1, 1 + alone)]


def test_a_new_process_knows_the_form(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(flat(5, op="c"))
    world.configure()
    world.batch(None)
    assert world.doubted() == [1]


def test_the_tombstone_of_a_topic_without_messages_is_counted(tmp_path: Path) -> None:
    """It ends a delete that another process has read, or deletes a row that never came."""
    world = World(tmp_path)
    world.batch(None)
    assert world.doubted() == []
    world.batch(event("orders", "c", 600, row(5)), DELETED)
    world.configure()
    world.batch(None)
    assert world.doubted() == []


def test_messages_elsewhere_in_the_batch_tell_that_deletes_are_not_said(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.log.add(TOPIC, None, {"id": 9}, 1)
    world.batch(flat(5, op="c"))
    assert world.doubted() == [0]


@pytest.mark.parametrize(
    "before",
    [[event("orders", "c", 600, row(5)), DELETED], [flat(5, op="d", deleted="true")]],
    ids=["envelope", "flat"],
)
def test_control_the_end_of_a_delete_is_counted(tmp_path: Path, before: Sequence[Value]) -> None:
    """Where a batch ends between a delete and the tombstone behind it."""
    world = World(tmp_path)
    world.batch(event("orders", "c", 500, row(1)), key=1)
    world.batch(*before)
    world.batch(None)
    assert world.doubted() == []


def test_another_partition_of_the_batch_tells_the_form(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.log.add(TOPIC, None, {"id": 9}, 1)
    world.batch(event("orders", "c", 600, row(5)))
    assert world.doubted() == []


def test_a_form_that_no_more_says_deletes(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(event("orders", "c", 600, row(5)))
    world.batch(flat(6, op="c", source_file="mysql-bin.000003"), key=6)
    world.batch(None)
    assert world.doubted() == [2]


def test_a_doubted_tombstone_stays_until_the_settings_say_what_it_is(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(flat(5, op="c"))
    world.batch(None)
    for _ in range(2):
        done = replay(world.settings, QuarantineSelection())
        assert (done.failed, done.filtered, done.applied) == (1, 0, 0)
        assert world.doubted() == [1]
    assert world.ids() == [5]
    world.configure(tombstone_deletes=True)
    done = replay(world.settings, QuarantineSelection())
    assert (done.failed, done.filtered, done.applied) == (0, 0, 1)
    assert world.ids() == []


PLACES: dict[str, tuple[int, int | None]] = {"one epoch": (0, None), "another": (1, None), "inserted again": (1, 30)}


@pytest.mark.parametrize("name", PLACES)
def test_a_tombstone_is_not_weighed_against_a_place_in_the_binlog(tmp_path: Path, name: str) -> None:
    """It would lose to the older row in one epoch, and in a higher one delete a row that was inserted behind it."""
    epoch, again = PLACES[name]
    world = World(tmp_path)
    world.batch(placed(10))
    world.batch(None)
    if again is not None:
        world.batch(placed(again))
    world.configure(epoch, tombstone_deletes=True)
    done = replay(world.settings, QuarantineSelection())
    assert (done.failed, done.applied) == (1, 0)
    assert world.ids() == [5]


def test_control_a_tombstone_of_a_row_that_is_gone(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.batch(placed(10))
    world.batch(placed(20) | {"__op": "d", "__deleted": "true"})
    world.batch(placed(30) | {"id": 6}, key=6)
    world.log.add(TOPIC, None, {"id": 5}, 1)
    world.configure()
    world.batch()
    assert world.doubted() == [0]
    world.configure(1, tombstone_deletes=True)
    assert replay(world.settings, QuarantineSelection()).applied == 1
    assert world.ids() == [6]


def placed(position: int) -> dict[str, Any]:
    """A flat insert with a place in the binlog."""
    place = {"__source_file": "mysql-bin.000003", "__source_pos": position, "__source_row": 0}
    return flat(5, op="c") | place


def test_the_command_says_so(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.log.add("s.shop.a", flat(5, op="c"), {"id": 5})
    lake.runner.run(0, lake.log.end(), 0, lake.engine)
    lake.log.add("s.shop.a", None, {"id": 5})
    lake.runner.run(1, lake.log.end(), 0, lake.engine)
    done = lake.run("quarantine replay")
    assert "1 failed again and stay" in done.output
    assert [group["waiting"] for group in lake.json("quarantine list")] == [1]
