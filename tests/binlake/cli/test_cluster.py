"""``binlake cluster``: what is due is laid out anew, plans wait, and the stream goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudilake.errors import TransientError
from hudilake.format.timeline.instant import CLUSTERING, REPLACE_COMMIT
from hudilake.services.clustering import service
from tests.binlake.cli.fed_lake import FedLake

ORDER = {"columns": ["owner"], "curve": "linear"}
RULES: dict[str, Any] = {
    "index": {"type": "bloom"},
    "files": {"target_bytes": 1 << 20, "small_bytes": 1},
    "clustering": {"after_commits": 3, "select": "all", "order_by": ORDER},
}


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    return FedLake(tmp_path, RULES)


def replacecommits(lake: FedLake) -> list[str]:
    return [i.requested_time for i in lake.table().timeline.completed() if i.action == REPLACE_COMMIT]


def test_what_is_due_is_done(lake: FedLake) -> None:
    lake.feed(2)
    early = lake.run("cluster", "shop.a")
    assert early.stdout.startswith("shop.a: nothing to lay out; ")
    lake.feed(2)
    foreseen = lake.run("cluster", "shop.a", "--dry-run")
    assert "due: 4 commits since the last clustering; would lay out 4 file groups in 1 units, " in foreseen.stdout
    assert replacecommits(lake) == []
    done = lake.run("cluster", "shop.a")
    assert "due: 4 commits since the last clustering; 4 file groups became 1; 3 rows, " in done.stdout
    assert len(lake.table().file_slices()) == 1
    lake.check()
    lake.feed(1)  # by the stream that was open meanwhile
    lake.check()


def test_the_two_steps_apart(lake: FedLake) -> None:
    lake.feed(3)
    (planned,) = lake.json("cluster", "shop.a", "--schedule-only")
    assert (planned["pending"], planned["completed"]) == ([planned["scheduled"]], [])
    (idle,) = lake.json("cluster", "shop.a", "--schedule-only", "--now")
    assert idle["scheduled"] is None  # all file groups are planned
    lake.start()  # a plan that nobody executes stays
    lake.check()
    (done,) = lake.json("cluster", "shop.a", "--execute-only")
    assert (done["completed"], done["pending"], done["gave_way"]) == ([planned["scheduled"]], [], 0)
    lake.check()
    lake.feed(1)
    lake.check()
    assert lake.run("cluster", "--schedule-only", "--execute-only").exit_code == 1


def test_a_plan_in_vain_is_rolled_back(lake: FedLake) -> None:
    """A commit has changed rows of every planned file group of the unit."""
    lake.feed(3)
    (planned,) = lake.json("cluster", "shop.a", "--schedule-only")
    lake.feed(1)
    (done,) = lake.json("cluster", "shop.a", "--execute-only")
    assert (done["completed"], done["pending"]) == ([], [])
    assert lake.table().timeline.find(planned["scheduled"]) is None
    lake.check()


def test_one_that_fails_is_rolled_back(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise TransientError("a disk is full", do_next="make room")

    lake.feed(3)
    with monkeypatch.context() as patched:
        patched.setattr(service, "execute", failing)
        failed = lake.run("cluster", "shop.a")
    assert (failed.exit_code, "a disk is full" in failed.stderr) == (75, True)
    assert [i for i in lake.table().timeline.pending() if i.action == CLUSTERING] == []
    lake.check()
    assert lake.json("cluster", "shop.a")[0]["made"] == 1
    lake.check()


def test_tables_that_are_not_clustered(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(4)
    told = lake.run("cluster", "shop.a", "--now")
    assert (told.exit_code, "rows may not leave their bucket" in told.stdout) == (0, True)


def test_without_a_section_only_on_demand(tmp_path: Path) -> None:
    lake = FedLake(tmp_path, {"index": {"type": "bloom"}, "files": RULES["files"]})
    lake.feed(4)
    assert lake.json("cluster", "shop.a")[0]["completed"] == []
    (told,) = lake.json("cluster", "shop.a", "--now")
    assert (told["due"], told["replaced"], told["made"]) == ("asked for", 4, 1)
    lake.check()
