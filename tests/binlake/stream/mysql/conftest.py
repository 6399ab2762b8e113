"""One MySQL for the tests of this folder; each makes a database of its own, and no test resets the binlog."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.planted import PASSWORD, USER
from embedded.mysql import EmbeddedMySQL

_USER_SQL = (
    f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';"
    f"GRANT SELECT, RELOAD, PROCESS, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO '{USER}'@'%';"
)


@pytest.fixture(scope="package")
def server() -> Iterator[EmbeddedMySQL]:
    # a short path: sockets do not take a long one
    with tempfile.TemporaryDirectory(prefix="db") as place, EmbeddedMySQL(Path(place)) as started:
        started.execute(_USER_SQL)
        yield started
