"""A real Hive Metastore as a child process, from Maven jars: release 3.1.3 or 4.0.1, on loopback, with a small heap.

Its tables are in a Derby database of its own, or in a MySQL-like server (3.1.3 only, for the benchmark).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal, Self, get_args

from binlake.stream.spark.jars import resolve
from binlake.stream.spark.java import find_java
from embedded.hadoop_configuration import write_configuration
from embedded.hive_client import answers
from embedded.jars import HIVE_METASTORES, HIVE_WITHOUT
from embedded.process import HOST, EmbeddedService, free_ports
from hudilake.errors import TransientError

Release = Literal["3.1.3", "4.0.1"]

_CLASS = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_DIRECT_SQL = "org.apache.hadoop.hive.metastore.MetaStoreDirectSql"
#: For short lives on small machines.
_SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_OPENED = ("net", "lang", "lang.reflect", "util", "util.concurrent", "io", "nio")
_CONFIGURATION = {
    "datanucleus.schema.autoCreateAll": "true",
    "datanucleus.autoStartMechanismMode": "ignored",
    "metastore.schema.verification": "false",
    # The default needs the jar of Hive's SQL engine.
    "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
    # Among the default tasks is one whose class is in the jar of Hive's SQL engine.
    "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
    # A call that its database refuses is tried again ten times, by default every 2 s.
    "metastore.hmshandler.retry.interval": "10ms",
    # 4.0 would start its own housekeeping, which wants ZooKeeper or a lock in the database.
    "metastore.housekeeping.threads.on": "false",
    "metastore.compactor.initiator.on": "false",
}


@dataclass(frozen=True)
class Database:
    """Where a metastore keeps its tables: a JDBC address, its driver's class, and a user."""

    url: str
    driver: str
    user: str
    password: str = ""

    @classmethod
    def mariadb(cls, port: int, name: str, user: str, password: str) -> Self:
        """A database of a MariaDB on this machine, in a character set whose keys fit into its indexes (latin1)."""
        # HMS knows the server as MySQL only: its direct SQL depends on the name that the driver gives.
        url = f"jdbc:mariadb://{HOST}:{port}/{name}?useMysqlMetadata=true&useSSL=false"
        return cls(url, "org.mariadb.jdbc.Driver", user, password)


