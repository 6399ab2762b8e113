"""One server for the tests of this folder; each makes a database of its own, and no test resets the binlog."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.stream.binlog.followed import USER_SQL


@pytest.fixture(scope="package")
def server() -> Iterator[EmbeddedMariaDB]:
    # a short path: sockets do not take a long one
    with tempfile.TemporaryDirectory(prefix="db") as place, EmbeddedMariaDB(Path(place)) as started:
        started.execute(USER_SQL)
        yield started
