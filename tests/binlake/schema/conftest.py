"""The server whose conversions and expressions are compared with ours."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.mariadb import EmbeddedMariaDB


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedMariaDB]:
    """A server with the database ``x``."""
    # a short path: sockets do not take a long one
    with tempfile.TemporaryDirectory(prefix="db") as place, EmbeddedMariaDB(Path(place)) as started:
        started.execute("CREATE DATABASE x CHARACTER SET utf8mb4")
        yield started
