"""SQL servers that the stores of logs are tested with, each started at most once by each process of a run."""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from embedded.mariadb import EmbeddedMariaDB
from embedded.postgresql import USER, EmbeddedPostgreSQL

PASSWORD = "hush'this;is"
_numbers = itertools.count()


@dataclass
class SqlServer:
    """A server and its user.

    Args:
        service: the server.
        scheme: of its URIs.
    """

    service: EmbeddedMariaDB | EmbeddedPostgreSQL
    scheme: str

    def new_database(self) -> str:
        """Make a database; its URI, without the password."""
        name = f"store{next(_numbers)}"
        self.service.execute(f"CREATE DATABASE {name}")
        return f"{self.scheme}://{USER}@{self.service.host}:{self.service.port}/{name}"

    @functools.cached_property
    def shared_database(self) -> str:
        """The URI of a database for one test after another: to make tables takes a second."""
        return self.new_database()


@pytest.fixture(scope="session")
def log_mariadb() -> Iterator[SqlServer]:
    """A MariaDB. Its directory has a short path: sockets do not take a long one."""
    with tempfile.TemporaryDirectory(prefix="db") as path, EmbeddedMariaDB(Path(path)) as server:
        server.execute(f"CREATE USER '{USER}'@'%' IDENTIFIED BY \"{PASSWORD}\"; GRANT ALL ON *.* TO '{USER}'@'%'")
        yield SqlServer(server, "mysql+pymysql")


@pytest.fixture(scope="session")
def log_postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    """A PostgreSQL."""
    with EmbeddedPostgreSQL(tmp_path_factory.mktemp("postgresql")) as server:
        yield SqlServer(server, "postgresql+psycopg")
