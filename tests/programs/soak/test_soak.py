"""A short soak: some commits, a couple of kills, every check, Hudi's readers included. ``make soak`` runs long ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hudilake.clock import new_uuid
from tests.judges.hudi_spark import HudiSpark
from tests.programs.soak.latency import lines
from tests.programs.soak.setting import Bounds
from tests.programs.soak.soak import Options, Soak
from tests.services.kafka import Broker

COMMITS, KILLS = 20, 2


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.judge
def test_a_short_soak(hudi_spark: HudiSpark, kafka_broker: Broker, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    options = Options(
        seed=seed,
        seconds=None,
        commits=COMMITS,
        leg_s=600,
        per_second=60,
        kill_every_s=3,
        most_kills=KILLS,
        bounds=Bounds(compact_after=3, retained=5),
    )
    print(f"seed {seed}")
    prefix = f"soak_{new_uuid()[:8]}"
    soak = Soak(options, tmp_path, kafka_broker.bootstrap_servers, prefix, lambda: hudi_spark, print)
    report = soak.run()
    print("\n".join(lines(report["latency"])))
    assert report["commits"] >= COMMITS
    assert report["kills"] >= 1
    assert report["checks"] >= 2
    for name, done in report["upkeep"].items():
        assert done["compactions"] >= 1, name
        assert done["cleans"] >= 1, name
