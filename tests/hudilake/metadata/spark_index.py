"""Hudi's own lookups in a table's metadata table, through the JVM of the shared session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from hudilake.metadata.records.delta import FileKey

WRITE_OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "_binlake_order",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.clean.automatic": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.embed.timeline.server": "false",
}


#: min, max (bytes for decimals), null count and value count.
Lookup = tuple[Any, Any, int, int]


class SparkIndex:
    """``HoodieBackedTableMetadata`` over a table, as it is when this is made."""

    def __init__(self, session: SparkSession, path: Path) -> None:
        jvm: Any = session._jvm
        assert jvm is not None
        self._jvm, self._path = jvm, path
        hudi = jvm.org.apache.hudi
        context: Any = session._jsc
        conf = hudi.storage.hadoop.HadoopStorageConfiguration(context.hadoopConfiguration())
        client = hudi.common.table.HoodieTableMetaClient.builder().setBasePath(str(path)).setConf(conf).build()
        config = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(True).build()
        engine = hudi.client.common.HoodieSparkEngineContext(context)
        self._metadata = hudi.metadata.HoodieBackedTableMetadata(engine, client.getStorage(), config, str(path))

    def partition_paths(self) -> list[str]:
        """All partition paths."""
        return sorted(self._metadata.getAllPartitionPaths())

    def files(self, partition_path: str) -> dict[str, int]:
        """Sizes in bytes of a partition's files by name."""
        path = f"{self._path}/{partition_path}".rstrip("/")
        found = self._metadata.getAllFilesInPartition(self._jvm.org.apache.hudi.storage.StoragePath(path))
        return {info.getPath().getName(): info.getLength() for info in found}

    def column_stats(self, files: Iterable[FileKey], column: str) -> dict[FileKey, Lookup]:
        """The statistics of a column by file."""
        found = self._metadata.getColumnStats(self._pairs(files), column)
        return {(p.getLeft(), p.getRight()): _stats(found[p]) for p in found.keySet()}

    def partition_stats(self, column: str) -> dict[str, Lookup]:
        """The statistics of a column by partition path, found by the column's part of the key."""
        hudi = self._jvm.org.apache.hudi
        keys = self._jvm.java.util.ArrayList()
        keys.add(hudi.metadata.ColumnStatsIndexPrefixRawKey(column))
        eager = hudi.common.data.HoodieListData.eager(keys)
        found = self._metadata.getRecordsByKeyPrefixes(eager, "partition_stats", True).collectAsList()
        stats = [record.getData().getColumnStatMetadata().get() for record in found]
        return {item.getFileName(): _stats(item) for item in stats}

    def bloom_filters(self, files: Iterable[FileKey]) -> dict[FileKey, Any]:
        """The filters of those files that have one, asked for together."""
        found = self._metadata.getBloomFilters(self._pairs(files), "bloom_filters")
        return {(p.getLeft(), p.getRight()): found[p] for p in found.keySet()}

    def _pairs(self, files: Iterable[FileKey]) -> Any:  # noqa: ANN401 - a Java list
        pairs = self._jvm.java.util.ArrayList()
        for path, name in files:
            pairs.add(self._jvm.org.apache.hudi.common.util.collection.Pair.of(path, name))
        return pairs

    def members(self, file: FileKey, keys: Iterable[str]) -> list[bool]:
        """What a file's bloom filter says of each key; all True without a filter."""
        found = self._metadata.getBloomFilter(*file)
        return [not found.isPresent() or found.get().mightContain(key) for key in keys]


def _stats(stats: Any) -> Lookup:  # noqa: ANN401 - a Java object
    bounds = [None if w is None else _plain(w.getValue()) for w in (stats.getMinValue(), stats.getMaxValue())]
    return bounds[0], bounds[1], stats.getNullCount(), stats.getValueCount()


def _plain(value: Any) -> Any:  # noqa: ANN401 - what py4j makes of a Java value
    return bytes(value.array()) if hasattr(value, "array") else value


def frame(session: SparkSession, path: Path, *, skipping: bool, metadata: bool | None = None) -> DataFrame:
    """The table through Hudi Spark, with or without data skipping, and with the metadata table if skipping or so."""
    flags = {
        "hoodie.metadata.enable": skipping if metadata is None else metadata,
        "hoodie.enable.data.skipping": skipping,
    }
    options = {name: str(flag).lower() for name, flag in flags.items()}
    return session.read.format("hudi").options(**options).load(str(path))


def files_read(rows: DataFrame) -> int:
    """Run a frame; how many file slices its scan opened."""
    rows.collect()
    return files_opened(rows)


def files_opened(rows: DataFrame) -> int:
    """How many file slices the scan of a frame opened that ran once: a second run counts none."""
    counts: list[int] = []

    def visit(plan: Any) -> None:  # noqa: ANN401 - a Java object
        metrics = plan.metrics()
        if metrics.contains("numFiles"):
            counts.append(metrics.apply("numFiles").value())
        children = plan.children().iterator()
        while children.hasNext():
            visit(children.next())

    visit(rows._jdf.queryExecution().executedPlan())
    return int(np.sum(counts))


def write(rows: DataFrame, path: Path, part: str | None, options: Mapping[str, str]) -> None:
    """Hudi Spark's own upsert (or what the options say) to a table of ours."""
    keygen = "SimpleKeyGenerator" if part else "NonpartitionedKeyGenerator"
    own = {
        "hoodie.datasource.write.partitionpath.field": part or "",
        "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{keygen}",
    }
    rows.write.format("hudi").options(**{**WRITE_OPTIONS, **own, **options}).mode("append").save(str(path))
