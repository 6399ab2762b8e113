"""Hudi's HiveSync as users run it: one process that registers the partitions of a Hudi table in a Hive Metastore."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow as pa

from binlake.stream.spark.jars import pyspark_jars
from binlake.stream.spark.java import find_java
from embedded.jars import spark_packages
from embedded.process import last_words
from hudilake.clock import monotonic_s
from hudilake.format.definition.bucket import file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.metadata.config import MetadataConfig
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

_TOOL = "org.apache.hudi.hive.HiveSyncTool"
_OPENED = ("net", "lang", "lang.reflect", "util", "util.concurrent", "io", "nio")
_SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.string()), pa.field("ts", pa.int64())])


def hudi_table(path: Path, partitions: int) -> None:
    """A merge-on-read table with one row in each partition, in one commit."""
    config = TableConfig(path.name, ("id",), "ts", 1, partition_fields=("day",))
    table = HudiTable.create(open_storage(path.as_uri(), {"fsync": "false"}), config, _SCHEMA, MetadataConfig())
    instant = table.begin()
    context = table.write_context(instant)
    results = []
    for number in range(partitions):
        day = f"d{number:06d}"
        row = pa.table({"_hoodie_record_key": [str(number)], "id": [number], "day": [day], "ts": [1]})
        write = FileGroupWrite(f"day={day}", file_id(config.name, f"day={day}", 0), upserts=row)
        results.append(write_file_group(table.storage, context, write))
    table.commit(instant, results)


def sync(path: Path, uri: str, database: str) -> float:
    """Run the tool for a table; seconds from its start to its end, the JVM's included.

    Raises:
        RuntimeError: the tool failed; its last words are in the message.
    """
    opened = [word for name in _OPENED for word in ("--add-opens", f"java.base/java.{name}=ALL-UNNAMED")]
    classes = ":".join([*map(str, spark_packages(hudi=True)), f"{pyspark_jars()}/*"])
    words = ["--database", database, "--table", path.name, "--base-path", path.as_uri(), "--sync-mode", "hms"]
    words += ["--metastore-uris", uri, "--partitioned-by", "day", "--base-file-format", "PARQUET"]
    words += ["--partition-value-extractor", "org.apache.hudi.hive.MultiPartKeysValueExtractor"]
    words += ["--user", "x", "--pass", "x", "--jdbc-url", "x"]
    begin = monotonic_s()
    command = [str(find_java().command), "-Xmx2g", *opened, "-cp", classes, _TOOL, *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"HiveSync failed: {last_words(done.stdout)}")
    return monotonic_s() - begin
