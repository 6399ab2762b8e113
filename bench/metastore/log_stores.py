"""Stores of every kind, each with the server that it needs, for ``bench.metastore.commits``."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from embedded.mariadb import EmbeddedMariaDB
from embedded.postgresql import USER, EmbeddedPostgreSQL
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.stores.opening import open_store
from tests.services.hdfs import start_hdfs
from tests.services.s3 import start_s3

KINDS = ("local", "sqlite", "lmdb", "mariadb", "postgresql", "s3", "hdfs")
_PASSWORD = "bench"  # of a server that lives as long as the benchmark


@dataclass(frozen=True)
class Place:
    """A store that several processes open.

    Args:
        kind: of the store.
        uri, options: for ``open_store``.
    """

    kind: str
    uri: str
    options: dict[str, str] = field(default_factory=dict)

    def open(self) -> LogStore:
        """The store."""
        return open_store(self.uri, self.options)

    def empty(self) -> None:
        """Delete all logs."""
        store = self.open()
        for log in list(store.logs()):
            store.delete(log)
        store.close()


def place_here(kind: str, directory: Path) -> Place:
    """A store on this machine: ``local``, ``sqlite`` or ``lmdb``."""
    uris = {"local": f"{directory}/files", "sqlite": f"sqlite:///{directory}/log.db", "lmdb": f"lmdb:{directory}/lmdb"}
    return Place(kind, uris[kind])


@contextlib.contextmanager
def started_place(kind: str, directory: Path) -> Iterator[Place]:
    """An empty store for the length of the block. Everything is durable when a commit returns, as by default."""
    match kind:
        case "local" | "sqlite" | "lmdb":
            yield place_here(kind, directory)
        case "mariadb":
            # A socket does not take a long path.
            with tempfile.TemporaryDirectory(prefix="db") as short, EmbeddedMariaDB(Path(short)) as mariadb:
                mariadb.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1; CREATE DATABASE log")
                mariadb.execute(f"CREATE USER {USER}@'%' IDENTIFIED BY '{_PASSWORD}'; GRANT ALL ON *.* TO {USER}@'%'")
                yield Place(kind, f"mysql://{USER}@{mariadb.host}:{mariadb.port}/log", {"password": _PASSWORD})
        case "postgresql":
            with EmbeddedPostgreSQL(directory / "postgresql", settings={"fsync": "on"}) as postgresql:
                yield Place(kind, f"postgresql://{USER}@{postgresql.host}:{postgresql.port}/postgres")
        case "s3":
            with start_s3() as s3:
                s3.create_bucket("lake")
                yield Place(kind, "s3://lake/log", s3.options())
        case "hdfs":
            with start_hdfs(directory / "hdfs") as hdfs:
                yield Place(kind, f"{hdfs.uri}/log")
