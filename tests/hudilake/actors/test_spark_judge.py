"""Hudi Spark reads what is left by some of the orders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hudilake.actors.running import Cast, Runs
from tests.hudilake.actors.world import World
from tests.hudilake.lake import SCHEMA
from tests.judges.agreement import assert_judges_agree
from tests.judges.hudi_spark import HudiSpark
from tests.selection import first

pytestmark = [pytest.mark.spark, pytest.mark.judge]

CASTS: list[Cast] = [
    {"writer": 2, "compactor": 2},
    {"writer": 2, "other": 2},
    {"writer": 2, "other": 1, "compactor": 2, "cleaner": 2, "archiver": 2},
    {"restorer": 2, "writer": 1},
]


@pytest.mark.parametrize("cast", first(1, CASTS), ids=["-".join(cast) for cast in CASTS])
def test_what_an_order_leaves(made: World, tmp_path: Path, hudi_spark: HudiSpark, cast: Cast) -> None:
    runs = Runs(made, tmp_path, cast).some(1)
    assert runs.wrong == []
    assert_judges_agree(runs.world.path, runs.world.model().rows(), spark=hudi_spark, columns=SCHEMA.names)
