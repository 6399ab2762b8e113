"""What is in hand, and what hangs, is named by ``status``, ``top`` and the pages."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from binlake.cli.console.terminal import LakeTop
from binlake.decode.changes import SourceTable
from binlake.position import in_hand
from binlake.position.in_hand import WorkNotes
from binlake.source.offsets import Ranges
from binlake.stream.monitoring.steps import BatchSteps
from hudilake.storage import open_storage
from tests.binlake.cli.console.watched_lake import Watched, words_of
from tests.binlake.cli.fed_lake import FedLake

#: A compaction whose process plans, begins and then hangs.
HANGING = """
import sys, time
from hudilake.services.compaction import service
from binlake.cli.app import app
def hangs(*_, **__):
    print("hangs", flush=True)
    time.sleep(600)
service.execute = hangs
app(["compact", sys.argv[1], "shop.a", "--now"])
"""


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    lake = FedLake(tmp_path)
    lake.feed(3)
    return lake


def test_the_batch_in_hand_is_named_with_stage_table_and_seconds(
    lake: FedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_hand, "QUIET_S", 0.0)
    steps, seen = BatchSteps(), Watched.of(lake.conf)
    assert "nothing" in words_of(seen.page("/stream")).partition("In hand")[2]
    notes = WorkNotes(open_storage(f"{lake.path}/.binlake/shop"), "batch", steps.work)
    ranges = Ranges.from_json({"s.shop.a": {"0": (0, 900)}})
    with steps.batch(41, ranges):
        steps.stage("fetches")
        assert steps.work() is not None
        steps.stage("writes and commits")
        steps.tables([SourceTable("shop", "a"), SourceTable("shop", "b")], "writes 450 records")
        steps.tables([SourceTable("shop", "b")], "is committed")
        notes.look()
        [work] = lake.json("status", "--no-kafka")[0]["in_hand"]
        assert (work["kind"], work["subject"], work["what"]) == ("batch", "41", "writes and commits")
        assert (work["done"], work["of"]) == (1, 2)
        assert work["tables"] == {"shop.a": "writes 450 records", "shop.b": "is committed"}
        assert work["lives"]
        assert "in hand: batch 41 for " in lake.run("status", "--no-kafka").stdout
        seen.look()
        for page in ("/", "/stream"):
            words = words_of(seen.page(page))
            assert "batch 41, " in words
            assert "writes and commits, 1 of 2 tables committed" in words
            assert "shop.a writes 450 records" in words
        assert seen.get("/state.json").json()[0]["in_hand"][0]["subject"] == "41"
        assert "in hand: batch 41 for " in LakeTop(seen.watch)._head(2).plain
    notes.look()
    seen.look()
    assert "batch 41" not in seen.page("/")


@pytest.mark.full
def test_a_compaction_that_hangs_is_named(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlake.cli.console.lake_page.HANGS_MS", 0)
    seen = Watched.of(lake.conf)
    assert "has been pending" not in seen.page("/")
    with subprocess.Popen([sys.executable, "-c", HANGING, str(lake.conf)], stdout=subprocess.PIPE, text=True) as work:
        assert work.stdout is not None
        try:
            assert work.stdout.readline() == "hangs\n"
            seen.look()
            [table] = [one for one in seen.watch.view.tables.values() if one.name == "shop.a"]
            assert table.status is not None
            [instant] = table.status.pending
            words = words_of(seen.page("/"))
            assert f"shop.a: compaction {instant} has been pending for" in words
            assert f"process {work.pid} on " in words
            assert "works on it, last sign" in words
        finally:
            work.send_signal(signal.SIGKILL)
    words = words_of(Watched.of(lake.conf).page("/"))
    assert f"process {work.pid} on " in words
    assert "which worked on it, is dead" in words
