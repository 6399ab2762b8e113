"""Maxwell with ``output_nulls=false``, and no setting that says so: ``old`` does not tell what was null. Messages that
lack a column show it, and not each update is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from binlake.load.replay.quarantine import replay
from binlake.load.replay.quarantine_records import QuarantineSelection
from binlake.settings import Settings
from hudilake.storage import open_storage
from tests.binlake.stream.test_exactly_once import runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog
from tests.judges.agreement import read_ourselves

TOPIC = "maxwell"
Row = dict[str, Any]
ALL = {"id": 1, "region": "north", "owner": "ann"}
NO_REGION = {"id": 1, "owner": "ann"}


class World:
    """A stream of one table, partitioned by region, batch by batch."""

    def __init__(self, place: Path) -> None:
        self.place, self.log, self.number = place, TopicLog(), 0
        self.configure()

    def configure(self, nulls: bool | None = None) -> None:
        """Another process of the stream. ``nulls``: what its settings say of ``output_nulls``."""
        document = {
            "name": "shop",
            "lake": {"uri": str(self.place), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
            "source": {
                "format": "maxwell",
                "schemas": {
                    f"shop.{name}": {
                        "columns": {"id": "int", "region": "varchar(9)", "owner": "varchar(9)"},
                        "key": ["id"],
                    }
                    for name in ("orders", "others")
                },
                "maxwell": {"output_nulls": nulls},
            },
            "tables": {"defaults": {"partition": {"column": "region"}}},
        }
        self.settings = Settings.parse(json.dumps(document))
        self.stream = runner(self.settings, open_storage(str(self.place), {"fsync": "false"}))

    def send(self, kind: str, row: Row, old: Row | None = None, table: str = "orders", partition: int = 0) -> None:
        """A message of Maxwell."""
        position = 100 + sum(map(len, self.log.records.values()))
        message = {"database": "shop", "table": table, "type": kind, "ts": 1_760_000_000, "xid": 7, "commit": True}
        message |= {"position": f"bin.000001:{position}", "data": row} | ({} if old is None else {"old": old})
        self.log.add(TOPIC, message, {"pk.id": row["id"]}, partition)

    def batch(self) -> None:
        self.stream.run(self.number, self.log.end(), 0, LocalEngine(self.log))
        self.number += 1

    def regions(self) -> list[str | None]:
        """The region of each row."""
        return [row["region"] for row in read_ourselves(self.place / "shop" / "orders").to_pylist()]

    def doubted(self) -> int:
        """How many records are in the quarantine."""
        path = self.place / "_quarantine" / "shop"
        reasons = [row["reason"] for row in read_ourselves(path).to_pylist()] if path.exists() else []
        assert {*reasons} <= {"missing_image"}
        return len(reasons)


def test_a_message_before_shows_it(tmp_path: Path) -> None:
    """The update has values in all columns, and its row was in the partition of null: it stayed there, too."""
    world = World(tmp_path)
    world.send("insert", NO_REGION)
    world.batch()
    world.configure()
    world.send("update", ALL, {"owner": "bob"})
    world.batch()
    assert (world.doubted(), world.regions()) == (1, [None])


def test_a_message_of_the_same_batch_shows_it(tmp_path: Path) -> None:
    """Of the first update all is known: ``old`` has each column that the row has."""
    world = World(tmp_path)
    world.send("insert", ALL)
    world.batch()
    world.send("update", NO_REGION, {"region": "north", "owner": "bob"})
    world.send("update", ALL, {"owner": "bob"}, partition=1)
    world.batch()
    assert (world.doubted(), world.regions()) == (1, [None])


def test_newer_messages_that_have_nulls_count(tmp_path: Path) -> None:
    """Maxwell was set up anew; what it wrote before stays in doubt until the settings say what it is."""
    world = World(tmp_path)
    world.send("insert", NO_REGION)
    world.send("update", ALL, {"owner": "bob"})
    world.batch()
    assert world.doubted() == 1
    world.send("insert", {"id": 2, "region": None, "owner": None})
    world.batch()
    world.send("update", {"id": 2, "region": "south", "owner": "cid"}, {"region": None, "owner": None})
    world.batch()
    assert (world.doubted(), sorted(map(str, world.regions()))) == (1, ["None", "south"])
    assert replay(world.settings, QuarantineSelection()).failed == 1
    world.configure(nulls=True)
    assert replay(world.settings, QuarantineSelection()).applied == 1


def test_control_nulls_that_are_written(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.send("insert", {"id": 1, "region": None, "owner": "ann"})
    world.batch()
    world.send("update", ALL, {"region": None})
    world.batch()
    world.send("update", ALL | {"owner": "bob"}, {"owner": "ann"})
    world.batch()
    assert (world.doubted(), world.regions()) == (0, ["north"])


def test_control_another_table_that_lacks_columns(tmp_path: Path) -> None:
    """``exclude_columns`` names columns of one table."""
    world = World(tmp_path)
    world.send("insert", NO_REGION, table="others")
    world.send("insert", ALL)
    world.batch()
    world.send("update", ALL | {"owner": "bob"}, {"owner": "ann"})
    world.batch()
    assert (world.doubted(), world.regions()) == (0, ["north"])


def test_control_the_setting_decides(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.configure(nulls=True)
    world.send("insert", NO_REGION)
    world.send("update", NO_REGION | {"owner": "bob"}, {"owner": "ann"})
    world.batch()
    assert (world.doubted(), world.regions()) == (0, [None])
