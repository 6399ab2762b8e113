"""Append tables fed by a stream: the tasks run here, everything else is real."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from binlake.rows.tasks.plan import BatchPlan, Item, Written
from binlake.settings import Settings
from binlake.source.offsets import OffsetRange
from binlake.stream.batches import sequence
from hudilake.format.files.view import file_slices
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage import open_storage
from lakemetastore.settings.problems import SettingsError
from tests.binlake.stream.test_exactly_once import row, runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, settings
from tests.judges import hudi_rs
from tests.judges.agreement import assert_judges_agree, read_ourselves

TOPIC = "s.shop.logs"


def append_settings(place: Path, by_tasks: bool = False, **rules: Any) -> Settings:  # noqa: ANN401 - any YAML value
    """A stream of one append table. ``by_tasks``: tasks write the rows, whatever the batch's size."""
    batch = {"shuffle_above_bytes": 1} if by_tasks else {}
    tables = {"defaults": {"kind": "append", **rules}}
    return settings(str(place), ["logs"], tables=tables, batch=batch, locking={"lock": "process"})


def insert(log: TopicLog, key: int, region: str = "eu", op: str = "c") -> None:
    """An insert, with two partitions of the topic in turns."""
    log.add(TOPIC, event("logs", op, 100 + key, row(key, region=region)), {"id": key}, key % 2)


@pytest.mark.parametrize("by_tasks", [False, True], ids=["by the driver", "by tasks"])
def test_rows_are_added_to_the_end_of_open_file_groups(tmp_path: Path, by_tasks: bool) -> None:
    config = append_settings(tmp_path, by_tasks, partition={"column": "region"})
    log, stream = TopicLog(), runner(config, open_storage(str(tmp_path)))
    sent: Counter[tuple[int, str]] = Counter()
    for batch in range(4):
        for n in [*range(batch * 6, batch * 6 + 6), 0]:  # the row 0 again in every batch: no key, it stays
            insert(log, n, "eu" if n % 3 else "us")
            sent[n, "eu" if n % 3 else "us"] += 1
        done = stream.run(batch, log.end(), 0, LocalEngine(log))
        assert [(t.applied, t.superseded, t.quarantined) for t in done.tables] == [(7, 0, 0)]
    place = tmp_path / "shop" / "logs"
    for rows in (read_ourselves(place), hudi_rs.snapshot(place)):
        assert Counter(zip(*(rows.column(n).to_pylist() for n in ("id", "region")), strict=True)) == sent
        keys = rows.column("_hoodie_record_key").to_pylist()
        assert len(set(keys)) == len(keys)
    storage = open_storage(str(place))
    slices = file_slices(storage, Timeline.load(storage))
    assert [(piece.partition_path, len(piece.log_files)) for piece in slices] == [("region=eu", 3), ("region=us", 3)]


def test_what_is_no_insert_is_quarantined(tmp_path: Path) -> None:
    config = append_settings(tmp_path)
    log, stream = TopicLog(), runner(config, open_storage(str(tmp_path)))
    for n in range(3):
        insert(log, n, op="r" if n else "c")
    log.add(TOPIC, event("logs", "u", 200, row(1, "x"), row(1)), {"id": 1})
    log.add(TOPIC, event("logs", "u", 201, row(1, "y")), {"id": 1})  # without a before image
    log.add(TOPIC, event("logs", "d", 202, row(1, "y")), {"id": 1})
    done = stream.run(0, log.end(), 0, LocalEngine(log))
    assert [(t.events_read, t.applied, t.quarantined) for t in done.tables] == [(6, 3, 3)]
    refused = hudi_rs.snapshot(tmp_path / "_quarantine" / "shop")
    assert set(refused.column("reason").to_pylist()) == {"no_insert"}
    assert_judges_agree(
        tmp_path / "shop" / "logs",
        [{"id": n, "owner": "a", "region": "eu"} for n in range(3)],
        columns=["id", "owner", "region"],
    )


def test_truncate_leaves_the_rows(tmp_path: Path) -> None:
    config = append_settings(tmp_path)
    log, stream = TopicLog(), runner(config, open_storage(str(tmp_path)))
    insert(log, 0)
    stream.run(0, log.end(), 0, LocalEngine(log))
    truncate = event("logs", "t", 300, {}) | {"after": None}
    log.add(TOPIC, truncate, None)
    insert(log, 2)
    done = stream.run(1, log.end(), 0, LocalEngine(log))
    assert [(t.events_read, t.applied, t.filtered) for t in done.tables] == [(2, 1, 1)]
    assert sorted(read_ourselves(tmp_path / "shop" / "logs").column("id").to_pylist()) == [0, 2]


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"key": ["id"]}, "kind append has no key"),
        ({"conflicts": "column"}, "kind append cannot have conflicts column"),
        ({"index": {"type": "bloom"}}, "kind append has no index"),
        ({"merge": {"engine": "first_row"}}, "kind append has no merge engine"),
        ({"kind": "upsert", "index": {"type": "none"}}, "index.type none is for kind append only"),
    ],
)
def test_what_an_append_table_cannot_have(tmp_path: Path, rules: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        append_settings(tmp_path, **rules)


def test_tasks_write_without_a_shuffle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "_APPEND_IN_TASKS_BYTES", 0)
    log, stream = TopicLog(), runner(append_settings(tmp_path), open_storage(str(tmp_path)))
    engine = _Watched(log)
    for batch in range(2):
        insert(log, batch)
        stream.run(batch, log.end(), 0, engine)
    assert engine.seen == [(False, []), (False, ["shop/logs"])]  # before the first batch there is no table
    assert sorted(read_ourselves(tmp_path / "shop" / "logs").column("id").to_pylist()) == [0, 1]


@dataclass
class _Watched(LocalEngine):
    """``seen``: of each plan, whether it is shuffled, and the tables that tasks write."""

    seen: list[tuple[bool, list[str]]] = field(default_factory=list)

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        """See binlake.stream.engine.Engine."""
        self.seen.append((shuffle, [*plan.writers]))
        items = super().run(plan, ranges, shuffle=shuffle)
        assert any(isinstance(item, Written) for item in items) == bool(plan.writers)
        return items
