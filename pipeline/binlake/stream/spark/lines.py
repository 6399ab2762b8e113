"""The lines of Spark that binlake runs on.

Spark 3.5 plans batches by its Kafka connector, a set of jars. Spark 4 has data sources in Python, so there binlake
plans them itself (``offset_source.py``) and needs no jars.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from hudilake.errors import ConfigError, UnsupportedError


@dataclass(frozen=True)
class SparkLine:
    """A line of Spark.

    Args:
        newest_python: the newest that the short suite passes on (``lines/results.json``).
        kafka_connector: the newest whose token provider was published with it everywhere (measured); None if the line
            needs none.
    """

    newest_python: tuple[int, int]
    kafka_connector: str | None = None


#: What Spark 3.5 sends to its tasks it cannot write on Python 3.14: its own copy of cloudpickle does not come to an end
#: (measured).
SPARK_LINES: Mapping[str, SparkLine] = {
    "3.5": SparkLine((3, 13), "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7"),
    "4.0": SparkLine((3, 14)),
    "4.1": SparkLine((3, 14)),
    "4.2": SparkLine((3, 14)),
    "4.3": SparkLine((3, 14)),
}

#: Spark has these on its class path already; a second copy is 50 MB of download and a version conflict.
SPARK_PROVIDES = (
    "org.apache.hadoop:*",
    "org.apache.hive:*",
    "org.apache.spark:spark-tags_2.12",
    "org.apache.spark:spark-tags_2.13",
    "org.scala-lang:*",
    "org.scala-lang.modules:*",
    "org.slf4j:*",
    "org.lz4:*",
    "org.xerial.snappy:*",
    "com.github.luben:*",
    "com.google.code.findbugs:*",
    "commons-logging:*",
)


def spark_line() -> str:
    """The line of this Python's PySpark (``3.5``). Raises UnsupportedError for a line that is not known here, and for
    one that is not known to run on this Python."""
    from pyspark import __version__ as version  # its own word: a cluster's PySpark was not installed by pip

    line = ".".join(version.split(".")[:2])
    if line not in SPARK_LINES:
        lines = ", ".join(SPARK_LINES)
        raise UnsupportedError(f"Spark {version} is not supported", do_next=f"install a pyspark of the lines {lines}")
    this, newest = sys.version_info[:2], SPARK_LINES[line].newest_python
    if this > newest:
        lines = ", ".join(name for name, one in SPARK_LINES.items() if one.newest_python >= this)
        python = f"Python 3.11 to {newest[0]}.{newest[1]}"
        raise UnsupportedError(
            f"Spark {version} is not supported on Python {this[0]}.{this[1]}",
            do_next=f"take {python}, or a pyspark of the lines {lines}" if lines else f"take {python}",
        )
    return line


def connector_coordinate() -> str | None:
    """The Kafka connector of the installed PySpark; None if it needs none. Raises as ``spark_line``."""
    return SPARK_LINES[spark_line()].kafka_connector


def check_fetch(fetch: str) -> None:
    """Raise ConfigError where ``kafka.fetch`` wants Spark's Kafka source and the installed line has none."""
    if fetch == "spark" and connector_coordinate() is None:
        raise ConfigError(
            f"kafka.fetch: spark needs Spark 3.5; this is {spark_line()}, where tasks fetch by themselves",
            do_next="leave out kafka.fetch",
        )
