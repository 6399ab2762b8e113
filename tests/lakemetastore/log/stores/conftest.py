"""The stores that the tests of this folder run over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.metastore.log_stores import Place
from lakemetastore.log.stores.base import LogStore
from tests.hypothesis_profile import usually
from tests.lakemetastore.log.stores.kinds import KINDS, name_of, place_of

#: Of writers in processes of their own: no other process sees a store in memory.
SEVERAL_PROCESSES = "test_no_version_is_lost_or_doubled_when_writers_are_killed"
#: What local disk has too is left to the nightly run.
_ON_HDFS = {
    "test_of_many_threads_one_wins_each_version",
    "test_only_what_a_snapshot_covers_is_forgotten",
    "test_a_turn_comes_up_and_does_not_exclude",
    "test_no_version_is_lost_or_doubled_when_writers_are_killed",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test over each kind of store that it is for, unless it names the kinds itself."""
    own = any("place" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "place" in metafunc.fixturenames and not own:
        left_out = _left_out(metafunc.function.__name__)
        kinds = [kind for kind in KINDS if name_of(kind) not in left_out]
        metafunc.parametrize("place", kinds, indirect=True)


def _left_out(test: str) -> set[str]:
    left_out = set[str]()
    if test == SEVERAL_PROCESSES:
        left_out.add("memory")
    if test not in _ON_HDFS:
        left_out |= {*usually(["hdfs"], [])}
    return left_out


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place in each kind of store."""
    return place_of(request.param, request.getfixturevalue, tmp_path)


@pytest.fixture
def store(place: Place) -> Iterator[LogStore]:
    store = place.open()
    yield store
    store.close()
