"""The running stream: Structured Streaming triggers and plans the batches, ``BatchRunner`` carries them out."""

from __future__ import annotations

import dataclasses
import json
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.clock import monotonic_s
from pipeline.errors import BinlakeError, ConfigError, TransientError
from pipeline.hudi.services.compaction import CompactedFile, Operation
from pipeline.settings import Settings
from pipeline.source.positions import starting_positions, topics_of
from pipeline.source.ranges import Positions, format_positions, merged
from pipeline.storage import Storage, open_storage
from pipeline.stream.batch import BatchRunner
from pipeline.stream.checkpoint import last_finished, planned_batch
from pipeline.stream.engine import DirectEngine, Engine, SourceEngine
from pipeline.stream.lake import Lake, locking
from pipeline.stream.lease import StreamLease
from pipeline.stream.ledger import Ledger
from pipeline.stream.monitoring import Monitor
from pipeline.stream.monitoring_server import monitored
from pipeline.stream.progress import OnProgress, ProgressEvent
from pipeline.stream.recovery import recover
from pipeline.stream.schemas import SchemaRegistry
from pipeline.stream.session import spark_session
from pipeline.stream.spark_tasks import cause_of, map_in_tasks
from pipeline.stream.upkeep import Upkeep

_CATCH_UP_EVERY_S = 30.0
_LOOK_S = 1


class _StopAsked(Exception):
    """Raised inside a batch that must not begin any more."""


class Stream:
    """One stream from start to stop, on a session (``spark``) that is left running. ``monitor``: what measures it."""

    def __init__(
        self,
        settings: Settings,
        spark: SparkSession,
        on_progress: OnProgress,
        stop: threading.Event,
        monitor: Monitor | None = None,
    ) -> None:
        self._settings = settings
        self._monitor = monitor
        self._spark = spark
        self._on_progress = on_progress
        self._stop = stop
        self._busy = False
        self._error: BinlakeError | None = None
        self._caught_up_s = 0.0
        self._direct = DirectEngine(spark.sparkContext)
        self._query: StreamingQuery | None = None
        state = open_storage(settings.state_uri, settings.state_options())
        self._lease = StreamLease(state, settings.name)
        self._lease.take()
        try:
            self._open(settings, state)
        except BaseException:
            self._lease.give_back()
            raise

    def _open(self, settings: Settings, state: Storage) -> None:
        root = open_storage(settings.lake.uri, settings.lake.storage_options())
        lake = Lake(root, locking(settings.locking, f"stream {settings.name}", one_run=True))
        ledger = Ledger.load(state, settings.name) or recover(settings, root, lake)
        self._start = self._starting_positions(ledger)
        ledger.positions = merged(ledger.positions, self._start)
        self._open_known(lake, ledger)
        upkeep = Upkeep(partial(_compact_in_tasks, self._spark.sparkContext))
        self._runner = BatchRunner(settings, lake, state, ledger, SchemaRegistry(settings), upkeep)
        if self._monitor is not None:
            self._monitor.attach(lake, ledger)
        self._checkpoint_dir = self._checkpoint_place()
        self._checkpoint = open_storage(self._checkpoint_dir)
        ledger.check_no_gap(last_finished(self._checkpoint))

    def _starting_positions(self, ledger: Ledger) -> Positions:
        kafka = self._settings.kafka
        config = kafka.client_properties()
        topics = topics_of(config, kafka.topics, kafka.topic_pattern)
        return starting_positions(config, topics, ledger.positions, kafka.start)

    def _open_known(self, lake: Lake, ledger: Ledger) -> None:
        """Open the tables that this stream has written, so that each one's position is known before the first batch."""
        rules = [self._settings.table_rules(source) for source in ledger.tables]
        with ThreadPoolExecutor(8) as pool:
            for _ in pool.map(lake.get, rules):
                pass

    def _checkpoint_place(self) -> str:
        """Spark's checkpoint is disposable, so it lies beside the ledger only where Spark can write as it is."""
        uri = self._settings.state_uri
        if "://" not in uri or uri.startswith("file:"):
            return f"{uri}/checkpoint"
        return tempfile.mkdtemp(prefix=f"binlake-{self._settings.name}-")

    def run(self, *, once: bool) -> None:
        """Run until stopped, or until everything there was at the start is applied. Raises BinlakeError."""
        writer = self._source().writeStream.foreachBatch(self._on_batch)
        writer = writer.option("checkpointLocation", self._checkpoint_dir).queryName(self._settings.name)
        interval = f"{self._settings.batch.trigger_interval_ms} milliseconds"
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)
        try:
            self._query = writer.start()
            self._watch(self._query)
            if once and self._error is None and not self._stop.is_set():
                self._catch_up(every_s=0.0)
                self._complain_of_tables_behind()
        finally:
            if self._query is not None:
                self._query.stop()
            self._runner.close()
            self._lease.give_back()

    def _source(self) -> DataFrame:
        kafka = self._settings.kafka
        reader = (
            self._spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
            .option("startingOffsets", format_positions(self._start))
            .option("failOnDataLoss", "true")
            .option("maxOffsetsPerTrigger", str(self._settings.batch.max_events))
            .option("kafka.isolation.level", "read_committed")
        )
        for name, value in java_properties(kafka.client_properties()).items():
            reader = reader.option(f"kafka.{name}", value)
        if kafka.topic_pattern:
            return reader.option("subscribePattern", kafka.topic_pattern).load()
        return reader.option("subscribe", ",".join(kafka.topics)).load()

    def _watch(self, query: StreamingQuery) -> None:
        """Wait for the end of the query, or end it between two batches when asked to."""
        try:
            while not query.awaitTermination(_LOOK_S):
                if self._stop.is_set() and not self._busy:
                    query.stop()
        except Exception as error:
            if self._error is not None:
                raise self._error from error
            if not self._stop.is_set():
                raise TransientError(
                    f"Spark ended the query: {cause_of(error)}",
                    do_next="see Spark's log; start again",
                    stream=self._settings.name,
                ) from error

    def _on_batch(self, batch: DataFrame, batch_id: int) -> None:
        if self._stop.is_set():
            raise _StopAsked
        self._busy = True
        try:
            self._lease.check()
            self._run_batch(batch, batch_id)
        except BinlakeError as error:
            self._error = error
            raise
        finally:
            self._busy = False

    def _run_batch(self, batch: DataFrame, batch_id: int) -> None:
        planned = planned_batch(self._checkpoint, batch_id)
        if planned is None:
            raise ConfigError(
                "Spark's offset log is not where it should be", do_next="check state.uri", path=self._checkpoint_dir
            )
        engine: Engine = self._direct if self._settings.kafka.fetch == "direct" else SourceEngine(batch)
        event = self._runner.run(batch_id, planned.end, planned.trigger_ms, engine)
        self._tell(self._with_lag(event))
        self._catch_up(_CATCH_UP_EVERY_S)

    def _tell(self, event: ProgressEvent) -> None:
        if self._monitor is not None:
            self._monitor.update(event)
        self._on_progress(event)

    def _catch_up(self, every_s: float) -> None:
        """Give tables that are behind another try, one batch's worth after the other while they go."""
        ledger = self._runner.ledger
        if not ledger.behind or monotonic_s() - self._caught_up_s < every_s:
            return
        for source in list(ledger.behind):
            while source in ledger.behind and not self._stop.is_set():
                event = self._runner.catch_up(source, self._direct)
                if event is None:
                    break
                self._tell(event)
        self._caught_up_s = monotonic_s()

    def _complain_of_tables_behind(self) -> None:
        behind = self._runner.ledger.behind
        if behind:
            raise TransientError(
                f"{len(behind)} tables could not be written; the others are up to date",
                do_next="see their errors above; the next run takes them up where they stand",
                tables=", ".join(map(str, behind)),
            )

    def _with_lag(self, event: ProgressEvent) -> ProgressEvent:
        """The event with the ends of the log as Spark last saw them."""
        progress: Any = self._query.lastProgress if self._query is not None else None
        # Spark 4 gives an object whose offsets are no JSON, but it has the whole as JSON; 3.5 gives a dictionary
        told = json.loads(progress.json) if hasattr(progress, "json") else progress or {}
        sources = told.get("sources") or [{}]
        ends = sources[0].get("latestOffset") or {}
        partitions = tuple(
            dataclasses.replace(p, end=max(p.end, int(ends.get(p.topic, {}).get(str(p.partition), 0))))
            for p in event.partitions
        )
        return dataclasses.replace(event, partitions=partitions)


