"""A peer's stream: Spark's Kafka source, Debezium's JSON by ``from_json``, the newest change per key, its writer."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from bench.events import Shape
from bench.hudi_tagging import logged, tags
from bench.peers import ADDING, DELETED, ORDER, Peer, Table
from bench.spec import MASTER, SPARK_CONF, Recorder, Spec
from binlake.position.checkpoint import planned_batch
from binlake.stream.spark.java import java_environment
from hudilake.storage import open_storage

_THREADS = 8
_JSON: dict[str, st.DataType] = {
    "bigint": st.LongType(),
    "int": st.IntegerType(),
    "tinyint": st.IntegerType(),
    "double": st.DoubleType(),
    "decimal": st.BinaryType(),  # from_json decodes the base64
    "datetime": st.LongType(),
}


def session_for(peer: Peer, spec: Spec) -> SparkSession:
    """A session with the common properties and this peer's own."""
    os.environ.update(java_environment())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(f"bench-{spec.writer}").master(MASTER)
    conf = SPARK_CONF | {
        "spark.driver.memory": f"{spec.heap_mb}m",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.jars": ",".join(map(str, peer.jars())),
        "spark.sql.warehouse.dir": (spec.place / "warehouse").as_uri(),
        **peer.conf(spec.lake),
        **(logged(spec.place) if tags(spec) else {}),
    }
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def row_type(shape: Shape) -> st.StructType:
    """The type of the row image for ``from_json``."""
    kinds = {name: _JSON.get(mysql.split("(")[0], st.StringType()) for name, mysql in shape.types().items()}
    return st.StructType([st.StructField(name, kind) for name, kind in kinds.items()])


def envelope_type(shape: Shape) -> st.StructType:
    """The type of an event for ``from_json``: the row images and the operation."""
    row = row_type(shape)
    return st.StructType(
        [st.StructField("before", row), st.StructField("after", row), st.StructField("op", st.StringType())]
    )


def newest_changes(records: DataFrame, shape: Shape, earlier: int = 0) -> DataFrame:
    """One row per key: its columns in their own types, whether it is deleted, and Kafka's offset as the order.

    ``earlier``: the number of events of an earlier topic, after which these are ordered.
    """
    envelope = envelope_type(shape)
    parsed = records.select("offset", sf.from_json(sf.col("value").cast("string"), envelope).alias("e"))
    rows = parsed.select(
        sf.coalesce("e.after", "e.before").alias("r"), (sf.col("e.op") == "d").alias(DELETED), "offset"
    )
    latest = Window.partitionBy("r.id").orderBy(sf.col("offset").desc())
    rows = rows.withColumn("rank", sf.row_number().over(latest)).where("rank = 1")
    return rows.select(*typed_columns(shape), (sf.col("offset") + sf.lit(earlier)).alias(ORDER), DELETED)


def added_rows(records: DataFrame, shape: Shape) -> DataFrame:
    """The rows of events that are all inserts, in their own types."""
    envelope = st.StructType([st.StructField("after", row_type(shape))])
    parsed = records.select(sf.from_json(sf.col("value").cast("string"), envelope).alias("e"))
    return parsed.select(sf.col("e.after").alias("r")).select(*typed_columns(shape))


def typed_columns(shape: Shape) -> list[Column]:
    """The columns of a row image ``r`` in their own types."""
    return [_typed(sf.col(f"r.{name}"), mysql).alias(name) for name, mysql in shape.types().items()]


def _typed(column: Column, mysql: str) -> Column:
    """The value in its lake type. Only the newest rows are converted, after ``newest_changes`` has chosen them."""
    if mysql.startswith("decimal"):
        digits = sf.hex(column)
        sign = sf.when(sf.substring(digits, 1, 1) >= "8", "FFFFFFFFFFFFFFFF").otherwise("0000000000000000")
        whole = sf.substring(sf.concat(sign, digits), -16, 16)
        return (
            sf.conv(whole, 16, -10).cast("bigint").cast("decimal(18,0)") * sf.lit("0.01").cast("decimal(2,2)")
        ).cast("decimal(12,2)")
    if mysql.startswith("datetime"):
        return sf.timestamp_micros(column)
    return column.cast("timestamp") if mysql.startswith("timestamp") else column


