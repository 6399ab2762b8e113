"""Our directories and files beside those of Hive Metastore 3.1.3 after random statements."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from embedded.hms import EmbeddedHiveMetastore
from tests.hypothesis_profile import scaled
from tests.lakemetastore.files.beside import compared, recorded, steps

COUNT = 60
RECORDED = recorded()
LIVE = range(1000, 1000 + scaled(10, least=1, divisor=10))


@pytest.mark.first(2)
@pytest.mark.parametrize("seed", list(RECORDED)[: scaled(len(RECORDED))])
def test_after_each_statement_files_and_locations_are_those_of_a_real_metastore(seed: int, tmp_path: Path) -> None:
    assert compared(RECORDED[seed], tmp_path, seed, COUNT).difference is None


@pytest.mark.full
def test_a_file_or_location_that_differs_is_seen(tmp_path: Path) -> None:
    """The control."""
    seed, wanted = next(iter(RECORDED.items()))
    last = wanted[-1]
    names = {**last.locations, next(iter(last.locations)): "file:/elsewhere"}
    changed = msgspec.structs.replace
    steps_changed = (changed(last, tree=last.tree[1:]), changed(last, locations=names), changed(last, error="AnError"))
    for number, step in enumerate(steps_changed):
        other = [*wanted[:-1], step]
        found = compared(other, tmp_path / str(number), seed, COUNT)
        assert (found.same, found.difference is None) == (len(wanted) - 1, False)


@pytest.mark.full
@pytest.mark.hms
@pytest.mark.parametrize("seed", LIVE)
def test_live(hms: EmbeddedHiveMetastore, seed: int, tmp_path: Path) -> None:
    found = compared(steps(hms, seed, COUNT), tmp_path, seed, COUNT)
    assert found.meant or found.difference is None, found.difference
