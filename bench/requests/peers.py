"""The peers' commits: the writers of ``bench.peers``, over s3a."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as st

from bench.events import Shape
from bench.peer_stream import newest_changes
from bench.peers import PEERS, Table
from bench.requests.ours import Event
from bench.requests.store import Store, StorePlace
from bench.spec import SPARK_CONF
from binlake.stream.spark.jars import resolve_archive
from binlake.stream.spark.java import java_environment

_S3A = ("org.apache.hadoop:hadoop-aws:3.3.4:jar", "com.amazonaws:aws-java-sdk-bundle:1.12.262:jar")
_RECORDS = st.StructType([st.StructField("offset", st.LongType()), st.StructField("value", st.StringType())])


class PeerWriter:
    """One peer's table in the store. ``name``: of ``bench.peers.PEERS``."""

    def __init__(self, name: str, store: Store, buckets: int) -> None:
        os.environ.update(java_environment())
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self._peer = PEERS[name]
        lake = StorePlace(name)
        jars = [*self._peer.jars(), *(resolve_archive(one, "s3a") for one in _S3A)]
        conf = {
            **SPARK_CONF,
            "spark.driver.memory": "1500m",
            "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
            "spark.jars": ",".join(map(str, jars)),
            **self._peer.conf(lake),
            **store.hadoop,
        }
        builder = SparkSession.builder.appName(f"requests-{name}").master("local[2]")
        for key, value in conf.items():
            builder = builder.config(key, value)
        self._session = builder.getOrCreate()
        self._session.sparkContext.setLogLevel("ERROR")
        self._table = Table(Shape(), StorePlace(f"{name}/orders"), buckets)
        self._peer.create(self._session, self._table, ageing=False)
        self._written = 0
        self.version = next(jar.name.removesuffix(".jar") for jar in jars if name.split("-")[0] in jar.name)

    def write(self, events: Sequence[Event]) -> None:
        """Commit one batch."""
        held = [(self._written + number, value.decode()) for number, (_, value) in enumerate(events)]
        self._written += len(events)
        changes = newest_changes(self._session.createDataFrame(held, _RECORDS), Shape())
        self._peer.write(changes, self._table)

    def close(self) -> None:
        """Stop Spark."""
        self._session.stop()
