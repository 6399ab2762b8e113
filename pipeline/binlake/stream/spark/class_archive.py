"""Makes an archive of Spark's classes, from which a JVM loads them verified (class data sharing of Java 17).

A JVM spends most of its CPU time before the first batch on loading classes (measured: 8 of 12 s of CPU, 4 with the
archive). The archive is made once, by a short streaming query in a process of its own, and kept in the cache. A JVM
checks that its own build and class path match the archive; if they do not, it loads classes without the archive.
"""

from __future__ import annotations

import hashlib
import logging
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from binlake.stream.spark.cache import cache_entry, cached
from binlake.stream.spark.jars import pyspark_jars
from binlake.stream.spark.java import find_java, java_environment
from hudilake.errors import ConfigError

_log = logging.getLogger(__name__)

_FILE = "classes.jsa"
_TIMEOUT_S = 180
# A JVM that cannot use the archive would warn on standard output.
_SILENT = "-Xlog:cds*=error"


def archive_options() -> str:
    """JVM options that use the archive; empty if there is none. Raises ConfigError if there is no Java."""
    archive = cache_entry(_name()) / _FILE
    return f"{shlex.quote(f'-XX:SharedArchiveFile={archive}')} {_SILENT}" if archive.is_file() else ""


def make_archive() -> None:
    """Make the archive unless it exists. A failure is logged, and not tried again where the cache can be written: Spark
    works without the archive.

    Raises ConfigError if there is no Java.
    """
    name = _name()
    try:
        cached(name, _make)
    except (ConfigError, OSError) as error:
        _log.warning("Spark's classes cannot be kept, so it starts more slowly: %s", error)


def _name() -> str:
    """The name of the cache entry: an archive fits one Java and one set of jars in one directory."""
    java, jars = find_java(), pyspark_jars()
    release = java.home / "release"
    version = release.read_text() if release.is_file() else ""
    parts = "\n".join([str(java.home), version, str(jars), str(int(jars.stat().st_mtime))])
    return f"spark-classes-{hashlib.sha256(parts.encode()).hexdigest()[:12]}"


def _make(work: Path) -> Path:
    entry = work / "entry"
    entry.mkdir()
    _log.info("preparing Spark's classes, once")
    command = [sys.executable, "-m", "binlake.stream.spark.class_archive", str(entry / _FILE), str(work)]
    try:
        environment = {**java_environment(), "PYTHONSAFEPATH": "1"}  # no folder of the working directory is a package
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=_TIMEOUT_S)
    except subprocess.SubprocessError as error:
        reason = str(getattr(error, "stderr", None) or error).strip()[-500:]
        _log.warning("Spark's classes could not be prepared, so it starts more slowly: %s", reason)
        (entry / _FILE).unlink(missing_ok=True)
    return entry


def main(arguments: Sequence[str]) -> None:
    """``python -m binlake.stream.spark.class_archive FILE DIRECTORY`` runs a query and archives its classes."""
    file, directory = arguments
    builder = SparkSession.builder.master("local[1]").config("spark.ui.port", "0").config("spark.driver.memory", "512m")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    options = f"-XX:ArchiveClassesAtExit={file} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    builder = builder.config("spark.sql.warehouse.dir", f"{directory}/warehouse")
    spark = builder.config("spark.driver.extraJavaOptions", options).getOrCreate()
    rows = spark.readStream.format("rate").load()
    writer = rows.writeStream.foreachBatch(_count).option("checkpointLocation", f"{directory}/checkpoint")
    query = writer.trigger(processingTime="100 milliseconds").start()
    query.processAllAvailable()
    query.stop()
    spark.stop()
    process = SparkContext._gateway.proc  # type: ignore[union-attr]
    process.stdin.close()  # its end: the JVM writes the archive and exits
    process.wait(_TIMEOUT_S)


def _count(batch: DataFrame, number: int) -> None:
    context = batch.sparkSession.sparkContext
    context.parallelize([0], 1).map(str).collect()


if __name__ == "__main__":
    main(sys.argv[1:])
