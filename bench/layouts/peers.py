"""Hudi's clustering and Delta's OPTIMIZE, each in one Spark session of two cores."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from bench.layouts.files import bytes_of, data_bytes_of, hudi_files
from bench.layouts.sides import Layout, Sizes
from bench.peers import Delta, Hudi
from bench.spec import MASTER, SPARK_CONF
from binlake.stream.spark.java import java_environment
from hudilake.clock import monotonic_s

_HEAP_MB: Final = 3072
#: Hudi's clustering: (order_strategy, build method of the curve).
_HUDI: Final = {
    "linear": ("linear", "direct"),
    "z-order direct": ("z-order", "direct"),
    "z-order sampled": ("z-order", "sample"),
    "hilbert direct": ("hilbert", "direct"),
    "hilbert sampled": ("hilbert", "sample"),
}


def session_of(name: str, place: Path, jars: list[Path], own: Mapping[str, str]) -> SparkSession:
    """A session with two cores and the peer's properties."""
    os.environ.update(java_environment())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = SPARK_CONF | {
        "spark.driver.memory": f"{_HEAP_MB}m",
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.warehouse.dir": (place / "warehouse").as_uri(),
        **own,
    }
    builder = SparkSession.builder.appName(f"bench-layouts-{name}").master(MASTER)
    for key, value in conf.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _parts(session: SparkSession, parts: Path) -> DataFrame:
    """The rows, a task for each file in the files' order."""
    session.conf.set("spark.sql.files.maxPartitionBytes", str(1 << 40))
    session.conf.set("spark.sql.files.openCostInBytes", str(1 << 40))  # so a task takes one file
    return session.read.parquet(*[str(path) for path in sorted(parts.iterdir())])


class HudiSide:
    """A copy-on-write table with a metadata table, clustered by ``run_clustering``."""

    def __init__(self, place: Path) -> None:
        peer = Hudi(metadata=True)
        self._session = session_of("hudi", place, peer.jars(), peer.conf(place))

    def layouts(self) -> tuple[str, ...]:
        return tuple(_HUDI)

    def load(self, path: Path, parts: Path, sizes: Sizes) -> None:
        options = {
            "hoodie.table.name": path.name,
            "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "placed",
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.bulkinsert.sort.mode": "NONE",
            "hoodie.datasource.write.row.writer.enable": "true",
            "hoodie.bulkinsert.shuffle.parallelism": str(sizes.files),
            "hoodie.index.type": "SIMPLE",
            **_HUDI_WRITES,
        }
        _parts(self._session, parts).write.format("hudi").options(**options).mode("append").save(path.as_uri())

    def cluster(self, path: Path, layout: Layout, files: float) -> float:
        strategy, build = _HUDI[layout.name]
        target = int(data_bytes_of(self.files(path)) / files)  # its writer counts bytes before they are compressed
        options = {
            **_HUDI_WRITES,
            "hoodie.clustering.plan.strategy.target.file.max.bytes": str(target),
            "hoodie.clustering.plan.strategy.small.file.limit": str(1 << 40),
            "hoodie.clustering.plan.strategy.max.bytes.per.group": str(1 << 40),
            "hoodie.layout.optimize.curve.build.method": build,
            "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "false",
        }
        order = ",".join(layout.policy.columns)
        text = ",".join(f"{name}={value}" for name, value in options.items())
        started = monotonic_s()
        done = self._session.sql(
            f"CALL run_clustering(path => '{path}', op => 'scheduleAndExecute', order => '{order}', "
            f"order_strategy => '{strategy}', options => '{text}')"
        ).collect()
        spent = monotonic_s() - started
        if not done:
            raise RuntimeError("Hudi found nothing to cluster")
        return spent

    def files(self, path: Path) -> list[Path]:
        return hudi_files(path)

    def close(self) -> None:
        self._session.stop()


_HUDI_WRITES: Final = {
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.embed.timeline.server": "false",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.parquet.max.file.size": str(1 << 40),
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


class DeltaSide:
    """A Delta table, laid out by ``OPTIMIZE ... ZORDER BY``."""

    def __init__(self, place: Path) -> None:
        peer = Delta()
        self._session = session_of("delta", place, peer.jars(), peer.conf(place))

    def layouts(self) -> tuple[str, ...]:
        return ("z-order sampled",)  # values are numbered by sampled ranges; Hilbert is for tables with CLUSTER BY

    def load(self, path: Path, parts: Path, sizes: Sizes) -> None:
        _parts(self._session, parts).write.format("delta").mode("append").save(path.as_uri())

    def cluster(self, path: Path, layout: Layout, files: float) -> float:
        target = int(bytes_of(self.files(path)) / files)  # it rounds the number down
        for name, value in {
            "spark.databricks.delta.optimize.maxFileSize": target,
            "spark.databricks.delta.optimize.minFileSize": target,
        }.items():
            self._session.conf.set(name, str(value))
        started = monotonic_s()
        self._session.sql(f"OPTIMIZE delta.`{path}` ZORDER BY ({', '.join(layout.policy.columns)})").collect()
        return monotonic_s() - started

    def files(self, path: Path) -> list[Path]:
        """By the log: the files that were added and not removed."""
        alive: set[str] = set()
        for entry in sorted((path / "_delta_log").glob("*.json")):
            for line in entry.read_text().splitlines():
                action = json.loads(line)
                if "remove" in action:
                    alive.discard(action["remove"]["path"])
                if "add" in action:
                    alive.add(action["add"]["path"])
        return [path / name for name in sorted(alive)]

    def close(self) -> None:
        self._session.stop()
