"""The stores that the tests of this folder run over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.metastore.log_stores import Place
from pipeline.metastore.stores.base import LogStore
from tests.hypothesis_profile import is_nightly
from tests.metastore.stores.kinds import KINDS, place_of

#: A file on HDFS takes half a second. What local disk has too is left to the nightly run.
_ON_HDFS = {
    "test_of_many_threads_one_wins_each_version",
    "test_only_what_a_snapshot_covers_is_forgotten",
    "test_a_turn_comes_up_and_does_not_exclude",
    "test_no_version_is_lost_or_doubled_when_writers_are_killed",
}


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place in each kind of store."""
    if request.param == "hdfs" and not is_nightly() and request.node.originalname not in _ON_HDFS:
        pytest.skip("in the nightly run")
    return place_of(request.param, request.getfixturevalue, tmp_path)


@pytest.fixture
def store(place: Place) -> Iterator[LogStore]:
    store = place.open()
    yield store
    store.close()