class PeerRun:
    """One peer over the topics of a workload."""

    def __init__(self, peer: Peer, spec: Spec) -> None:
        self._peer, self._spec = peer, spec
        self._recorder = Recorder(spec)
        self._finished = threading.Event()
        self._error: BaseException | None = None
        self._checkpoint = open_storage(spec.checkpoint.as_uri())
        work = spec.workload
        kind = (work.index, work.table_type, work.file_rows, work.age_batch if work.loaded else 0)
        self._earlier = 0 if spec.ageing else work.loaded
        self._tables = {
            topic: Table(shape, spec.lake / shape.table, work.buckets, *kind) for topic, shape in spec.topics().items()
        }
        self._session = session_for(peer, spec)
        self._pool = ThreadPoolExecutor(_THREADS)
        jar = next(jar.stem for jar in peer.jars() if f"{spec.writer.split('-')[0]}-spark" in jar.name)
        self.version = f"{jar} on Spark {self._session.version}"

    def run(self) -> None:
        """Apply the topics' events."""
        for table in self._tables.values():
            if not self._spec.workload.age or self._spec.ageing:
                self._peer.create(self._session, table, ageing=self._spec.ageing)
        reader = (
            self._session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self._spec.bootstrap)
            .option("subscribe", ",".join(self._tables))
            .option("startingOffsets", self._start())
            .option("maxOffsetsPerTrigger", str(self._spec.batch))
        )
        writer = reader.load().writeStream.foreachBatch(self._on_batch)
        writer = writer.option("checkpointLocation", str(self._spec.checkpoint))
        live = bool(self._spec.until)
        query = (writer.trigger(processingTime="0 seconds") if live else writer.trigger(availableNow=True)).start()
        while not query.awaitTermination(1):
            if self._finished.is_set():
                query.stop()
        self._pool.shutdown()
        if self._error is not None:
            raise self._error

    def _start(self) -> str:
        """The starting offsets without a checkpoint: an old table that a library created has none."""
        file = self._spec.place / "starting_offsets"
        return file.read_text() if file.exists() else "earliest"

    def _on_batch(self, frame: DataFrame, number: int) -> None:
        if self._finished.is_set():
            return
        try:
            self._apply(frame)
        except BaseException as error:
            self._error = error
            raise
        planned = planned_batch(self._checkpoint, number)
        if planned is None:
            raise RuntimeError(f"no offsets of batch {number}")
        if self._recorder.note(number, planned.end, planned.trigger_ms):
            self._finished.set()

    def _apply(self, frame: DataFrame) -> None:
        if len(self._tables) == 1:
            ((_, table),) = self._tables.items()
            if self._spec.writer in ADDING:
                self._peer.write(added_rows(frame, table.shape), table)
            else:
                self._peer.write(newest_changes(frame, table.shape, self._earlier), table)
            return
        frame.persist()  # one read of Kafka for all tables, which are written in parallel
        try:
            write = partial(self._one_of, frame)
            list(self._pool.map(write, self._tables))
        finally:
            frame.unpersist()

    def _one_of(self, frame: DataFrame, topic: str) -> None:
        table = self._tables[topic]
        self._peer.write(newest_changes(frame.where(sf.col("topic") == topic), table.shape), table)

    def contents(self) -> dict[str, pa.Table]:
        """Table -> all of its rows, read by the peer's own reader."""
        found = {}
        for table in self._tables.values():
            out = self._spec.place / "read" / table.shape.table
            frame = self._peer.read(self._session, table).select(*table.shape.types())
            frame.write.mode("overwrite").parquet(out.as_uri())
            found[table.shape.table] = pq.read_table(out)
        return found

    def close(self) -> None:
        """End the session."""
        self._session.stop()
