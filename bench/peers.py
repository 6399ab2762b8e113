"""The peers' writers: Hudi, Delta and Paimon, each tuned by its own manual. See README.md for the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from bench.events import Shape
from binlake.stream.spark.jars import resolve
from binlake.stream.spark.lines import SPARK_PROVIDES
from embedded.jars import DELTA, PAIMON, spark_packages

#: Additional columns of a change: whether the key is deleted, and the order of a key's changes.
DELETED, ORDER = "_hoodie_is_deleted", "_order"


class Place(Protocol):
    """Where a table or a lake is: a ``Path``, or a place in an object store, whose text is its URI."""

    def as_uri(self) -> str:
        """The place as a URI."""
        ...


@dataclass(frozen=True)
class Table:
    """One table to be written. ``file_rows``, ``load_batch``: see ``Workload``; 0 where nothing is loaded before."""

    shape: Shape
    path: Place
    buckets: int
    index: str = "bucket"
    table_type: str = "merge_on_read"
    file_rows: int = 0
    load_batch: int = 0

    @property
    def partition(self) -> str | None:
        """The column that partitions the table."""
        return "country" if self.shape.partitions else None

    def ddl(self) -> str:
        """The columns in Spark SQL."""
        kinds = {"tinyint": "int", "datetime": "timestamp", "timestamp": "timestamp"}
        columns = []
        for name, mysql in self.shape.types().items():
            kind = mysql.split("(")[0]
            text = kind if kind in ("bigint", "int", "double") else kinds.get(kind, "string")
            not_null = " NOT NULL" if name == "id" else ""
            columns.append(f"{name} {'decimal(12,2)' if kind == 'decimal' else text}{not_null}")
        return ", ".join(columns)


class Peer(Protocol):
    """A table format's own way of applying changes on Spark."""

    def jars(self) -> list[Path]:
        """The jars for ``binlake.stream.spark.jars``, including the Kafka connector."""
        ...

    def conf(self, lake: Place) -> Mapping[str, str]:
        """The Spark properties that the peer needs."""
        ...

    def create(self, session: SparkSession, table: Table, *, ageing: bool) -> None:
        """Create the empty table, if that is a separate step. ``ageing``: with its table services, as in long use."""
        ...

    def write(self, changes: DataFrame, table: Table) -> None:
        """Apply changes, one row per key."""
        ...

    def read(self, session: SparkSession, table: Table) -> DataFrame:
        """The current rows, as a reader sees them."""
        ...


#: binlake's name of an index -> Hudi's.
_HUDI_INDEX = {
    "bucket": "BUCKET",
    "bloom": "BLOOM",
    "global_bloom": "GLOBAL_BLOOM",
    "simple": "SIMPLE",
    "record_index": "RECORD_INDEX",
}


