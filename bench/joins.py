"""Two bucketed tables joined bucket by bucket, beside shuffled joins. ``python -m bench.joins``.

Orders (5,000,000 rows, 16 buckets, 8 columns) and payments (2,000,000 rows, 8 buckets, 8 columns), joined by their
record keys; base files only, and with a log file of a tenth of the rows over each. Sides: ``bucket_join``; Spark's own
join of the frames of ``read_dataframe``; Spark's join of what Hudi's reader reads. No side may broadcast a table. All
take turns in one Spark session of ``local[2]`` with the JVM's own compilers; every row of the result goes to Spark's
``noop`` sink. The first round warms up and is left out. Before, all sides must give the same count and sums. Prints
medians, and the ratios to ``bucket_join``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.compaction import CONFIG, with_threads
from bench.metadata import columns
from binlake.settings import Settings
from binlake.stream.spark.bucket_join import TableScan, bucket_join
from binlake.stream.spark.dataframe import read_dataframe
from binlake.stream.spark.java import find_java
from binlake.stream.spark.session import spark_session
from embedded.jars import spark_packages
from hudilake.clock import monotonic_s
from hudilake.format.definition.bucketing import split_by_bucket
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.services.compaction import run
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

ORDER, WIDE, HEAP_MB = "_binlake_order", 6, 3072


@dataclass(frozen=True)
class Side:
    """A table of the join: its name, rows, buckets, and the distance of its keys."""

    name: str
    rows: int
    buckets: int
    step: int

    def upserts(self, numbers: np.ndarray[tuple[int], np.dtype[np.int64]], order: int) -> pa.Table:
        """The rows of those numbers."""
        ids = pa.array(numbers * self.step)
        made = columns(WIDE, len(ids), np.random.default_rng([self.rows, order]))
        values = {f"{self.name}_{name}": column for name, column in made.items()}
        return pa.table({RECORD_KEY_FIELD: ids.cast(pa.string()), "id": ids, **values, ORDER: np.full(len(ids), order)})


def build(place: Path, side: Side, logs: bool) -> None:
    """Base files by a compaction of a first commit; with ``logs`` a commit of a tenth of the rows over them."""
    schema = pa.schema([f for f in side.upserts(np.arange(1), 0).schema if f.name != RECORD_KEY_FIELD])
    config = TableConfig(side.name, ("id",), ORDER, side.buckets)
    table = HudiTable.create(open_storage((place / side.name).as_uri(), {"fsync": "false"}), config, schema)
    _commit(table, side.upserts(np.arange(side.rows), 0))
    run(table, CONFIG, with_threads)
    if logs:
        _commit(table, side.upserts(np.arange(0, side.rows, 10), 1))


def _commit(table: HudiTable, upserts: pa.Table) -> None:
    keys, config = upserts.column(RECORD_KEY_FIELD), table.config
    found = split_by_bucket(config.bucketing, keys, ("id",), pa.repeat(pa.scalar(""), len(keys)))
    instant = table.begin()
    context, results = table.write_context(instant), []
    for path, bucket, chosen in found:
        rows = upserts.take(pa.array(found.order[chosen])).sort_by(RECORD_KEY_FIELD)
        group = FileGroupWrite(path, config.bucketing.file_id(config.name, path, bucket), upserts=rows)
        results.append(write_file_group(table.storage, context, group))
    table.commit(instant, results)


def session_of(place: Path) -> SparkSession:
    """A session with Hudi's bundle, and with the compilers that joins in the JVM need."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    conf = {
        "spark.jars": ",".join(map(str, spark_packages(hudi=True))),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.warehouse.dir": (place / "warehouse").as_uri(),
    }
    settings = {
        "name": "bench",
        "lake": {"uri": place.as_uri()},
        "kafka": {"bootstrap_servers": "localhost:9092", "topics": ["none"]},
        "spark": {"master": "local[2]", "driver_memory_mb": HEAP_MB, "conf": conf},
    }
    session = spark_session(Settings.model_validate(settings))
    session.sparkContext.setLogLevel("ERROR")
    return session


def bucketed(session: SparkSession, left: str, right: str) -> DataFrame:
    """Our join."""
    return bucket_join(session, TableScan(left), TableScan(right), ["id"])


def of_frames(session: SparkSession, left: str, right: str) -> DataFrame:
    """Spark's join of our frames, without meta fields."""
    frames = (read_dataframe(session, path, columns=_own(path)) for path in (left, right))
    return _joined(*frames)


def of_hudi(session: SparkSession, left: str, right: str) -> DataFrame:
    """Spark's join of Hudi's frames, without meta fields."""
    frames = (session.read.format("hudi").load(path).select(*_own(path)) for path in (left, right))
    return _joined(*frames)


def _own(path: str) -> list[str]:
    return list(HudiTable.open(open_storage(path)).schema.names)


def _joined(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.join(right.withColumnRenamed(ORDER, f"{ORDER}_right"), "id")


SIDES: Mapping[str, Callable[[SparkSession, str, str], DataFrame]] = {
    "bucket_join": bucketed,
    "Spark, our frames": of_frames,
    "Spark, Hudi's reader": of_hudi,
}


def measure(place: Path, scale: float, rounds: int, logs: bool) -> dict[str, list[float]]:
    """Seconds of each join, by side."""
    orders, payments = Side("orders", round(5_000_000 * scale), 16, 1), Side("payments", round(2_000_000 * scale), 8, 2)
    for side in (orders, payments):
        build(place, side, logs)
    paths = (place / orders.name).as_uri(), (place / payments.name).as_uri()
    session = session_of(place)
    try:
        _require_equal(session, paths)
        spent: dict[str, list[float]] = {name: [] for name in SIDES}
        for number in range(rounds + 1):
            for name in sorted(SIDES, reverse=bool(number % 2)):
                started = monotonic_s()
                SIDES[name](session, *paths).write.format("noop").mode("overwrite").save()
                spent[name].append(monotonic_s() - started)
        return {name: values[1:] for name, values in spent.items()}
    finally:
        session.stop()


def _require_equal(session: SparkSession, paths: tuple[str, str]) -> None:
    values = ("count(*)", "sum(id)", "sum(orders_c0 % 1000)", "sum(payments_c0 % 1000)", "min(payments_c1)")
    answers = {name: SIDES[name](session, *paths).selectExpr(*values).collect()[0] for name in SIDES}
    if len(set(answers.values())) != 1:
        raise RuntimeError(f"the sides differ: {answers}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--logs", action="store_true", help="a log file of a tenth of the rows over each base file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-joins-") as place:
        spent = measure(Path(place), given.scale, given.rounds, given.logs)
    ours = statistics.median(spent["bucket_join"])
    for name, values in spent.items():
        median = statistics.median(values)
        print(f"{name}: {median:.2f} s ({', '.join(f'{v:.2f}' for v in values)}), {median / ours:.2f} times")


if __name__ == "__main__":
    main()
