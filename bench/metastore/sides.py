"""The two metastores of the benchmark: a Hive Metastore 3.1.3 and binlake's, each on a MariaDB of its own."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from embedded.hive_client import answers
from embedded.hms import Database, EmbeddedHiveMetastore
from embedded.mariadb import EmbeddedMariaDB
from embedded.process import HOST, EmbeddedService, free_ports
from hudilake.errors import TransientError

_USER, _PASSWORD = "bench", "bench"  # of a server that lives as long as the benchmark
#: Bytes that MariaDB may keep of the tables, enough for all of them.
_BUFFER = 1 << 30


class Side(Protocol):
    """A metastore that is measured."""

    host: str
    port: int

    def start(self) -> None:
        """Start it and wait until it answers."""

    def stop(self) -> None:
        """Stop it; what it holds stays."""


class Served(EmbeddedService):
    """``binlake metastore serve`` as a process.

    Args:
        data_dir: for its settings and its log.
        store: address of its store.
        password: of the store's user.
        processes: how many of them answer.
    """

    def __init__(self, data_dir: Path, store: str, password: str, processes: int) -> None:
        super().__init__(data_dir, "metastore.log")
        self.host, self.port = HOST, 0
        self._settings = {
            "store": {"uri": store, "options": {"password": password}},
            "warehouse": (data_dir / "warehouse").as_uri(),
            "processes": processes,
            "monitoring": {"port": None},
        }

    def start(self) -> None:
        """Start it and wait until it answers. Raises TransientError if it does not."""
        self._dir.mkdir(parents=True, exist_ok=True)
        self.port, http = free_ports(2)
        settings = self._settings | {"thrift": {"port": self.port}, "http": {"port": http}}
        conf = self._dir / "metastore.json"
        conf.write_text(json.dumps(settings))
        self._spawn([str(Path(sys.executable).parent / "binlake"), "metastore", "serve", str(conf)])
        problem = self._wait_until(lambda: answers(self.host, self.port), pause_s=0.05)
        if problem:
            raise TransientError(f"the metastore did not start: {problem}", do_next="read its log")


@contextlib.contextmanager
def mariadb() -> Iterator[EmbeddedMariaDB]:
    """A MariaDB in whose memory all tables have room. Commits reach the disk, as by default."""
    # A socket does not take a long path.
    with tempfile.TemporaryDirectory(prefix="db") as place, EmbeddedMariaDB(Path(place)) as server:
        server.execute(f"SET GLOBAL innodb_buffer_pool_size = {_BUFFER}")
        server.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
        server.execute(f"CREATE USER {_USER}@'%' IDENTIFIED BY '{_PASSWORD}'; GRANT ALL ON *.* TO {_USER}@'%'")
        yield server


@contextlib.contextmanager
def sides(place: Path, processes: int) -> Iterator[dict[str, Side]]:
    """Both metastores, running, for the length of the block.

    Args:
        place: for their files.
        processes: how many of binlake's answer.

    Raises:
        TransientError: one did not start, or the Hive Metastore uses no direct SQL.
    """
    with mariadb() as server, contextlib.ExitStack() as stack:
        # In latin1 the keys of Hive's tables fit into an index, as in its own scripts.
        server.execute("CREATE DATABASE hms CHARACTER SET latin1 COLLATE latin1_bin; CREATE DATABASE binlake")
        tables = Database.mariadb(server.port, "hms", _USER, _PASSWORD)
        hms = EmbeddedHiveMetastore(place / "hms", database=tables, heap_mb=3072, jvm=())
        stack.enter_context(hms)
        if "Using direct SQL, underlying DB is MYSQL" not in hms.log_file.read_text():
            raise TransientError("the Hive Metastore uses no direct SQL", do_next="read its log", log=str(hms.log_file))
        store = f"mysql://{_USER}@{server.host}:{server.port}/binlake"
        ours = stack.enter_context(Served(place / "binlake", store, _PASSWORD, processes))
        yield {"hms": hms, "binlake": ours}
