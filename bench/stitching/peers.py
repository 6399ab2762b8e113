"""The peers' ways of updating a part of a row, on Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from bench.peers import Hudi, Paimon
from bench.peers import Peer as PeerFormat
from bench.spec import MASTER, SPARK_CONF
from bench.stitching.streams import KEY, STREAMS, Stream
from binlake.stream.spark.java import java_environment

BUCKETS = 4
_SQL = {"int64": "bigint", "int32": "int", "double": "double", "string": "string"}


class Writer(Protocol):
    """One way of stitching the two streams."""

    def create(self) -> None:
        """Create the empty table."""
        ...

    def write(self, number: int) -> None:
        """Apply the events of both streams of a batch; they are visible afterwards."""
        ...

    def compact(self) -> None:
        """Compact every file group."""
        ...

    def rows(self) -> pa.Table:
        """The rows as the format's own reader shows them."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


def start_session(peer: PeerFormat, place: Path, heap_mb: int, more: Mapping[str, str] | None = None) -> SparkSession:
    """A session with the bench's common properties and the peer's own."""
    os.environ.update(java_environment())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("bench-stitching").master(MASTER)
    conf = SPARK_CONF | {
        "spark.driver.memory": f"{heap_mb}m",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.jars": ",".join(map(str, peer.jars())),
        "spark.sql.warehouse.dir": (place / "warehouse").as_uri(),
        **peer.conf(place / "lake"),
        **(more or {}),
    }
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def sql_type(kind: pa.DataType) -> str:
    """The type in Spark SQL."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return "timestamp" if pa.types.is_timestamp(kind) else _SQL[str(kind)]


def ddl() -> str:
    """The columns of the stitched table in Spark SQL, with an order column for each stream."""
    columns = [f"{KEY} bigint not null"]
    for stream in STREAMS:
        columns += [f"{stream.order} bigint", *(f"{f.name} {sql_type(f.type)}" for f in stream.schema)]
    return ", ".join(columns)


def newest(frame: DataFrame, stream: Stream) -> DataFrame:
    """One event for each key: that of the greatest order."""
    latest = Window.partitionBy(KEY).orderBy(sf.col(stream.order).desc())
    return frame.withColumn("rank", sf.row_number().over(latest)).where("rank = 1").drop("rank")


class _OnSpark:
    """What the peers share."""

    def __init__(self, peer: PeerFormat, place: Path, inputs: Path, heap_mb: int) -> None:
        self.place, self.inputs = place, inputs
        self.session = start_session(peer, place, heap_mb)

    def events(self, stream: Stream, number: int) -> DataFrame:
        """The events of a stream in a batch."""
        return self.session.read.parquet(str(stream.file(self.inputs, number)))

    def union(self, number: int) -> DataFrame:
        """The events of both streams, with nulls in the columns of the other."""
        frames = [self.events(stream, number) for stream in STREAMS]
        return frames[0].unionByName(frames[1], allowMissingColumns=True)

    def close(self) -> None:
        """Stop the session."""
        self.session.stop()


_ORDERS = tuple(stream.order for stream in STREAMS)
_COLUMNS = (KEY, *(name for stream in STREAMS for name in (stream.order, *stream.schema.names)))
_HUDI = {
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.hash.field": KEY,
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.spark.sql.merge.into.partial.updates": "true",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.combine.before.upsert": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.compact.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.datasource.write.recordkey.field": KEY,  # run_compaction fails without it
}


class _OnHudi(_OnSpark):
    """A merge-on-read table in which the later commit wins: the orders are compared before it is written to."""

    def __init__(self, place: Path, inputs: Path, heap_mb: int) -> None:
        super().__init__(Hudi(metadata=True), place, inputs, heap_mb)
        self.path = (place / "lake" / "stitched").as_uri()

    def create(self) -> None:
        """See ``Writer``."""
        for name, value in _HUDI.items():
            self.session.sql(f"SET {name}={value}")
        given = ", ".join(
            f"'{name}' = '{value}'" for name, value in {"type": "mor", "primaryKey": KEY, **_HUDI}.items()
        )
        self.session.sql(f"CREATE TABLE stitched ({ddl()}) USING hudi TBLPROPERTIES ({given}) LOCATION '{self.path}'")

    def whole(self, number: int) -> DataFrame:
        """A batch as one row a key, with nulls in the columns of a stream that has no event of it."""
        orders, tracking = (newest(self.events(stream, number), stream) for stream in STREAMS)
        return orders.join(tracking, KEY, "full_outer")

    def known(self, columns: Sequence[str]) -> DataFrame:
        """The rows of the table."""
        return self.session.read.format("hudi").load(self.path).select(*columns)

    def upsert(self, rows: DataFrame) -> None:
        """Write whole rows."""
        options = _HUDI | {
            "hoodie.table.name": "stitched",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.partitionpath.field": "",
        }
        rows.select(*_COLUMNS).write.format("hudi").options(**options).mode("append").save(self.path)

    def compact(self) -> None:
        """See ``Writer``."""
        path = self.place / "lake" / "stitched"
        if not self.session.sql(f"CALL run_compaction(op => 'scheduleAndExecute', path => '{path}')").collect():
            raise RuntimeError("Hudi found nothing to compact")

    def rows(self) -> pa.Table:
        """See ``Writer``."""
        return read_back(self.known(_COLUMNS), self.place)


class HudiMerge(_OnHudi):
    """Partial updates by ``MERGE INTO``, a statement for each stream, after an upsert of whole rows for new keys.

    A condition on the target's columns fails inside of Hudi's writer, which drops the rows and goes on; so late events
    are left out by a join before. A key that is inserted by a partial update is read as garbage; so it is not.
    """

    def write(self, number: int) -> None:
        """See ``Writer``."""
        known = self.known([KEY, *_ORDERS]).persist()
        if known.count():
            for stream in STREAMS:
                self._merge(newest(self.events(stream, number), stream), stream, known)
        new = self.whole(number).join(known, KEY, "left_anti").persist()
        if new.count():
            self.upsert(new)
        for frame in (known, new):
            frame.unpersist()

    def _merge(self, events: DataFrame, stream: Stream, known: DataFrame) -> None:
        there = known.select(KEY, sf.col(stream.order).alias("there"))
        newer = events.join(there, KEY).where(sf.col("there").isNull() | (sf.col(stream.order) >= sf.col("there")))
        newer.drop("there").createOrReplaceTempView("events")
        names = [stream.order, *stream.schema.names]
        self.session.sql(
            f"MERGE INTO stitched t USING events s ON t.{KEY} = s.{KEY} "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{n} = s.{n}' for n in names)}"
        )


class HudiJoin(_OnHudi):
    """Whole rows: each batch is joined with the table, the newer side of each stream's columns wins, one upsert."""

    def write(self, number: int) -> None:
        """See ``Writer``."""
        known = self.known(_COLUMNS)
        known = known.select(KEY, *(sf.col(name).alias(f"t_{name}") for name in _COLUMNS if name != KEY))
        joined = self.whole(number).join(known, KEY, "left")
        columns = [sf.col(KEY)]
        for stream in STREAMS:
            mine, theirs = sf.col(stream.order), sf.col(f"t_{stream.order}")
            newer = mine.isNotNull() & (theirs.isNull() | (mine >= theirs))
            names = (stream.order, *stream.schema.names)
            columns += [sf.when(newer, sf.col(n)).otherwise(sf.col(f"t_{n}")).alias(n) for n in names]
        self.upsert(joined.select(*columns))


