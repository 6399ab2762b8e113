"""Compaction of one file group, ours against Hudi Spark's ``run_compaction``. ``python -m bench.compaction``.

A table of one bucket: a base file of 1,000,000 rows and 12 columns, and over it 100,000 rows in 10 delta commits, nine
in ten of them updates, by default without a metadata table. Each round copies the table twice and lets each side
compact its copy once, in turns; both then show the same number of rows. On local disk, one Spark session of
``local[2]``; the session's first compaction warms it up and is left out. Prints medians and the ratio.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from bench.metadata import columns
from binlake.settings import Settings
from binlake.stream.spark.java import find_java
from binlake.stream.spark.session import spark_session
from embedded.jars import spark_packages
from hudilake.clock import monotonic_s
from hudilake.format.definition.bucket import file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.metadata.config import MetadataConfig
from hudilake.read.slice import read_table
from hudilake.services.compaction import CompactedFile, CompactionConfig, CompactionOperation, run
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

NAME, ORDER, LOGS = "bench", "_binlake_order", 10
CONFIG = CompactionConfig(after_commits=1, tombstone_retention_hours=0)
_HUDI = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}


@dataclass(frozen=True)
class Sizes:
    """The size of the table."""

    base_rows: int
    log_rows: int
    columns: int
    metadata: bool


def rows(ids: np.ndarray[tuple[int], np.dtype[np.int64]], order: int, wide: int) -> pa.Table:
    """Rows of distinct ids in key order, all with one ordering value."""
    random = np.random.default_rng(order)
    keys = pa.array(ids)
    made = columns(wide - 2, len(ids), random)
    table = pa.table({RECORD_KEY_FIELD: keys.cast(pa.string()), "id": keys, **made, ORDER: np.full(len(ids), order)})
    return table.sort_by(RECORD_KEY_FIELD)


def with_threads(
    task: Callable[[CompactionOperation], CompactedFile], operations: Sequence[CompactionOperation]
) -> list[CompactedFile]:
    """Run tasks in parallel on two cores."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(task, operations))


def build(path: Path, sizes: Sizes) -> None:
    """Create the table that both compact: a base file by a compaction of a first commit, then the delta commits."""
    schema = pa.schema([f for f in rows(np.arange(1), 0, sizes.columns).schema if f.name != RECORD_KEY_FIELD])
    storage = open_storage(path.as_uri(), {"fsync": "false"})
    kept = MetadataConfig() if sizes.metadata else None
    table = HudiTable.create(storage, TableConfig(NAME, ("id",), ORDER, 1), schema, kept)
    _commit(table, rows(np.arange(sizes.base_rows), 0, sizes.columns))
    run(table, CONFIG, with_threads)
    random = np.random.default_rng(1)
    for number in range(1, LOGS + 1):
        count = sizes.log_rows // LOGS
        updated = random.choice(sizes.base_rows, count - count // 10, replace=False)
        new = sizes.base_rows + np.arange(count // 10) + number * count
        _commit(table, rows(np.concatenate([updated, new]), number, sizes.columns))


def _commit(table: HudiTable, upserts: pa.Table) -> None:
    instant = table.begin()
    group = FileGroupWrite("", file_id(NAME, "", 0), upserts=upserts)
    table.commit(instant, [write_file_group(table.storage, table.write_context(instant), group)])


def ours(path: Path) -> None:
    """Schedule, execute and complete our compaction."""
    if not run(HudiTable.open(open_storage(path.as_uri())), CONFIG, with_threads):
        raise RuntimeError("nothing was compacted")


def hudis(session: SparkSession, path: Path) -> None:
    """Run Hudi's own procedure."""
    done = session.sql(f"CALL run_compaction(op => 'scheduleAndExecute', path => '{path}')").collect()
    if not done:
        raise RuntimeError("Hudi found nothing to compact")


def session_of(place: Path, sizes: Sizes, heap_mb: int) -> SparkSession:
    """A session like that of Hudi's writers, without binlake."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    jars = ",".join(map(str, spark_packages(hudi=True)))
    conf = {**_HUDI, "spark.jars": jars, "spark.sql.warehouse.dir": (place / "warehouse").as_uri()}
    settings = {
        "name": "bench",
        "lake": {"uri": place.as_uri()},
        "kafka": {"bootstrap_servers": "localhost:9092", "topics": ["none"]},
        "spark": {"master": "local[2]", "driver_memory_mb": heap_mb, "conf": conf},
    }
    session = spark_session(Settings.model_validate(settings))
    session.sparkContext.setLogLevel("ERROR")
    session.sql("SET hoodie.compact.inline.max.delta.commits=1")
    session.sql("SET hoodie.datasource.write.recordkey.field=id")
    session.sql(f"SET hoodie.metadata.enable={str(sizes.metadata).lower()}")
    for index in ("bloom.filter", "column.stats"):
        session.sql(f"SET hoodie.metadata.index.{index}.enable={str(sizes.metadata).lower()}")
    return session


def count(path: Path) -> int:
    """The number of rows in the table, all from its base file."""
    table = HudiTable.open(open_storage(path.as_uri()))
    (only,) = table.file_slices()
    if only.log_files:
        raise RuntimeError("log files are left")
    return sum(part.num_rows for part in read_table(table.storage, [RECORD_KEY_FIELD]))


def measure(place: Path, sizes: Sizes, rounds: int, heap_mb: int) -> dict[str, list[float]]:
    """Seconds of each compaction, by side."""
    build(place / "template", sizes)
    session = session_of(place, sizes, heap_mb)
    sides: dict[str, Callable[[Path], None]] = {"binlake": ours, "Hudi Spark": lambda path: hudis(session, path)}
    spent: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        counts = set()
        for name in sorted(sides, reverse=bool(number % 2)):
            path = place / "copy"
            shutil.copytree(place / "template", path)
            started = monotonic_s()
            sides[name](path)
            spent[name].append(monotonic_s() - started)
            counts.add(count(path))
            shutil.rmtree(path)
        if len(counts) != 1:
            raise RuntimeError(f"the two differ in rows: {counts}")
    session.stop()
    return {name: values[1:] for name, values in spent.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--log-rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--heap-mb", type=int, default=2048)
    parser.add_argument("--metadata", action="store_true", help="keep a metadata table")
    given = parser.parse_args()
    sizes = Sizes(given.rows, given.log_rows, given.columns, given.metadata)
    with tempfile.TemporaryDirectory(prefix="binlake-bench-") as place:
        spent = measure(Path(place), sizes, given.rounds, given.heap_mb)
    print("| | median s | min-max s |")
    print("| --- | --- | --- |")
    for name, values in spent.items():
        print(f"| {name} | {statistics.median(values):.2f} | {min(values):.2f}-{max(values):.2f} |")
    print(f"Hudi Spark / binlake: {statistics.median(spent['Hudi Spark']) / statistics.median(spent['binlake']):.1f}")


if __name__ == "__main__":
    main()
