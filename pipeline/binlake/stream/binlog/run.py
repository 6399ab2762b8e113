"""The running stream of a server's binlog: portions of whole transactions become batches, one after the other."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from binlake.decode.changes import SourceTable
from binlake.position.in_hand import WorkNotes
from binlake.position.last_words import LastWords, leaving_last_words
from binlake.position.lease import StreamLease
from binlake.position.ledger import Ledger
from binlake.position.recorded import NO_TRANSACTIONS, RecordedTransactions
from binlake.settings import Settings
from binlake.settings.database import MysqlSettings
from binlake.source.binlog.feed import BinlogFeed, Portion
from binlake.source.binlog.places import PARTITION, offset_at
from binlake.source.binlog.reading import BinlogSource
from binlake.source.database.snapshot import SourcePosition
from binlake.source.offsets import Offsets, Ranges
from binlake.source.source_log import ends_by_bytes
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.binlog.beginning import begin, note_file
from binlake.stream.binlog.engine import BinlogEngine
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.monitor import Monitor
from binlake.stream.monitoring.progress import OnProgress, PartitionProgress, ProgressEvent
from binlake.stream.monitoring.steps import BatchSteps, StepTeller, say_step
from binlake.stream.recovery import loaded_position, note_loaded, open_known, recover
from binlake.stream.tables.between_batches import BetweenBatches
from binlake.tables.lake import Lake, locking
from binlake.tables.services.table_services import TableServices
from hudilake.clock import monotonic_s, now_ms
from hudilake.storage import Storage, open_storage
from lakemetastore.client.registration import NO_REGISTRAR, Registrar

_log = logging.getLogger(__name__)

_SETTLE_EVERY_S = 5.0
_LOOK_S = 0.5
#: How often the server is asked for the end of its binlog.
_ASK_EVERY_S = 5.0
_SERVICES_THREADS = 2
T = TypeVar("T")
R = TypeVar("R")


class BinlogStream:
    """One stream from start to stop. Arguments as ``stream.run.Stream``, which reads Kafka."""

    def __init__(
        self,
        settings: Settings,
        mysql: MysqlSettings,
        on_progress: OnProgress,
        stop: threading.Event,
        monitor: Monitor | None = None,
        *,
        registrar: Registrar = NO_REGISTRAR,
    ) -> None:
        self._settings, self._mysql, self._registrar = settings, mysql, registrar
        self._on_progress, self._stop, self._monitor = on_progress, stop, monitor
        self._settled_s = 0.0
        self._workers = ThreadPoolExecutor(_SERVICES_THREADS, thread_name_prefix="binlake-service")
        state = open_storage(settings.state_uri, settings.state_options())
        self._lease = StreamLease(state, settings.name)
        self._state, self._steps = state, BatchSteps()
        self._lease.take()
        try:
            self._open(state)
        except BaseException as error:
            LastWords.of(error).leave(state)
            self._lease.give_back()
            raise

    def _open(self, state: Storage) -> None:
        settings = self._settings
        root = open_storage(settings.lake.uri, settings.lake.storage_options())
        lake = Lake(root, locking(settings.locking, f"stream {settings.name}", one_run=True), self._registrar)
        ledger = Ledger.load(state, settings.name) or recover(settings, root, lake)
        _log.info("asking %s:%d for its binlog", settings.source.database.host, settings.source.database.port)
        self._source = BinlogSource.open(settings)
        self._ledger, self._server, self._asked_s = ledger, self._source.server, monotonic_s()

        def behind_load() -> SourcePosition | None:
            note_loaded(settings, root, lake, ledger)
            return loaded_position(settings, root, lake)

        begin(self._source, ledger, self._mysql.start, behind_load)
        unopened = open_known(settings, lake, ledger)
        self._registry = SchemaRegistry(settings)
        self._registry.refresh()
        self._engine = BinlogEngine(self._source)
        services = TableServices(self._map)
        self._notes = PortionNotes(self._source.topic, ledger)
        self._runner = BatchRunner(
            settings,
            lake,
            state,
            ledger,
            self._registry,
            services,
            ends=self._ends,
            steps=self._steps,
            portion=self._engine.next_portion,
            notes=self._notes,
        )
        self._between = BetweenBatches(self._runner, self._engine, self._tell, self._stop)
        for source, error in unopened.items():
            self._runner.tables.stop(source, error)
        ledger.save(state)
        self._runner.tend()
        if self._monitor is not None:
            self._monitor.attach(lake, ledger)

    def run(self, *, once: bool) -> None:
        """Run until stopped; with ``once``, until all that the binlog had at the start is applied. Raises LakeError."""
        notes = WorkNotes(self._state, "batch", self._steps.work)
        with leaving_last_words(self._state), StepTeller(self._steps, say_step), notes:
            self._run(once=once)

    def _run(self, *, once: bool) -> None:
        batch, until = self._settings.batch, self._source.server.end if once else None
        feed = BinlogFeed(
            self._source,
            self._position,
            server_id=self._mysql.replica_id(self._settings.name),
            most=batch.max_events,
            splits=not batch.transaction_consistent,
            patience_s=self._settings.source.database.timeout_seconds,
        )
        try:
            while not self._stop.is_set() and (until is None or self._position < until):
                began_s = monotonic_s()
                portion = feed.take(_LOOK_S)
                self._lease.check()
                if portion is not None:
                    self._apply(portion)
                self._settle()
                self._between.go_on()
                self._stop.wait(
                    max(0.0, batch.trigger_interval_ms / 1000 - (monotonic_s() - began_s)) if portion else 0
                )
            if once and not self._stop.is_set():
                self._settled_s = 0.0
                self._settle()
                self._between.finish()
        finally:
            feed.close()
            self._runner.close()
            self._workers.shutdown()
            self._lease.give_back()

    @property
    def _position(self) -> int:
        return self._ledger.positions.at(self._source.topic, PARTITION)

    def _apply(self, portion: Portion) -> None:
        """Apply a portion as one batch."""
        start = self._position
        self._registry.learn_and_keep(portion.schema)
        note_file(self._source, self._ledger, portion.pieces[-1].file)
        self._engine.hold(start, portion)
        self._notes.begin(portion)
        try:
            end = {self._source.topic: {PARTITION: portion.end}}
            event = self._runner.run(self._ledger.batch, end, now_ms(), self._engine)
        finally:
            self._engine.release()
            self._notes.end()
        self._tell(dataclasses.replace(event, partitions=self._partitions()))

    def _partitions(self) -> tuple[PartitionProgress, ...]:
        """The position, and the end of the binlog as it was a few seconds ago at most."""
        if monotonic_s() - self._asked_s >= _ASK_EVERY_S:
            self._asked_s, self._server = monotonic_s(), self._source.now()
        ends = ends_by_bytes(self._server, self._ledger.positions)
        return tuple(
            PartitionProgress(topic, partition, self._ledger.positions.at(topic, partition), end)
            for topic, partition, end in ends.places()
        )

    def _tell(self, event: ProgressEvent) -> None:
        if self._monitor is not None:
            self._monitor.update(event)
        self._on_progress(event)

    def _settle(self) -> None:
        """Carry out DDL that came without data."""
        if monotonic_s() - self._settled_s < _SETTLE_EVERY_S:
            return
        self._settled_s = monotonic_s()
        event = self._runner.settle()
        if event is not None:
            self._on_progress(event)

    def _ends(self, positions: Offsets) -> Offsets:
        """The place of the newest statement that is known: the rows before it come first, and later ones are not asked
        for. A busy server never lets a stream reach its end."""
        newest = max((offset_at(event.place) for event in self._registry.ddl.events), default=0)
        return Offsets({self._source.topic: {PARTITION: newest}}).within(positions)

    def _map(self, function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
        return list(self._workers.map(function, items))


class PortionNotes:
    """What each commit records of the transactions of a binlog.

    Offsets of a binlog say its places by themselves, so the range that a commit covers says where its table had
    everything, whatever other tables have. Only the names of transactions come from the portion, and from the ledger.
    """

    def __init__(self, topic: str, ledger: Ledger) -> None:
        self._topic, self._ledger = topic, ledger
        self._portion: Portion | None = None
        self._before: str | None = None

    def begin(self, portion: Portion) -> None:
        """The next batch applies a portion, from the ledger's position on."""
        ended = self._ledger.transactions.ended
        self._portion, self._before = portion, ended[0] if ended else None
        if (now := portion.gtid) != self._before:
            self._ledger.note_transactions(dataclasses.replace(NO_TRANSACTIONS, ended=() if now is None else (now,)))

    def end(self) -> None:
        """The batch is over: what follows catches single tables up."""
        self._portion = None

    def note_of(self, source: SourceTable, ranges: Ranges, standing: Offsets) -> RecordedTransactions | None:
        """The note of a table's commit. ``standing``: the stream's positions in the table."""
        mine = next((one for one in ranges if (one.topic, one.partition) == (self._topic, PARTITION)), None)
        if mine is None:
            return None
        start, portion = self._ledger.positions.at(self._topic, PARTITION), self._portion
        ends_it = portion is not None and mine.end == portion.end
        return RecordedTransactions(
            last=portion.gtid if portion is not None and ends_it else None,
            split=portion is not None and ends_it and not portion.whole,
            passed=NO_TRANSACTIONS,
            offsets={PARTITION: mine.end},
            after={PARTITION: max(mine.start, standing.at(self._topic, PARTITION))},
            alone=True,
            before=self._before if portion is not None and mine.start == start else None,
        )