class PaimonPartialUpdate(_OnSpark):
    """``merge-engine = partial-update`` with a sequence group for each stream: one append a batch."""

    _NAME = "paimon.bench.stitched"

    def __init__(self, place: Path, inputs: Path, heap_mb: int) -> None:
        super().__init__(Paimon(), place, inputs, heap_mb)

    def create(self) -> None:
        """See ``Writer``."""
        groups = ", ".join(f"'fields.{s.order}.sequence-group' = '{','.join(s.schema.names)}'" for s in STREAMS)
        self.session.sql("CREATE DATABASE IF NOT EXISTS paimon.bench")
        self.session.sql(
            f"CREATE TABLE {self._NAME} ({ddl()}) TBLPROPERTIES ('primary-key' = '{KEY}', 'bucket' = '{BUCKETS}', "
            f"'merge-engine' = 'partial-update', {groups}, 'write-only' = 'true', 'file.format' = 'parquet', "
            f"'file.compression' = 'zstd')"
        )

    def write(self, number: int) -> None:
        """See ``Writer``."""
        self.union(number).select(*_COLUMNS).writeTo(self._NAME).append()

    def compact(self) -> None:
        """See ``Writer``."""
        self.session.sql("CALL paimon.sys.compact(table => 'bench.stitched')").collect()

    def rows(self) -> pa.Table:
        """See ``Writer``."""
        return read_back(self.session.table(self._NAME), self.place)


def read_back(rows: DataFrame, place: Path) -> pa.Table:
    """The rows of a table, by way of Parquet files."""
    target = place / "read"
    rows.select(*_COLUMNS).coalesce(1).write.mode("overwrite").parquet(target.as_uri())
    return pq.read_table(target)


WRITERS: dict[str, Callable[[Path, Path, int], Writer]] = {
    "hudi-merge-into": HudiMerge,
    "hudi-join-upsert": HudiJoin,
    "paimon-partial-update": PaimonPartialUpdate,
}
