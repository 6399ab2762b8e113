"""Several processes write one log of each store and are killed; no version is lost or doubled, and all get on."""

from __future__ import annotations

import pytest

from tests.hypothesis_profile import scaled
from tests.metastore.stores.kinds import Place
from tests.metastore.stores.writers import Crew, faults


def test_no_version_is_lost_or_doubled_when_writers_are_killed(place: Place) -> None:
    if place.kind == "memory":
        pytest.skip("a store of one process")
    slow = place.kind == "hdfs"
    seconds = float(scaled(20, 2)) * (4 if slow else 1)
    with Crew(place, 4) as crew:
        crew.work(seconds, kill_every_s=seconds / 6, least=1 if slow else 2)
    assert crew.kills >= 2
    assert faults(place, crew) == []
