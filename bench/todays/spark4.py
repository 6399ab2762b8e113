"""Peers on Spark 4.1: Delta 4.4 and Iceberg, each tuned by its own manual. bench/README.md has the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.peers import Delta, Peer, Place, Table, merge_into
from binlake.stream.spark.jars import resolve
from binlake.stream.spark.lines import SPARK_PROVIDES
from embedded.jars import DELTA_4, ICEBERG, KAFKA_CONNECTOR_4_1


def _kafka() -> list[Path]:
    """Spark's own connector: binlake needs none on Spark 4."""
    return resolve([KAFKA_CONNECTOR_4_1], "spark-kafka-4.1", exclude=SPARK_PROVIDES)


class Delta4(Delta):
    """``MERGE`` with deletion vectors, by the newest Delta that resolves."""

    def jars(self) -> list[Path]:
        # the other jars, of its catalog and its own Parquet reader, are of other versions than Spark's
        found = resolve(DELTA_4, "delta-4", exclude=SPARK_PROVIDES)
        return _kafka() + [jar for jar in found if jar.name.startswith("delta-")]


class Iceberg:
    """``MERGE`` into a table of format 3, merge-on-read with deletion vectors, in a Hadoop catalog."""

    def jars(self) -> list[Path]:
        return _kafka() + resolve(ICEBERG, "iceberg", exclude=SPARK_PROVIDES)

    def conf(self, lake: Place) -> Mapping[str, str]:
        return {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.iceberg.type": "hadoop",
            "spark.sql.catalog.iceberg.warehouse": lake.as_uri(),
        }

    def create(self, session: SparkSession, table: Table, *, ageing: bool) -> None:
        partitioned = f" PARTITIONED BY ({table.partition})" if table.partition else ""
        session.sql(
            f"CREATE TABLE {self._name(table)} ({table.ddl()}) USING iceberg{partitioned} TBLPROPERTIES ("
            "'format-version' = '3', 'write.merge.mode' = 'merge-on-read', "
            "'write.merge.distribution-mode' = 'none', 'write.parquet.compression-codec' = 'zstd')"
        )

    def write(self, changes: DataFrame, table: Table) -> None:
        merge_into(self._name(table), changes, table)

    def read(self, session: SparkSession, table: Table) -> DataFrame:
        session.catalog.refreshTable(self._name(table))  # kept for 30 s; the batches have a catalog of their own
        return session.table(self._name(table))

    def _name(self, table: Table) -> str:
        return f"iceberg.bench.{table.shape.table}"


PEERS_ON_SPARK_4: dict[str, Peer] = {"delta-4": Delta4(), "iceberg": Iceberg()}
