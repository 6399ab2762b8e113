"""The whole stream as a state machine: whatever happens in any order, every reader shows what the model holds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from binlake.tables.audit import audit
from tests.hypothesis_profile import scaled
from tests.programs.machine.checks import check_lake
from tests.programs.machine.machine import Machine
from tests.programs.machine.world import Plan, World

_ANY_TIME = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=scaled(40, divisor=8),
    stateful_step_count=20,
    deadline=None,
    print_blob=True,
    suppress_health_check=_ANY_TIME,
)


def delivered(world: World) -> None:
    """All records that wait come, and a batch takes them."""
    world.deliver(random.Random(0), len(world.log.waiting), in_order=True)
    world.run()


@pytest.mark.parametrize(
    ("again", "shuffled", "counts"),
    [
        pytest.param([3, 4], False, (2, 1), id="with a row"),
        pytest.param([3, 3, 1, 4], True, (4, 1), id="twice, with an older row"),
        pytest.param([3], False, None, id="alone"),
        pytest.param([5, 3, 4], False, (3, 1), id="with a newer one"),
    ],
)
def test_a_truncate_that_comes_again(
    tmp_path: Path, again: Sequence[int], shuffled: bool, counts: tuple[int, int] | None
) -> None:
    """It removes nothing more: it is superseded, and is not missing among the rows of the commit."""
    world = World(Plan(framed=False, metadata=False, often=False, shuffled=shuffled, hours=False), tmp_path)
    world.create("t")
    for key in range(3):
        world.put("t", key, name="first", qty=key)
    world.truncate("t")
    world.put("t", 1, name="second", qty=7)
    delivered(world)
    world.truncate("t")
    for number in again:
        world.log.deliver(*(world.log.told[number] if number < len(world.log.told) else world.log.waiting.pop(0)))
    world.run()
    check_lake(world)
    commits = audit(world.root().sub("shop/t")).commits
    assert len(commits) == (1 if counts is None else 2)
    if counts is not None:
        assert (commits[1].counts.read, commits[1].counts.applied) == counts
    world.stop()
