"""``binlake restore``: a table goes back, and its stream brings back what it had delivered since."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlake.position.lease import StreamLease
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordKey
from hudilake.services import restore as service
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    made = FedLake(tmp_path, {"retention": {"commits": 50}})
    made.feed(3)
    made.run("compact")
    made.feed(3)
    return made


def test_the_plan_is_printed_and_asked_for(lake: FedLake) -> None:
    wanted = lake.commits()[2]
    before = lake.files()
    shown = lake.run("restore", "shop.a", wanted, "--dry-run")
    assert shown.exit_code == 0
    assert f"shop.a as of {wanted} (deltacommit, completed " in shown.stdout
    assert "goes: 4 instants, 8 files, " in shown.stdout
    assert "stays: 3 writes, " in shown.stdout
    assert lake.run("restore", "shop.a", wanted, answer="n\n").exit_code == 1
    assert lake.files() == before
    done = lake.run("restore", "shop.a", wanted, answer="y\n")
    assert done.exit_code == 0
    assert f"shop.a is as of {wanted}" in done.stdout
    lake.check(3)
    lake.check(name="b")
    again = lake.run("restore", "shop.a", wanted)
    assert (again.exit_code, "nothing was written since" in again.stdout) == (0, True)


@pytest.mark.first(1)
@pytest.mark.parametrize("ledger_is_lost", [False, True])
def test_the_stream_brings_all_back(lake: FedLake, ledger_is_lost: bool) -> None:
    """At its next start, with its ledger further on; or without it, by what the tables say."""
    done = lake.run("restore", "shop.a", lake.commits()[1], "--yes")
    assert "stream shop delivers again from" in done.stdout
    assert (
        json.loads(lake.table().extra_metadata(RecordKey.POSITIONS) or "")["shop"]["s.shop.a"]["0"]
        < lake.log.end()["s.shop.a"][0]
    )
    if ledger_is_lost:
        (lake.path / ".binlake/shop/ledger.json").unlink()
    lake.go_on()
    for name in "ab":
        lake.check(name=name)
    lake.feed(2)
    lake.check()


def test_control_a_ledger_that_does_not_notice_loses_rows(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "notice_restore", lambda *a: False)
    assert lake.run("restore", "shop.a", lake.commits()[1], "--yes").exit_code == 0
    lake.go_on()
    with pytest.raises(AssertionError):
        lake.check()


def test_a_table_that_another_restores_under_a_running_stream(lake: FedLake) -> None:
    """By Hudi, say: the stream is at work and has the table open."""
    restored = lake.table()
    service.restore(restored, lake.commits()[1])
    told = {table.table: table.error for table in lake.batch().tables}
    assert "the table was restored meanwhile" in (told["shop.a"] or "")
    assert told["shop.b"] is None
    lake.catch_up()
    for name in "ab":
        lake.check(name=name)


def test_to_a_savepoint_by_its_comment(lake: FedLake) -> None:
    assert lake.run("savepoint create", "shop.a", "--comment", "before the migration").exit_code == 0
    lake.feed(2)
    assert lake.run("restore", "shop.a", "before the migration", "--yes").exit_code == 0
    lake.check(6)
    unknown = lake.run("restore", "shop.a", "another", "--yes")
    assert "no savepoint has that comment" in str(unknown.exception)


def test_one_that_died_is_finished_first(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = lake.commits()[2]

    def dies(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(service, "_undo", dies)
        assert lake.run("restore", "shop.a", wanted, "--yes").exit_code != 0
    shown = lake.run("restore", "shop.a", wanted, "--dry-run")
    assert "a restore of the table is pending" in str(shown.exception)
    done = lake.run("restore", "shop.a", wanted, "--yes")
    assert "that another process had begun" in done.stdout
    assert "nothing was written since" in done.stdout
    lake.check(3)
    lake.go_on()
    lake.check()


def test_writes_that_came_after_the_plan_are_not_taken_back(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:

    def feeds_and_agrees(text: str) -> bool:
        lake.feed(1)
        return True

    monkeypatch.setattr("binlake.cli.commands.upkeep.restore.typer.confirm", feeds_and_agrees)
    done = lake.run("restore", "shop.a", lake.commits()[2])
    assert "another writer has written since" in str(done.exception)
    lake.check()


def test_a_stream_that_is_running_is_refused(lake: FedLake) -> None:
    lease = StreamLease(open_storage(f"{lake.path}/.binlake/shop"), "shop")
    lease.take()
    done = lake.run("restore", "shop.a", lake.commits()[2], "--yes")
    assert "another run of this stream is active" in str(done.exception)
    lake.check()
    lease.give_back()
    assert lake.run("restore", "shop.a", lake.commits()[2], "--yes").exit_code == 0
