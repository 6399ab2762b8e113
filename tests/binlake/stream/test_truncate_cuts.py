"""A TRUNCATE of a source of a stitched table: the same events give the same rows, wherever batches are cut, also where
events from before it come after it, from another partition of its topic."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from binlake.source.offsets import Offsets
from hudilake.storage import open_storage
from tests.binlake.stream.test_exactly_once import runner
from tests.binlake.stream.test_stitched_history import CLICKS, ORDERS, lake_rows, settings, stitched_rows
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event
from tests.hypothesis_profile import scaled

PARTS = (0, 1)


@dataclass
class Script:
    """Events of two sources, each topic with two partitions; a key's records are in one of them, a TRUNCATE in the
    first. ``said``: the newest of each source and key; None for none."""

    random: random.Random
    log: TopicLog = field(default_factory=TopicLog)
    said: dict[str, dict[int, tuple[Any, ...] | None]] = field(default_factory=lambda: {ORDERS: {}, CLICKS: {}})

    def __post_init__(self) -> None:
        for topic in (ORDERS, CLICKS):
            for part in PARTS:
                self.log.records[topic, part] = []

    def write(self, count: int) -> None:
        """Random events; about every fourth one is a TRUNCATE."""
        for at in range(1, count + 1):
            topic, key = self.random.choice([ORDERS, CLICKS, CLICKS]), self.random.randrange(4)
            if self.random.random() < 0.25:
                gone = event(topic.rpartition(".")[2], "t", at * 100, {}) | {"before": None, "after": None}
                self.log.add(topic, gone, None, 0)
                self.said[topic] = dict.fromkeys(self.said[topic])
            else:
                self._change(topic, key, at * 100)

    def _change(self, topic: str, key: int, position: int) -> None:
        number, known = self.random.randrange(100), self.said[topic].get(key)
        row: dict[str, Any] = {"no": key, "order_id": key, "n": number}
        row = {"id": key, "owner": "ann", "cents": number} if topic == ORDERS else row
        op = "c" if known is None else self.random.choice("ud")
        told = event(topic.rpartition(".")[2], op, position, row)
        self.log.add(topic, told, {"no" if topic == CLICKS else "id": key}, key % len(PARTS))
        value = ("ann", number * 2) if topic == ORDERS else (key, number)
        self.said[topic][key] = None if op == "d" else value

    def rows(self, on_delete: str) -> dict[int, tuple[Any, ...]]:
        """The table in the end."""
        return stitched_rows(self.said[ORDERS], self.said[CLICKS], on_delete)

    def cut(self, pieces: int) -> list[Offsets]:
        """The ends of so many batches, the last one with everything; each partition is cut on its own."""
        ends = {place: len(records) for place, records in self.log.records.items()}
        stands = {place: sorted(self.random.randint(0, end) for _ in range(pieces - 1)) for place, end in ends.items()}
        batches = [{place: stands[place][at] for place in ends} for at in range(pieces - 1)]
        return [Offsets.of_places((t, p, end) for (t, p), end in one.items()) for one in [*batches, ends]]


@pytest.mark.first(2)
@pytest.mark.parametrize("on_delete", ["columns", "row"])
@pytest.mark.parametrize("seed", range(30, 30 + scaled(40, least=3, divisor=10)))
def test_the_rows_do_not_depend_on_where_batches_are_cut(tmp_path: Path, seed: int, on_delete: str) -> None:
    script = Script(random.Random(f"{seed} {on_delete}"))
    script.write(9)
    for pieces in (1, 3):
        lake = tmp_path / str(pieces)
        conf, root = settings(lake, on_delete), open_storage(str(lake), {"fsync": "false"})
        stream = runner(conf, root)
        for number, end in enumerate(script.cut(pieces)):
            done = stream.run(number, end, 0, LocalEngine(script.log))
            assert [table.error for table in done.tables if table.error] == []
            for table in done.tables:
                fates = table.applied + table.superseded + table.filtered + table.quarantined
                assert table.events_read == fates + table.already_applied
        found = lake_rows(lake) if (lake / "wide" / "orders").exists() else {}
        assert found == script.rows(on_delete), f"{pieces} batches"


@pytest.mark.parametrize("ends", [(3,), (1, 3), (2, 3), (1, 2, 3)], ids=str)
def test_a_click_that_is_truncated_hides_its_order(tmp_path: Path, ends: tuple[int, ...]) -> None:
    """``on_delete: row``: the TRUNCATE is a delete of each click, also of one that no batch has stored before it."""
    script = Script(random.Random(0))
    steps = [
        (ORDERS, event("orders", "c", 100, {"id": 2, "owner": "ann", "cents": 1}), {"id": 2}),
        (CLICKS, event("clicks", "c", 200, {"no": 2, "order_id": 2, "n": 7}), {"no": 2}),
        (CLICKS, event("clicks", "t", 300, {}) | {"before": None, "after": None}, None),
    ]
    conf, root = settings(tmp_path, "row"), open_storage(str(tmp_path), {"fsync": "false"})
    stream = runner(conf, root)
    for number, (first, end) in enumerate(zip((0, *ends), ends, strict=False)):
        for topic, said, key in steps[first:end]:
            script.log.add(topic, said, key)
        stream.run(number, script.log.end(), 0, LocalEngine(script.log))
    assert lake_rows(tmp_path) == {}
