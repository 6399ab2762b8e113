"""``binlake compact``: what is due is done, one bad table stops no other, and the stream goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from binlake.decode.changes import SourceTable
from binlake.tables.services.policy import compaction_config
from hudilake.commit.compaction_plan import pending_compactions
from hudilake.services.compaction import schedule
from tests.binlake.cli.fed_lake import BY_PROCESS, FedLake


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    return FedLake(tmp_path)


def test_what_is_due_is_done_to_every_table(lake: FedLake) -> None:
    lake.feed(2)
    early = lake.run("compact")
    assert early.exit_code == 0
    assert [line.split(";")[0] for line in early.stdout.splitlines()] == [f"shop.{t}: nothing to compact" for t in "ab"]
    lake.feed(2)
    told = lake.run("compact")
    assert told.exit_code == 0
    first = told.stdout.splitlines()[0]
    assert first.startswith("shop.a: due: 4 delta commits since the last compaction; 2 file groups compacted; 3 rows, ")
    for name in "ab":
        lake.check(name=name)
        assert all(s.base_file is not None and not s.log_files for s in lake.table(name).file_slices())
    lake.feed(1)  # by the stream that was open meanwhile
    lake.check()


@pytest.mark.full
def test_cleaning_and_archival_follow(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlake.tables.services.policy._SPARE_COMMITS", 3)
    monkeypatch.setattr("binlake.tables.services.policy._ARCHIVED_AT_ONCE", 2)
    cleaned = archived = 0
    for _ in range(5):
        lake.feed(3)
        (told,) = lake.json("compact", "shop.a")
        assert told["error"] is None
        cleaned, archived = cleaned + told["cleaned"], archived + told["archived"]
    assert cleaned
    assert archived
    assert lake.table().timeline.history().files
    lake.check()
    lake.start()
    lake.feed(1)
    lake.check()


def test_the_two_steps_apart(lake: FedLake) -> None:
    lake.feed(3)
    (planned,) = lake.json("compact", "shop.a", "--schedule-only")
    assert planned["due"] == "3 delta commits since the last compaction"
    assert (planned["pending"], planned["completed"]) == ([planned["scheduled"]], [])
    lake.feed(1)
    (idle,) = lake.json("compact", "shop.a", "--schedule-only")
    assert idle["scheduled"] is None
    (done,) = lake.json("compact", "shop.a", "--execute-only")
    assert (done["completed"], done["pending"], done["file_groups"]) == ([planned["scheduled"]], [], 2)
    assert done["bytes_written"] > 0
    lake.check()
    assert lake.run("compact", "--schedule-only", "--execute-only").exit_code == 1


def test_now_and_by_path(lake: FedLake) -> None:
    lake.feed(1)
    (told,) = lake.json("compact", "shop/b", "--now")
    assert (told["table"], told["due"], told["rows"]) == ("shop.b", "asked for", 1)
    (again,) = lake.json("compact", "shop.b", "--now")
    assert (again["scheduled"], again["completed"]) == (None, [])
    assert lake.table("a").timeline.completed()[-1].action == "deltacommit"


def test_what_a_dead_compactor_left_is_finished(lake: FedLake) -> None:
    lake.feed(3)
    rules = lake.settings.table_rules(SourceTable("shop", "a"))
    assert rules.compaction is not None
    left = schedule(lake.table(), compaction_config(rules, rules.compaction))
    assert left is not None
    done = lake.run("compact", "shop.a")
    assert "1 of the compactions had been left by another process" in done.stdout
    assert pending_compactions(lake.table().timeline) == []
    lake.check()


def test_one_bad_table_does_not_stop_the_others(lake: FedLake) -> None:
    lake.feed(3)
    log = next((lake.path / "shop/a").glob(".*.log.*"))
    log.write_bytes(b"junk" + log.read_bytes())
    done = lake.run("compact")
    assert done.exit_code == 66
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["shop.a", "shop.b"]
    assert "error: " in done.stderr
    assert "table=shop.a" in done.stderr
    lake.check(name="b")
    assert all(not s.log_files for s in lake.table("b").file_slices())
    (lake.path / "shop/a/.hoodie/hoodie.properties").write_bytes(b"")
    done = lake.run("compact", "--now")
    assert (done.exit_code, "shop.b: nothing to compact" in done.stdout) == (66, True)


def test_tables_that_are_not_there(lake: FedLake) -> None:
    lake.feed(1)
    done = lake.run("compact", "shop.c", "shop.a", "--now")
    assert done.exit_code == 2
    assert "the lake has no such table" in done.stderr
    assert "shop.a: due: asked for" in done.stdout


def test_compaction_off_means_off(tmp_path: Path) -> None:
    lake = FedLake(tmp_path, {"compaction": {**BY_PROCESS, "mode": "off"}})
    lake.feed(4)
    assert [told["scheduled"] for told in lake.json("compact")] == [None, None]
    assert all(told["completed"] for told in lake.json("compact", "--now"))
    lake.check()


@pytest.mark.full
def test_the_command_itself(lake: FedLake) -> None:
    """In a process of its own, beside a stream that has the tables open."""
    lake.feed(3)
    command = [sys.executable, "-m", "binlake.cli", "compact", str(lake.conf)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("2 file groups compacted") == 2
    lake.feed(3)
    lake.check()


@pytest.mark.full
@pytest.mark.spark
def test_on_spark(lake: FedLake) -> None:
    """``jobs/compact.py`` with a master of its own does what spark-submit would."""
    lake.feed(3)
    command = [sys.executable, "jobs/compact.py", str(lake.conf), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"file_groups": 2') == 2
    lake.check()
