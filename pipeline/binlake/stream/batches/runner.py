"""The stream's micro-batches: cut at a transaction boundary, applied in sequence, caught up table by table."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Sequence

from binlake.decode.changes import SourceTable
from binlake.position.binlog_height import BinlogRestartedError
from binlake.position.in_hand import WorkInHand
from binlake.position.ledger import Ledger
from binlake.rows.tasks.boundary import Boundary
from binlake.settings import Settings
from binlake.source.binlog.topic import is_binlog
from binlake.source.offsets import NO_RANGES, OffsetMap, Offsets, Ranges, topic_suffix
from binlake.stream.batches.policy import Batch
from binlake.stream.batches.record_counts import ddl_progress
from binlake.stream.batches.sequence import BatchSequence
from binlake.stream.batches.stream_policy import StreamPolicy, TransactionNotes
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.engine import Engine
from binlake.stream.monitoring.progress import ProgressEvent, TableProgress
from binlake.stream.monitoring.steps import BatchSteps
from binlake.stream.tables.control import TableControl
from binlake.stream.tables.resync import Connector, Resyncs
from binlake.stream.transactions import Transactions
from binlake.tables.lake import Lake
from binlake.tables.services.table_services import TableServices
from hudilake.clock import now_ms
from hudilake.errors import LakeError, TransientError
from hudilake.storage import Storage

_log = logging.getLogger(__name__)


class BatchRunner:
    """Runs the batches of one stream, one after the other, with the state kept between them.

    ``ends``: the end offsets of these partitions in Kafka; without it, a statement that waits for earlier rows is
    carried out when the first row after it comes. ``steps``: hears what a batch is doing. ``portion``: cuts the ranges
    for which a table is caught up to what is applied at once; None where offsets count records. ``notes``: what the
    commits record of transactions, where no ``transactions`` are cut.
    """

    def __init__(
        self,
        settings: Settings,
        lake: Lake,
        state: Storage,
        ledger: Ledger,
        registry: SchemaRegistry,
        services: TableServices,
        transactions: Transactions | None = None,
        connector: Connector | None = None,
        ends: Callable[[Offsets], Offsets] | None = None,
        steps: BatchSteps | None = None,
        portion: Callable[[Ranges], Ranges] | None = None,
        notes: TransactionNotes | None = None,
    ) -> None:
        self.ledger = ledger
        self._ends, self._portion = ends, portion
        self.tables = TableControl(settings, lake, state, ledger)
        self._settings, self._lake, self._state = settings, lake, state
        self._transactions = transactions
        self._policy = StreamPolicy(settings, lake, state, ledger, transactions or notes, self.tables)
        self._sequence = BatchSequence(settings, lake, registry, services, self._policy, steps)
        self._resyncs = Resyncs(ledger, self.tables, connector, self._sequence)

    def close(self) -> None:
        """Stop the threads."""
        self._sequence.close()

    def run(self, batch_id: int, end: OffsetMap, trigger_ms: int, engine: Engine) -> ProgressEvent:
        """Apply everything from the ledger's positions to ``end``, or to the last transaction boundary before it if
        only whole transactions are wanted. Raises LakeError; no data is lost then."""
        ranges = self.ledger.positions.ranges_to(end)
        cut = self._transactions.cut(ranges) if self._transactions is not None else None
        if cut is not None:
            self.ledger.note_planned(end)
        return self._run(batch_id, ranges, end, cut, trigger_ms, engine)

    @property
    def has_waiting(self) -> bool:
        """Whether records of a finished batch wait for the end of their transaction."""
        return bool(self.ledger.planned.ahead_of(self.ledger.positions))

    def look_again(self, engine: Engine) -> ProgressEvent | None:
        """Apply what waits for the end of its transaction and ends with the topics, which have not grown since the last
        call; None if there is nothing. No batch is planned for it, as nothing follows it. Raises as ``run``."""
        if self._transactions is None or self._ends is None or not self.has_waiting:
            return None
        planned = self.ledger.planned
        try:
            ends = self._ends(planned)
        except TransientError:  # the next call asks again
            return None
        if not self._transactions.has_stood(ends) or ends.ahead_of(planned):
            return None
        ranges = self.ledger.positions.ranges_to(planned)
        cut = self._transactions.cut(ranges, silent=True)
        return self._run(self.ledger.batch, ranges, planned, cut, now_ms(), engine) if cut.ranges else None

    def _run(
        self,
        batch_id: int,
        ranges: Ranges,
        end: OffsetMap,
        cut: Boundary | None,
        trigger_ms: int,
        engine: Engine,
    ) -> ProgressEvent:
        if cut is not None:
            ranges = Ranges(cut.ranges)
            end = ranges.ends()
        try:
            event = self._sequence.apply(Batch(batch_id, ranges, trigger_ms, Offsets(end)), engine).event
        except BinlogRestartedError as restart:
            # records before the restart are applied, so that a new epoch begins exactly there
            place = {str(restart.where["topic"]): {int(restart.where["partition"]): int(restart.where["offset"])}}
            if self.ledger.positions.ranges_to(before := Offsets(end).merge(place)):
                self.run(batch_id, before, trigger_ms, engine)
            raise
        return event if cut is None else dataclasses.replace(event, notices=(*event.notices, *cut.notices))

    def resync_in_hand(self) -> WorkInHand | None:
        """The resyncs that go on, for a ``WorkNotes``."""
        return self._resyncs.progress.work()

    @property
    def waits(self) -> bool:
        """Whether a table is behind only because a statement had to wait for its earlier rows."""
        return any(source in self.ledger.behind for source in self._sequence.held)

    def settle(self) -> ProgressEvent | None:
        """Carry out DDL that came without data. Returns its progress, None if there was none. Raises LakeError."""
        notes = self._sequence.settle(self._has_all)
        return ProgressEvent(self.ledger.batch, 0.0, ddl=ddl_progress(notes)) if notes else None

    def open_statements(self) -> dict[SourceTable, LakeError]:
        """The lake tables with a statement that is not carried out, paused ones left out -> why."""
        return self._sequence.open_statements()

    def tend(self) -> None:
        """Do what people ask of single tables, and the next steps of resyncs. Call it between two batches.

        Raises LakeError; what was done stays done.
        """
        changed = self.tables.take_requests()
        if changed:
            self.ledger.save(self._state)
        if self._resyncs.go_on():
            self.ledger.save(self._state)

    def _has_all(self, source: SourceTable, names: Collection[SourceTable]) -> bool:
        """Whether the stream has applied all rows of a lake table that Kafka holds now. Raises LakeError."""
        if self._ends is None or source in self.ledger.behind:
            return False
        suffixes = tuple(topic_suffix(name) for name in names)
        table = self._lake.opened(self._settings.table_rules(source).path)
        fed = table.topics(self._settings.name) if table is not None else set()
        mine = Offsets(
            {
                topic: parts
                for topic, parts in self.ledger.positions.items()
                if topic in fed or topic.endswith(suffixes) or is_binlog(topic)
            }
        )
        return bool(mine) and not self._ends(mine).ahead_of(mine)

    def catch_up(self, source: SourceTable, engine: Engine) -> ProgressEvent | None:
        """Bring a table that is behind up to the ledger's positions, one batch size per call; None if it failed.

        A table whose error does not pass is stopped.
        """
        if self._settings.table_rules(source).wide is not None:
            return self._catch_up_wide(source)
        try:
            self._lake.get(self._settings.table_rules(source))
            self._policy.notice_restore(source)
            ranges = self.ledger.waiting(source)
            if self._portion is not None:
                ranges = self._portion(ranges)
            elif self._transactions is None:  # else all: a part may end within a transaction
                ranges = ranges.at_most(self._settings.batch.max_events)
            before = self.ledger.behind[source]
            applied = self._sequence.apply(Batch(self.ledger.batch, ranges, now_ms(), only=source), engine)
        except LakeError as error:
            self._not_caught_up(source, error)
            return None
        is_stuck = self.ledger.behind.get(source) == before  # its rows wait for a statement that could not be done
        return None if applied.failed or is_stuck else applied.event

    def _catch_up_wide(self, wide: SourceTable) -> ProgressEvent | None:
        """Derive a wide table that is behind; None if it failed."""
        try:
            progress = self._sequence.derivations.catch_up(wide)
        except LakeError as error:
            self._not_caught_up(wide, error)
            return None
        self.ledger.table_met(wide, self._settings.table_rules(wide).path)
        self.ledger.caught_up(wide, NO_RANGES)
        self.ledger.save(self._state)
        return ProgressEvent(self.ledger.batch, 0.0, tables=(progress,))

    def _not_caught_up(self, source: SourceTable, raised: LakeError) -> None:
        """Note a table that is still behind, and stop it if its error does not pass."""
        error = self._lake.judged(self._settings.table_rules(source), raised)
        if self.tables.stop_if_final(source, error):
            self.ledger.save(self._state)
            return
        fields = {"event": "not_caught_up", "table": str(source), "error": error.what}
        _log.warning("%s could not be caught up and is tried again: %s", source, error, extra=fields)

    def derive_missing(self) -> ProgressEvent | None:
        """Derive what a crash, or another writer of a table of cells, has left to derive. Returns its progress, None if
        there was nothing. Raises LakeError if the ledger cannot be saved."""
        return self._derived(self._sequence.derivations.missing())

    def derive_expired(self) -> ProgressEvent | None:
        """Take cells that have expired out of wide tables whose sweep is due. As ``derive_missing``."""
        return self._derived(self._sequence.derivations.expired())

    def _derived(self, progress: Sequence[TableProgress]) -> ProgressEvent | None:
        if not progress:
            return None
        self.ledger.save(self._state)
        return ProgressEvent(self.ledger.batch, 0.0, tables=tuple(progress))
