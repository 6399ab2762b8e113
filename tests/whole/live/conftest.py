"""The database of the live tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.mariadb import EmbeddedMariaDB


@pytest.fixture
def database() -> Iterator[EmbeddedMariaDB]:
    # a short path: sockets do not take a long one
    with tempfile.TemporaryDirectory(prefix="db") as place, EmbeddedMariaDB(Path(place)) as server:
        yield server
