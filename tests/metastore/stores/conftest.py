"""The stores that the tests of this folder run over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.metastore.stores.base import LogStore
from tests.metastore.stores.kinds import KINDS, Place, place_of


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty place in each kind of store."""
    return place_of(request.param, request.getfixturevalue, tmp_path)


@pytest.fixture
def store(place: Place) -> Iterator[LogStore]:
    store = place.open()
    yield store
    store.close()
