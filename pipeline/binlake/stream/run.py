"""The running stream: Structured Streaming triggers and plans the batches, ``BatchRunner`` carries them out."""

from __future__ import annotations

import dataclasses
import logging
import tempfile
import threading
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from binlake.position.checkpoint import last_finished, last_planned, planned_batch
from binlake.position.in_hand import WorkNotes
from binlake.position.last_words import LastWords, leaving_last_words
from binlake.position.lease import StreamLease
from binlake.position.ledger import Ledger
from binlake.position.topics import Topics
from binlake.settings import Settings
from binlake.source.client import secrets_of
from binlake.source.offsets import NO_OFFSETS, Offsets
from binlake.source.positions import Administration, end_offsets, offset_at
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.ddl_topics import with_ddl_topics
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.engine import DirectEngine, Engine, SourceEngine
from binlake.stream.monitoring.monitor import Monitor
from binlake.stream.monitoring.progress import OnProgress, ProgressEvent
from binlake.stream.monitoring.steps import BatchSteps, StepTeller, say_step
from binlake.stream.recovery import open_known, recover
from binlake.stream.spark.planned_stream import planned_stream
from binlake.stream.spark.tasks import cause_of, jvm_has_ended, service_tasks
from binlake.stream.tables.between_batches import BetweenBatches
from binlake.stream.tables.resync import SignalledConnector
from binlake.stream.transactions import Transactions, begin_transactions
from binlake.tables.lake import Lake, locking
from binlake.tables.services.table_services import TableServices
from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, LakeError, TransientError
from hudilake.storage import Storage, open_storage
from hudilake.storage.redaction import redact
from lakemetastore.client.registration import NO_REGISTRAR, Registrar

_log = logging.getLogger(__name__)

_SETTLE_EVERY_S = 5.0
_LOOK_S = 1
_ASK_S = 10.0
_END_S = 2.0


class _StopRequestedError(Exception):
    """Raised inside a batch that must not begin because the stream is to stop."""


