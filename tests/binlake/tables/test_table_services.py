"""TableServices after commits: compactions beside the batches and between them, and what a dead one leaves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordKey
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import TableProgress
from binlake.tables.lake import Lake
from binlake.tables.services.table_services import TableServices
from hudilake.commit.compaction_plan import pending_compactions
from hudilake.errors import CorruptDataError
from hudilake.format.timeline.instant import COMMIT
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, settings
from tests.judges import hudi_rs

WAIT_S = 30.0
T = TypeVar("T")
R = TypeVar("R")


class Gate:
    """Runs compactions here; each waits until it is let through, or fails."""

    def __init__(self) -> None:
        self.open, self.entered = threading.Event(), threading.Event()
        self.error: Exception | None = None

    def __call__(self, function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
        self.entered.set()
        assert self.open.wait(WAIT_S)
        if self.error is not None:
            raise self.error
        return [function(item) for item in items]


class World:
    """One table, fed batch by batch: key n gets a new balance in every batch, and key n - 3 goes."""

    def __init__(self, path: Path, mode: str, gate: Gate) -> None:
        compaction = {"mode": mode, "after_commits": 2, "log_ratio": None}
        self.path, self.gate = path, gate
        defaults = {"buckets": 2, "compaction": compaction, "retention": {"commits": 3}}
        self.config: Settings = settings(str(path), ["a"], tables={"defaults": defaults})
        self.log, self.batches = TopicLog(), 0
        self.start()

    def start(self) -> None:
        """A new process."""
        root = open_storage(str(self.path), {"fsync": "false"})
        state = root.sub(".binlake/shop")
        self.services = TableServices(self.gate)
        ledger = Ledger.load(state, self.config.name) or Ledger(self.config.name)
        self.runner = BatchRunner(self.config, Lake(root), state, ledger, SchemaRegistry(self.config), self.services)

    def batch(self) -> TableProgress:
        n = self.batches
        for key in range(n + 1):
            row = {"id": key, "owner": f"o{n}", "balance": "AfQ=", "region": "eu"}
            self.log.add("s.shop.a", event("a", "u", 100 * n + key, row), {"id": key})
        gone = {"id": n - 3, "owner": "", "balance": "AfQ=", "region": "eu"}
        self.log.add("s.shop.a", event("a", "d", 100 * n + 90, gone), {"id": n - 3})
        self.batches += 1
        (told,) = self.runner.run(n, self.log.end(), 0, LocalEngine(self.log)).tables
        self.check()
        return told

    def update(self) -> TableProgress:
        """A batch of one row, whatever may come of it."""
        row = {"id": 1, "owner": "late", "balance": "AfQ=", "region": "eu"}
        self.log.add("s.shop.a", event("a", "u", 100 * self.batches + 1, row), {"id": 1})
        (told,) = self.runner.run(self.batches, self.log.end(), 0, LocalEngine(self.log)).tables
        return told

    def check(self) -> None:
        last = self.batches - 1
        expected = {key: f"o{last}" for key in range(last + 1) if key != last - 3}
        uri = f"{self.path}/shop/a"
        assert {r["id"]: r["owner"] for r in hudi_rs.snapshot(uri).to_pylist()} == expected
        assert [f.what for f in fsck(self.table().storage, grace_ms=0).findings if f.severity == "error"] == []

    def table(self) -> HudiTable:
        return HudiTable.open(open_storage(f"{self.path}/shop/a"))

    def settle(self) -> None:
        """Let the compaction under way come to its end."""
        self.gate.open.set()
        for running in self.services.compaction:
            running.exception(WAIT_S)


def test_commits_go_on_beside_a_compaction(tmp_path: Path) -> None:
    here = World(tmp_path, "async", Gate())
    assert [here.batch().compaction_instant for _ in range(5)] == [None] * 5
    assert here.gate.entered.wait(WAIT_S)
    (pending,) = pending_compactions(here.table().timeline)
    here.settle()
    told = here.batch()
    assert told.compaction_instant == pending.requested_time
    assert told.warning is None
    assert any(s.base_file is not None and s.base_file.name.instant == told.compaction_instant for s in slices(here))
    for _ in range(6):
        here.batch()
        here.settle()
    assert len([i for i in here.table().timeline.completed() if i.action == COMMIT]) > 2


def slices(here: World) -> list[Any]:
    return list(here.table().file_slices())


def test_inline(tmp_path: Path) -> None:
    gate = Gate()
    gate.open.set()
    here = World(tmp_path, "inline", gate)
    told = [here.batch().compaction_instant for _ in range(6)]
    assert [t is not None for t in told] == [False, True, False, True, False, True]
    assert pending_compactions(here.table().timeline) == []


@pytest.mark.parametrize("mode", ["async", "inline"])
def test_a_dead_one_is_finished_by_the_next_run(tmp_path: Path, mode: str) -> None:
    here = World(tmp_path, "async", Gate())
    for _ in range(3):
        here.batch()
    (pending,) = pending_compactions(here.table().timeline)
    here.settle()  # its files are written, and nobody completes it
    here = revived(here, mode)
    for _ in range(3):
        assert here.batch().warning is None
        here.settle()
    completed = {i.requested_time for i in here.table().timeline.completed() if i.action == COMMIT}
    assert pending.requested_time in completed


def revived(old: World, mode: str) -> World:
    """The same lake under a new process."""
    here = World(old.path, mode, old.gate)
    here.log, here.batches = old.log, old.batches
    return here


def test_off(tmp_path: Path) -> None:
    here = World(tmp_path, "off", Gate())
    assert [here.batch().compaction_instant for _ in range(5)] == [None] * 5
    assert not here.gate.entered.is_set()


def test_one_that_fails_is_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlake.tables.services.table_services._PAUSE_S", 0.0)
    here = World(tmp_path, "async", Gate())
    here.gate.error = CorruptDataError("a block is damaged", do_next="look at it")
    here.batch()
    here.batch()
    here.settle()
    told = here.batch()
    assert told.commit_instant is not None
    assert "a block is damaged" in str(told.warning)
    here.gate.error = None
    done = []
    for _ in range(3):
        done.append(here.batch())
        here.settle()
    assert any(t.compaction_instant for t in done)
    assert all(t.warning is None for t in done)


@pytest.mark.full
def test_files_and_timeline_stay_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old slices go, old instants move to the history, and what the commits said is still known after a restart."""
    monkeypatch.setattr("binlake.tables.services.policy._SPARE_COMMITS", 2)
    monkeypatch.setattr("binlake.tables.services.policy._ARCHIVED_AT_ONCE", 3)
    gate = Gate()
    gate.open.set()
    here = World(tmp_path, "inline", gate)
    files, active = [], []
    for _ in range(48):
        assert here.batch().warning is None
        files.append(sum(".hoodie" not in p.parts and p.is_file() for p in (tmp_path / "shop/a").rglob("*.*")))
        active.append(len(here.table().timeline.completed()))
    assert max(files[24:]) <= max(files[:24])
    assert max(active) < 40  # of 48 commits and 24 compactions
    assert here.table().timeline.history().files
    (tmp_path / ".binlake/shop/ledger.json").unlink()
    table = Lake(open_storage(str(tmp_path))).get(here.config.table_rules(SourceTable("shop", "a")))
    assert table is not None
    assert table.positions == {"shop": here.log.end()}


def test_what_the_upkeep_notices_first_is_not_missed(tmp_path: Path) -> None:
    """A foreign commit that a compaction's schedule has seen still renews what is known of the table."""
    here = World(tmp_path, "off", Gate())
    here.batch()
    table = here.runner._lake.get(here.config.table_rules(SourceTable("shop", "a")))
    assert table is not None
    other = here.table()
    positions = {stream: o.to_json() for stream, o in table.positions.items()} | {"another": {"t": {0: 5}}}
    other.commit(other.begin(), [], {RecordKey.POSITIONS: json.dumps(positions)})
    assert table.hudi.refresh()
    assert "another" not in table.positions
    table.refresh(here.config.name)
    assert table.positions == positions
