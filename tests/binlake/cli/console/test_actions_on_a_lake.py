"""The actions of the console that need no service, run from its pages on a real lake: what they change and leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlake.cli.console.actions import KINDS, ActionLog
from tests.binlake.cli.console.signed_in import Operator
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.topic_log import event

pytestmark = pytest.mark.full


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    lake = FedLake(tmp_path)
    lake.feed(4)
    strange = {"id": 90, "owner": "o", "balance": "AfQ=", "region": "eu", "colour": "red"}
    lake.log.add("s.shop.a", event("a", "c", 401, strange), {"id": 90})
    lake.feed(1)
    return lake


def test_each_action_does_what_its_plan_says_and_is_kept(lake: FedLake) -> None:
    operator = Operator.of(lake.conf)

    def shown() -> str:
        table = operator.watched.watch.view.table("shop.a")
        assert table is not None
        return table.state

    operator.act("pause", "shop.a")
    lake.runner.tend()
    before = lake.commits()
    lake.batch()
    operator.watched.look()
    assert (lake.commits(), shown()) == (before, "paused")
    operator.act("resume", "shop.a")
    lake.runner.tend()
    lake.catch_up()
    operator.watched.look()
    assert len(lake.commits()) > len(before)
    assert shown() == "ok"
    assert any(one.endswith(".log.1") or ".log." in one for one in lake.files())
    compacted = operator.act("compact", "shop.a")
    assert "compact" in compacted.output
    assert sum(piece.log_size for piece in lake.table().file_slices()) == 0
    files = lake.files()
    operator.act("cluster", "shop.a")
    assert lake.files() == files  # it was not due
    operator.act("savepoint", "shop.a")
    kept = [i.requested_time for i in lake.table().timeline.completed_actions(("savepoint",))]
    assert kept == [lake.table().timeline.completed()[-1].requested_time]
    assert operator.act("replay", "shop.a").output.startswith("1 record selected")
    lake.check()
    log = ActionLog(operator.watched.watch.settings, str(lake.conf))
    tried = [one.action for one in log.newest()]
    assert tried == ["replay", "savepoint", "cluster", "compact", "resume", "pause"]
    assert set(tried) | {"resync", "verify"} == set(KINDS)  # test_actions_on_a_source.py