def _compact_in_tasks(
    context: SparkContext, function: Callable[[Operation], CompactedFile], operations: Sequence[Operation]
) -> list[CompactedFile]:
    """Compactions in a scheduler pool of their own, and never on every core: the batches keep one."""
    context.setLocalProperty("spark.scheduler.pool", "compaction")
    return map_in_tasks(context, function, operations, max(1, context.defaultParallelism - 1))


def java_properties(properties: dict[str, str]) -> dict[str, str]:
    """librdkafka's client properties by the names of Kafka's Java client, where they differ."""
    renamed = {"sasl.mechanisms": "sasl.mechanism"}
    result = {renamed.get(k, k): v for k, v in properties.items() if k != "bootstrap.servers"}
    user, password = result.pop("sasl.username", None), result.pop("sasl.password", None)
    if user is not None and password is not None:
        module = "scram.ScramLoginModule" if "SCRAM" in result.get("sasl.mechanism", "") else "plain.PlainLoginModule"
        quoted = [json.dumps(text) for text in (user, password)]
        result["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{module} required username={quoted[0]} password={quoted[1]};"
        )
    return result


def run_stream(
    settings: Settings,
    *,
    once: bool = False,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Run a stream in this process.

    Args:
        settings: of the stream.
        once: apply what is there and return, instead of going on.
        on_progress: called after every batch.
        stop: set it to end the stream after the batch in hand.

    Raises BinlakeError; everything committed stays committed, and the next run goes on from there.
    """
    with monitored(settings) as monitor:
        spark = spark_session(settings)
        try:
            tell = on_progress or (lambda event: None)
            Stream(settings, spark, tell, stop or threading.Event(), monitor).run(once=once)
        finally:
            spark.stop()
