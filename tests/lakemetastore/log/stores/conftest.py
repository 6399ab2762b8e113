"""The stores that the tests of this folder run over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.metastore.log_stores import Place
from lakemetastore.log.stores.base import LogStore
from tests.hypothesis_profile import usually
from tests.lakemetastore.log.stores.kinds import KINDS, name_of, place_of

#: Tests of writers in processes of their own.
STARVING = {"test_no_writer_starves", "test_control_without_turns_and_rests_writers_starve"}
SEVERAL_PROCESSES = STARVING | {"test_no_version_is_lost_or_doubled_when_writers_are_killed"}
#: A file on HDFS takes half a second. What local disk has too is left to the nightly run.
_ON_HDFS = {
    "test_of_many_threads_one_wins_each_version",
    "test_only_what_a_snapshot_covers_is_forgotten",
    "test_a_turn_comes_up_and_does_not_exclude",
    "test_no_version_is_lost_or_doubled_when_writers_are_killed",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test over each kind of store that it is for."""
    if "place" in metafunc.fixturenames:
        left_out = _left_out(metafunc.function.__name__)
        kinds = [kind for kind in KINDS if name_of(kind) not in left_out]
        metafunc.parametrize("place", kinds, indirect=True)


def _left_out(test: str) -> set[str]:
    left_out = set[str]()
    if test in SEVERAL_PROCESSES:
        left_out.add("memory")
    if test in STARVING:
        left_out |= {"hdfs", *usually(["mariadb", "postgresql"], [])}
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
