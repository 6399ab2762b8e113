"""One server for the tests of this folder; each makes a database of its own, and no test resets the binlog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.stream.binlog.followed import binlog_server


@pytest.fixture(scope="package")
def server() -> Iterator[EmbeddedMariaDB]:
    with binlog_server() as started:
        yield started
