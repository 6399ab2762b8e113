"""Several processes write one log of each store and are killed; no version is lost or doubled, and all get on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.metastore.log_stores import Place
from tests.hypothesis_profile import scaled, usually
from tests.lakemetastore.log.stores.kinds import KINDS, name_of
from tests.lakemetastore.log.stores.writers import Crew, faults
from tests.selection import first

WRITERS = 4
#: So many commits tell who starves: a fair part of them is twelve, and one is less than a tenth of twelve.
COMMITS = 48
_SERVERS = [kind for kind in KINDS if name_of(kind) in ("mariadb", "postgresql")]
starving_in = pytest.mark.parametrize(
    "place", [*first(2, ["local", "s3", "sqlite", "lmdb"]), *usually([], _SERVERS)], indirect=True
)


@pytest.mark.first(1)
def test_no_version_is_lost_or_doubled_when_writers_are_killed(place: Place) -> None:
    slow = place.kind == "hdfs"
    with Crew(place, 3 if slow else WRITERS) as crew:
        crew.gain(each=1)
        crew.kill(scaled(30), every_s=0.5 if slow else 0.25)
        crew.gain(each=1)
    assert faults(place, crew) == []


@pytest.mark.first(1)
@starving_in
def test_no_writer_starves(place: Place) -> None:
    with Crew(place, WRITERS) as crew:
        crew.gain(each=1)
        gained = crew.gain(scaled(10 * COMMITS, COMMITS, divisor=10))
    assert not starving(gained), gained
    assert faults(place, crew) == []


@pytest.mark.first(1)
@starving_in
def test_control_without_turns_and_rests_writers_starve(place: Place) -> None:
    with Crew(place, WRITERS, turns=False) as crew:
        assert any(starving(crew.gain(COMMITS)) for _ in range(40))


def test_writers_go_on_beside_one_that_is_suspended(tmp_path: Path) -> None:
    place, others = Place("local", str(tmp_path / "store")), ("w1", "w2")
    with Crew(place, 3) as crew:
        crew.gain(each=1)
        crew.suspend("w0")
        crew.gain(40, each=4, of=others)
        crew.resume("w0")
        crew.gain(each=1)
    assert faults(place, crew) == []


def starving(gained: Mapping[str, int]) -> bool:
    """Whether a writer made no more than a tenth of its part of the commits. Without turns and rests three of four make
    none (measured on S3), or a twentieth of their part."""
    return min(gained.values()) * len(gained) <= 0.1 * sum(gained.values())