class EmbeddedHiveMetastore(EmbeddedService):
    """A metastore that runs for the duration of the ``with`` block; its data stays in ``data_dir``.

    Args:
        data_dir: for its database, its warehouse, its configuration and ``hms.log``; created if missing.
        release: of Hive.
        database: where its tables are; None for a Derby database in ``data_dir``.
        heap_mb: the JVM's heap, in MB.
        jvm: other options of the JVM; by default those for a short life on a small machine.
        settings: of ``metastore-site.xml``, to add or to replace.
        start_timeout_s: the most time a start may take, in seconds.
    """

    def __init__(
        self,
        data_dir: Path,
        release: Release = "3.1.3",
        *,
        database: Database | None = None,
        heap_mb: int = 256,
        jvm: Sequence[str] = _SMALL,
        settings: Mapping[str, str] | None = None,
        start_timeout_s: float = 120,
    ) -> None:
        super().__init__(data_dir, "hms.log", start_timeout_s)
        self.release: Release = release
        self.host, self.port = HOST, 0
        self._database = database
        self._jvm = ["-Xms32m", f"-Xmx{heap_mb}m", *jvm]
        self._settings = dict(settings or {})

    @property
    def warehouse(self) -> Path:
        """The directory of databases and managed tables."""
        return self._dir / "warehouse"

    @property
    def uri(self) -> str:
        """``thrift://host:port``."""
        return f"thrift://{self.host}:{self.port}"

    def start(self) -> None:
        """Start the metastore and wait until it serves. With a new database it is started twice.

        At the first start its test of direct SQL runs before the tables exist, and it would serve without direct SQL.

        Raises:
            TransientError: it ended or did not serve in time (the message has the end of its log), or its libraries
                could not be fetched.
            ConfigError: no Java.
        """
        made = self._dir / "tables-made"
        self._dir.mkdir(parents=True, exist_ok=True)
        self.warehouse.mkdir(exist_ok=True)
        if not made.exists():
            self._launch()
            self.stop()
            made.touch()
        self._launch()

    def _launch(self) -> None:
        [self.port] = free_ports(1)
        self._write_configuration()
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HADOOP_", "HIVE_", "METASTORE_"))}
        self._spawn(self._command(), directory=self._dir, environment=environment)
        problem = self._wait_until(lambda: answers(self.host, self.port))
        if problem:
            # The cause is not in the last lines: a metastore that cannot start shuts down with words.
            causes = re.findall(r"^Caused by: .*", self._printed(), re.MULTILINE)
            told = "; ".join([*causes[-1:], problem])
            raise TransientError(
                f"the Hive Metastore did not start: {told}", do_next="read its log", log=str(self.log_file)
            )

    def _command(self) -> list[str]:
        jars = hive_jars(self.release)
        log = "-Dorg.slf4j.simpleLogger"
        levels = [f"{log}.defaultLogLevel=warn", *(f"{log}.log.{name}=info" for name in (_CLASS, _DIRECT_SQL))]
        opened = [word for name in _OPENED for word in ("--add-opens", f"java.base/java.{name}=ALL-UNNAMED")]
        # The configuration is looked for on the class path.
        classes = ":".join([str(self._dir / "conf"), *map(str, jars)])
        derby = [f"-Dderby.system.home={self._dir}"]
        java = [str(find_java().command), *self._jvm, *levels, *opened, *derby]
        return [*java, "-cp", classes, _CLASS, "-p", str(self.port)]

    def _write_configuration(self) -> None:
        derby = f"jdbc:derby:;databaseName={self._dir / 'derby'};create=true"
        at = self._database or Database(derby, "org.apache.derby.jdbc.EmbeddedDriver", "app", "mine")
        values = _CONFIGURATION | {
            "javax.jdo.option.ConnectionURL": at.url,
            "javax.jdo.option.ConnectionDriverName": at.driver,
            "javax.jdo.option.ConnectionUserName": at.user,
            "javax.jdo.option.ConnectionPassword": at.password,
            "metastore.warehouse.dir": str(self.warehouse),
            "metastore.thrift.bind.host": HOST,
        }
        conf = self._dir / "conf"
        conf.mkdir(exist_ok=True)
        write_configuration(conf / "metastore-site.xml", values | self._settings)


def hive_jars(release: Release) -> list[Path]:
    """The jars of a metastore. Raises as :func:`binlake.stream.spark.jars.resolve`."""
    # Hive's dependencies on Hadoop are replaced by Hadoop's own bundle, except for the module that 4.0 needs besides.
    without = [*HIVE_WITHOUT, *(["org.apache.hadoop:hadoop-hdfs"] if release == "3.1.3" else [])]
    return resolve(HIVE_METASTORES[release], f"hms-{release}", exclude=without)


def main(argv: Sequence[str]) -> int:
    """``python -m embedded.hms RELEASE``: a metastore that stays up until SIGTERM or SIGINT.

    Prints one line of JSON: ``{"port": ..., "pid": ..., "warehouse": ...}``.
    """
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("release", nargs="?", choices=get_args(Release), default="3.1.3")
    parser.add_argument("--data", type=Path, help="directory that is kept; a temporary one if not given")
    given = parser.parse_args(argv)
    place = given.data or Path(tempfile.mkdtemp(prefix="hms-"))
    try:
        with EmbeddedHiveMetastore(place, given.release) as metastore:
            told = {"port": metastore.port, "pid": metastore.pid, "warehouse": str(metastore.warehouse)}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
            _wait_for_a_signal()
    finally:
        if given.data is None:
            shutil.rmtree(place)
    return 0


def _wait_for_a_signal() -> None:
    def awake(number: int, frame: FrameType | None) -> None:
        pass

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, awake)
    signal.pause()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
