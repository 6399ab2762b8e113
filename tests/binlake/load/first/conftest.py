"""One server for all tests of this folder; each test makes a database of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.mariadb import EmbeddedMariaDB
from hudilake.clock import new_uuid
from tests.binlake.load.first.changing import WRITER_SQL
from tests.binlake.proof.verify.source import USER_SQL


@pytest.fixture(scope="package")
def server() -> Iterator[EmbeddedMariaDB]:
    # a short path: sockets do not take a long one
    with tempfile.TemporaryDirectory(prefix="db") as place, EmbeddedMariaDB(Path(place)) as started:
        started.execute(USER_SQL + WRITER_SQL)
        yield started


@pytest.fixture
def database(server: EmbeddedMariaDB) -> Iterator[str]:
    name = f"l_{new_uuid()[:8]}"
    server.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield name
    server.execute(f"DROP DATABASE {name}")
