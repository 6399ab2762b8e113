"""The one Spark session of a test run: the stream's own, with the Kafka connector and Hudi's bundle beside it.

A driver's jars and heap cannot change while its JVM lives, so streams under test and the judge share this one.
``binlake.stream.spark.session`` makes it: what it sets for a stream is what the tests run on.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from binlake.settings import Settings
from binlake.stream.spark.java import find_java
from binlake.stream.spark.lines import spark_line
from binlake.stream.spark.session import spark_session
from embedded.jars import spark_packages
from tests.judges.hudi_spark import HudiSpark

HEAP_MB = 2048


def session_conf(warehouse: Path) -> dict[str, str]:
    """Spark properties of the shared session. Hudi's bundle exists for Spark 3.5 only."""
    hudi = spark_line() == "3.5"
    conf = {
        "spark.jars": ",".join(map(str, spark_packages(hudi=hudi))),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        # Hudi's readers take a buffer of so many bytes for each log file, or of 16 MB, which costs more than its rows.
        "spark.hadoop.hoodie.memory.dfs.buffer.max.size": "65536",
        "spark.sql.warehouse.dir": warehouse.as_uri(),
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    if hudi:
        conf |= {
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        }
    return conf


def start_session(warehouse: Path) -> SparkSession:
    """The shared session; the one that runs, if it does."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    settings = {
        "name": "tests",
        "lake": {"uri": warehouse.as_uri()},
        "kafka": {"bootstrap_servers": "localhost:9092", "topics": ["none"]},
        "spark": {"master": "local[2]", "driver_memory_mb": HEAP_MB, "conf": session_conf(warehouse)},
    }
    session = spark_session(Settings.parse(json.dumps(settings)))
    session.sparkContext.setLogLevel("ERROR")
    return session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The shared session. Tests must not stop it."""
    session = start_session(tmp_path_factory.mktemp("warehouse"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def hudi_spark(spark: SparkSession) -> HudiSpark:
    """Hudi's own reader, on the shared session."""
    return HudiSpark(spark)


@contextlib.contextmanager
def configured(session: SparkSession, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """The shared session with further settings until the end of the block."""
    for name, value in conf.items():
        session.conf.set(name, value)
    try:
        yield session
    finally:
        for name in conf:
            session.conf.unset(name)
