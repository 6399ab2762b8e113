"""The lines of Spark that are supported, and the Kafka connector of each."""

from __future__ import annotations

import importlib.metadata

from hudilake.errors import UnsupportedError

#: The newest connector of each line whose token provider was published with it everywhere (measured).
KAFKA_CONNECTORS = {
    "3.5": "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7",
    "4.0": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
}


def spark_line() -> str:
    """The line of the installed PySpark (``3.5``). Raises UnsupportedError for a line that is not known here."""
    version = importlib.metadata.version("pyspark")
    line = ".".join(version.split(".")[:2])
    if line not in KAFKA_CONNECTORS:
        raise UnsupportedError(f"Spark {version} is not supported", do_next="install pyspark 3.5.7 or 4.0.2")
    return line