class Hudi:
    """Upserts into a table, merge-on-read with a bucket index unless the workload has another kind."""

    def __init__(self, *, metadata: bool) -> None:
        self._metadata = str(metadata).lower()
        self._ageing = False
        self._loading = 1

    def jars(self) -> list[Path]:
        return spark_packages(hudi=True)

    def conf(self, lake: Place) -> Mapping[str, str]:
        return {
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        }

    def create(self, session: SparkSession, table: Table, *, ageing: bool) -> None:
        self._ageing = ageing
        if table.file_rows and ageing:  # bulk_insert sorts into so many files as Spark's shuffle has partitions
            self._loading = max(1, table.load_batch // table.file_rows)
            session.conf.set("spark.sql.shuffle.partitions", str(self._loading))

    def options(self, table: Table) -> dict[str, str]:
        """The options of one write."""
        services = str(self._ageing).lower()
        return {
            "hoodie.table.name": table.shape.table,
            "hoodie.datasource.write.table.type": table.table_type.upper(),
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": ORDER,
            "hoodie.datasource.write.partitionpath.field": table.partition or "",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.index.type": _HUDI_INDEX[table.index],
            "hoodie.bucket.index.hash.field": "id",
            "hoodie.bucket.index.num.buckets": str(table.buckets),
            "hoodie.combine.before.upsert": "false",  # the input has one row per key
            "hoodie.upsert.shuffle.parallelism": "2",
            "hoodie.write.markers.type": "DIRECT",
            "hoodie.embed.timeline.server": "false",
            "hoodie.parquet.compression.codec": "zstd",
            "hoodie.metadata.enable": self._metadata,
            "hoodie.metadata.index.column.stats.enable": self._metadata,
            "hoodie.metadata.index.bloom.filter.enable": self._metadata,
            "hoodie.compact.inline": services,
            "hoodie.compact.inline.max.delta.commits": "100",
            "hoodie.clean.automatic": services,
            "hoodie.archive.automatic": services,
            **(self._in_files(table) if table.file_rows else {}),
        }

    def _in_files(self, table: Table) -> dict[str, str]:
        """The options of a table that is loaded first, in files of a given number of rows. New keys begin new files."""
        load = {
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
            "hoodie.bulkinsert.shuffle.parallelism": str(self._loading),
        }
        return {
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.metadata.record.index.enable": str(table.index == "record_index").lower(),
            "hoodie.compact.inline": "false",
            **(load if self._ageing else {}),
        }

    def write(self, changes: DataFrame, table: Table) -> None:
        changes.write.format("hudi").options(**self.options(table)).mode("append").save(table.path.as_uri())

    def read(self, session: SparkSession, table: Table) -> DataFrame:
        return session.read.format("hudi").option("hoodie.metadata.enable", self._metadata).load(table.path.as_uri())


def merge_into(target: str, changes: DataFrame, table: Table) -> None:
    """Apply changes by ``MERGE``. ``target``: the table's name in SQL."""
    view, names = f"changes_{table.shape.table}", list(table.shape.types())
    changes.createOrReplaceTempView(view)
    same = "t.id = s.id" + (f" AND t.{table.partition} = s.{table.partition}" if table.partition else "")
    changes.sparkSession.sql(
        f"MERGE INTO {target} t USING {view} s ON {same} "
        f"WHEN MATCHED AND s.{DELETED} THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{n} = s.{n}' for n in names)} "
        f"WHEN NOT MATCHED AND NOT s.{DELETED} THEN INSERT ({', '.join(names)}) "
        f"VALUES ({', '.join(f's.{n}' for n in names)})"
    )


class Delta:
    """``MERGE`` in ``foreachBatch``, with deletion vectors or by rewriting files."""

    def __init__(self, *, deletion_vectors: bool = True) -> None:
        self._deletion_vectors = str(deletion_vectors).lower()
        self._loading = False

    def jars(self) -> list[Path]:
        return spark_packages() + resolve(DELTA, "delta", exclude=SPARK_PROVIDES)

    def conf(self, lake: Place) -> Mapping[str, str]:
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.parquet.compression.codec": "zstd",
            "spark.databricks.delta.snapshotPartitions": "2",  # the default of 50 is for clusters
        }

    def create(self, session: SparkSession, table: Table, *, ageing: bool) -> None:
        self._loading = ageing and table.file_rows > 0
        partitioned = f" PARTITIONED BY ({table.partition})" if table.partition else ""
        session.sql(
            f"CREATE TABLE delta.`{table.path}` ({table.ddl()}) USING delta{partitioned} TBLPROPERTIES "
            f"('delta.enableDeletionVectors' = '{self._deletion_vectors}', "
            f"'delta.autoOptimize.autoCompact' = '{str(ageing).lower()}')"
        )

    def write(self, changes: DataFrame, table: Table) -> None:
        if self._loading:  # as with Hudi: sorted by key, in files of so many rows
            files = max(1, table.load_batch // table.file_rows)
            rows = changes.select(*table.shape.types()).repartitionByRange(files, "id")
            rows.write.format("delta").mode("append").save(str(table.path))
            return
        merge_into(f"delta.`{table.path}`", changes, table)

    def read(self, session: SparkSession, table: Table) -> DataFrame:
        return session.read.format("delta").load(str(table.path))


class Paimon:
    """A bucketed primary-key table, write-only: another job compacts it."""

    KIND = "row_kind"

    def jars(self) -> list[Path]:
        # its jar is shaded; the other dependencies in its POM would only conflict
        found = resolve(PAIMON, "paimon", exclude=SPARK_PROVIDES)
        return spark_packages() + [jar for jar in found if jar.name.startswith("paimon-spark")]

    def conf(self, lake: Place) -> Mapping[str, str]:
        return {
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
            "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.paimon.warehouse": lake.as_uri(),
        }

    def create(self, session: SparkSession, table: Table, *, ageing: bool) -> None:
        key = f"{table.partition},id" if table.partition else "id"
        partitioned = f" PARTITIONED BY ({table.partition})" if table.partition else ""
        session.sql("CREATE DATABASE IF NOT EXISTS paimon.bench")
        session.sql(
            f"CREATE TABLE {self._name(table)} ({table.ddl()}, {self.KIND} string){partitioned} TBLPROPERTIES ("
            f"'primary-key' = '{key}', 'bucket' = '{table.buckets}', 'write-only' = '{str(not ageing).lower()}', "
            f"'rowkind.field' = '{self.KIND}', 'file.format' = 'parquet', 'file.compression' = 'zstd')"
        )

    def write(self, changes: DataFrame, table: Table) -> None:
        kind = sf.when(sf.col(DELETED), "-D").otherwise("+U").alias(self.KIND)
        changes.select(*table.shape.types(), kind).writeTo(self._name(table)).append()

    def read(self, session: SparkSession, table: Table) -> DataFrame:
        return session.table(self._name(table))

    def _name(self, table: Table) -> str:
        return f"paimon.bench.{table.shape.table}"


class HudiBulkInsert(Hudi):
    """Rows without a key added to a copy-on-write table, as Hudi's manual advises for logs."""

    def options(self, table: Table) -> dict[str, str]:
        keyed = ("recordkey", "precombine", "index", "upsert")
        kept = {name: text for name, text in super().options(table).items() if not any(k in name for k in keyed)}
        return kept | {
            "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.bulkinsert.shuffle.parallelism": "2",
            "hoodie.bulkinsert.sort.mode": "NONE",
        }


class PaimonAppend(Paimon):
    """An append table: no primary key, no bucket."""

    def create(self, session: SparkSession, table: Table, *, ageing: bool) -> None:
        partitioned = f" PARTITIONED BY ({table.partition})" if table.partition else ""
        session.sql("CREATE DATABASE IF NOT EXISTS paimon.bench")
        session.sql(
            f"CREATE TABLE {self._name(table)} ({table.ddl()}){partitioned} TBLPROPERTIES ("
            "'bucket' = '-1', 'write-only' = 'true', 'file.format' = 'parquet', 'file.compression' = 'zstd')"
        )

    def write(self, changes: DataFrame, table: Table) -> None:
        changes.select(*table.shape.types()).writeTo(self._name(table)).append()


PEERS: dict[str, Peer] = {
    "hudi": Hudi(metadata=True),
    "hudi-no-metadata": Hudi(metadata=False),
    "delta": Delta(),
    "delta-copy": Delta(deletion_vectors=False),
    "paimon": Paimon(),
}
#: Those that add rows without a key.
ADDING: dict[str, Peer] = {"hudi-bulk-insert": HudiBulkInsert(metadata=True), "paimon-append": PaimonAppend()}