class Stream:
    """One stream from start to stop, on a session (``spark``) that stays running. ``monitor``: measures the stream.
    ``registrar``: takes in the instants that complete."""

    def __init__(
        self,
        settings: Settings,
        spark: SparkSession,
        on_progress: OnProgress,
        stop: threading.Event,
        monitor: Monitor | None = None,
        *,
        skip_missing: bool = False,
        registrar: Registrar = NO_REGISTRAR,
    ) -> None:
        self._settings = settings
        self._registrar = registrar
        self._skip_missing = skip_missing
        self._monitor = monitor
        self._spark = spark
        self._on_progress = on_progress
        self._stop = stop
        self._busy = False
        self._started = False
        self._turn = threading.Lock()
        self._settled_s = self._looked_s = 0.0
        self._error: LakeError | None = None
        self._direct = DirectEngine(spark.sparkContext)
        self._query: StreamingQuery | None = None
        self._state = state = open_storage(settings.state_uri, settings.state_options())
        self._lease = StreamLease(state, settings.name)
        self._lease.take()
        try:
            self._open(settings, state)
        except BaseException as error:
            LastWords.of(error).leave(state)
            self._lease.give_back()
            raise

    def _open(self, settings: Settings, state: Storage) -> None:
        root = open_storage(settings.lake.uri, settings.lake.storage_options())
        lake = Lake(root, locking(settings.locking, f"stream {settings.name}", one_run=True), self._registrar)
        saved = Ledger.load(state, settings.name)
        ledger = saved or recover(settings, root, lake)
        named, settings = settings, with_ddl_topics(settings, new=not ledger.positions)
        self._settings = settings
        self._topics = Topics(settings.kafka, ledger)
        _log.info("asking Kafka at %s for the topics", settings.kafka.bootstrap_servers)
        start = self._topics.start(whole=saved is not None, skip_missing=self._skip_missing)
        self._start = start.positions
        if settings.batch.transaction_consistent:
            self._start = begin_transactions(settings.kafka, ledger, self._start)
        ledger.begin_at(self._start)
        unopened = open_known(self._settings, lake, ledger)
        services = TableServices(service_tasks(self._spark.sparkContext))
        transactions = self._transactions(ledger)
        connector = SignalledConnector.of(settings)
        registry = SchemaRegistry(settings)
        kafka = settings.kafka.client_properties()
        self._ends = ends = partial(end_offsets, kafka, timeout_s=_ASK_S, admin=Administration(kafka))
        self._log_ends = NO_OFFSETS
        self._counts = tempfile.TemporaryDirectory(prefix="binlake-counts-", ignore_cleanup_errors=True)
        self._steps = BatchSteps(self._counts.name)
        self._runner = BatchRunner(
            settings, lake, state, ledger, registry, services, transactions, connector, ends, self._steps
        )
        self._between = BetweenBatches(self._runner, self._direct, self._tell, self._stop)
        for source, error in unopened.items():
            self._runner.tables.stop(source, error)
        if unopened:
            ledger.save(state)
        self._runner.tend()
        if settings is not named:
            self._runner.settle()  # the lake records which topics the stream reads, before it has a table
        if self._monitor is not None:
            self._monitor.attach(lake, ledger)
        self._checkpoint = open_storage(self._checkpoint_place())
        if start.missing:
            ledger.save(state)
        finished = last_finished(self._checkpoint)
        if start.missing or (saved is None and not finished):
            self._checkpoint.delete_tree("")  # it may have planned offsets that no longer exist
        else:
            ledger.check_no_gap(finished)

    def _transactions(self, ledger: Ledger) -> Transactions | None:
        if not self._settings.batch.transaction_consistent:
            return None
        config = self._settings.kafka.client_properties()
        return Transactions(self._settings, ledger, partial(self._direct.survey, config), partial(offset_at, config))

    def _checkpoint_place(self) -> str:
        """The directory of Spark's checkpoint. It is disposable, so it lies beside the ledger only if Spark can write
        there without further configuration. Spark gets its URI: a cluster takes a bare path for one in HDFS."""
        uri = self._settings.state_uri
        if "://" not in uri or uri.startswith("file:"):
            return f"{uri}/checkpoint"
        return tempfile.mkdtemp(prefix=f"binlake-{self._settings.name}-")

    def run(self, *, once: bool) -> None:
        """Run until stopped; with ``once``, until all records that existed at the start are applied.

        Raises LakeError.
        """
        with leaving_last_words(self._state):
            self._run(once=once)

    def _run(self, *, once: bool) -> None:
        known = last_planned(self._checkpoint)
        planned = planned_stream(self._spark, self._settings, self._start, known, once=once)
        writer = planned.frame.writeStream.foreachBatch(self._on_batch)
        writer = writer.option("checkpointLocation", self._checkpoint.uri).queryName(self._settings.name)
        writer = writer.trigger(**planned.trigger)
        try:
            self._query = writer.start()
            _log.info("waiting for records of %d topics", len(self._start))
            resyncs = WorkNotes(self._state, "resync", self._runner.resync_in_hand)
            with StepTeller(self._steps, say_step), WorkNotes(self._state, "batch", self._steps.work), resyncs:
                self._watch(self._query, planned.until)
            if once and self._error is None and not self._stop.is_set():
                self._settle(every_s=0.0)
                self._look_again(every_s=0.0)
                if self._runner.has_waiting and not self._stop.wait(_SETTLE_EVERY_S):
                    self._look_again(every_s=0.0)
                self._between.finish()
        finally:
            if self._query is not None and not jvm_has_ended(self._spark.sparkContext):
                self._query.stop()
            self._runner.close()
            self._counts.cleanup()
            self._lease.give_back()

    def _watch(self, query: StreamingQuery, until: Offsets | None) -> None:
        """Wait for the end of the query, or end it between two batches when a stop is requested or the batch that ends
        at ``until`` is finished."""
        try:
            while not query.awaitTermination(_LOOK_S):
                if not self._busy and (self._stop.is_set() or self._is_through(until)):
                    query.stop()
                self._look_again(_SETTLE_EVERY_S)
                for step in (partial(self._settle, _SETTLE_EVERY_S), self._tend_tables):
                    try:
                        step()
                    except LakeError as error:  # the next batch raises it again
                        fields = {"event": "not_settled", "error": error.what}
                        _log.debug("what waits between two batches was not done: %s", error, extra=fields)
        except Exception as error:
            if jvm_has_ended(self._spark.sparkContext, within_s=_END_S):
                _log.debug("Spark's JVM has ended", exc_info=True)
                raise TransientError(
                    "Spark's JVM has ended while the stream ran: it was killed, ran out of memory or crashed",
                    do_next="start again; if it comes again, see the kernel's log and raise spark.driver_memory_mb",
                    stream=self._settings.name,
                ) from None
            if self._error is not None:
                raise self._error from error
            if not self._stop.is_set():
                self._topics.check_all_there()
                words = redact(cause_of(error), secrets_of(self._settings.kafka.client_properties()))
                raise TransientError(
                    f"Spark ended the query: {words}",
                    do_next="see Spark's log; start again, and with binlake --debug if it comes again",
                    stream=self._settings.name,
                ) from None

    def _is_through(self, until: Offsets | None) -> bool:
        return until is not None and not last_finished(self._checkpoint).short_of(until)

    def _on_batch(self, batch: DataFrame, batch_id: int) -> None:
        if self._stop.is_set():
            raise _StopRequestedError
        self._busy = True
        try:
            self._lease.check()
            self._topics.check()
            with self._turn:
                self._run_batch(batch, batch_id)
        except LakeError as error:
            self._error = error
            raise
        finally:
            self._busy = False

    def _run_batch(self, batch: DataFrame, batch_id: int) -> None:
        planned = planned_batch(self._checkpoint, batch_id)
        if planned is None:
            raise ConfigError("Spark's offset log is missing", do_next="check state.uri", path=self._checkpoint.uri)
        engine: Engine = self._direct if self._settings.kafka.fetch == "direct" else SourceEngine(batch)
        self._topics.planned(planned.end)
        if not self._started:
            self._started = True
            _log.info("first batch planned; its tasks start")
        event = self._runner.run(batch_id, planned.end, planned.trigger_ms, engine)
        self._tell(dataclasses.replace(self._with_lag(event), notices=(*event.notices, *self._topics.take_notices())))
        self._between.go_on()

    def _tell(self, event: ProgressEvent) -> None:
        if self._monitor is not None:
            self._monitor.update(event)
        self._on_progress(event)

    def _settle(self, every_s: float) -> None:
        """Carry out DDL while no batch runs; a batch carries it out itself."""
        if monotonic_s() - self._settled_s < every_s or not self._turn.acquire(blocking=False):
            return
        try:
            self._settled_s = monotonic_s()
            self._lease.check()
            event = self._runner.settle()
        finally:
            self._turn.release()
        if event is not None:
            self._on_progress(event)

    def _look_again(self, every_s: float) -> None:
        """Apply the last transactions of a source that has fallen silent; a batch takes those of any other."""
        if monotonic_s() - self._looked_s < every_s or not self._turn.acquire(blocking=False):
            return
        try:
            self._looked_s = monotonic_s()
            self._lease.check()
            event = self._runner.look_again(self._direct)
        except LakeError as error:  # no batch comes that would raise it
            self._error = error
            raise
        finally:
            self._turn.release()
        if event is not None:
            self._tell(self._with_lag(event))

    def _tend_tables(self) -> None:
        """Do what is due for single tables while no batch runs; a batch does it itself."""
        if not self._turn.acquire(blocking=False):
            return
        try:
            self._lease.check()
            self._between.go_on()
        finally:
            self._turn.release()

    def _with_lag(self, event: ProgressEvent) -> ProgressEvent:
        """The event with the end offsets of the partitions in Kafka; the last known ones, if it does not answer."""
        places = Offsets.of_places((p.topic, p.partition, p.end) for p in event.partitions)
        self._log_ends = self._log_ends.furthest(places)
        try:
            self._log_ends = self._log_ends.furthest(self._ends(places))
        except TransientError as error:
            _log.info("the ends of the topics are not known: %s", error, extra={"event": "ends_unknown"})
        ends = self._log_ends
        return dataclasses.replace(
            event, partitions=tuple(dataclasses.replace(p, end=ends.at(p.topic, p.partition)) for p in event.partitions)
        )
