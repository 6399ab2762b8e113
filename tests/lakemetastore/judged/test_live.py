"""Our server beside a real Hive Metastore, live, with calls that no recording has."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.hms import EmbeddedHiveMetastore
from tests.hypothesis_profile import scaled
from tests.lakemetastore.judged.ours import differences, our_server
from tests.lakemetastore.judged.recorded import SEED, record
from tests.lakemetastore.judged.scripts.all import scripts_of

SEEDS = range(SEED + 1, SEED + 1 + scaled(10, least=1, divisor=10))


def _beside(metastore: EmbeddedHiveMetastore, script: str, seed: int, place: Path) -> None:
    recorded = record(metastore, script, seed)
    with our_server(place) as ours:
        found = [one for one in differences(ours, recorded) if not one.allowed]
    assert not found, "\n".join(map(str, found))


@pytest.mark.full
@pytest.mark.hms
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("script", scripts_of("3.1.3"))
def test_3_1_3(hms: EmbeddedHiveMetastore, script: str, seed: int, tmp_path: Path) -> None:
    _beside(hms, script, seed, tmp_path)


@pytest.mark.full
@pytest.mark.hms
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("script", scripts_of("4.0.1"))
def test_4_0_1(hms4: EmbeddedHiveMetastore, script: str, seed: int, tmp_path: Path) -> None:
    _beside(hms4, script, seed, tmp_path)
