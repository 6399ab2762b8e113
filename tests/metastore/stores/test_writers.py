"""Several processes write one log of each store and are killed; no version is lost or doubled, and all get on."""

from __future__ import annotations

from pathlib import Path

from bench.metastore.log_stores import Place
from tests.hypothesis_profile import is_nightly
from tests.metastore.stores.writers import Crew, faults


def test_no_version_is_lost_or_doubled_when_writers_are_killed(place: Place) -> None:
    slow = place.kind == "hdfs"
    seconds = (20 if is_nightly() else 1.5) * (2 if slow else 1)
    with Crew(place, 3 if slow else 4) as crew:
        crew.work(seconds, kill_every_s=seconds / 6, least=1 if slow else 2)
    assert crew.kills >= 2
    assert faults(place, crew) == []


def test_no_writer_starves(place: Place) -> None:
    writers = 4
    with Crew(place, writers) as crew:
        crew.work(0.3)
        before = crew.counts()
        crew.work(10 if is_nightly() else 1)
        counts = [count - before[name] for name, count in crew.counts().items()]
    # Without turns and rests three of four get none (measured on S3), or a twentieth of their part.
    assert min(counts) * writers > 0.1 * sum(counts), counts
    assert faults(place, crew) == []


def test_writers_go_on_beside_one_that_is_suspended(tmp_path: Path) -> None:
    place = Place("local", str(tmp_path / "store"))
    with Crew(place, 3) as crew:
        crew.work(0.2)
        crew.suspend("w0")
        before = crew.counts()
        crew.work(1.5, least=0)
        after = crew.counts()
        crew.resume("w0")
        crew.work(0.5, least=after["w0"] + 1)
    assert all(after[name] > before[name] + 3 for name in ("w1", "w2")), (before, after)
    assert faults(place, crew) == []
