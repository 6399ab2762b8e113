"""One micro-batch, from planned offsets to visible commits.

The order makes it safe: every table commits with the offsets it covers, then the stream's ledger moves on. A crash
anywhere leaves some tables ahead of others and of the ledger; on the way again each drops what it has applied.

A plan is made of what is known before the batch is read. What the batch itself teaches (a column the schema lacked,
a table that needs before images, a TRUNCATE behind rows that tasks have written) is put into a second plan, and the
batch is run again: rare, and simpler than guessing.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from pipeline.clock import monotonic_s, now_ms
from pipeline.decode.changes import ControlKind, SourceTable
from pipeline.errors import BinlakeError, TransientError, UnsupportedError
from pipeline.lake.lake import Lake
from pipeline.lake.quarantine import QuarantineTable
from pipeline.lake.table_commit import TableOutcome, TableWork, write_and_commit
from pipeline.lake.table_services import Upkeep
from pipeline.monitoring.progress import PartitionProgress, ProgressEvent, TableProgress
from pipeline.position.binlog_height import BinlogRestartedError, climbed
from pipeline.position.commit_record import CommitNotes
from pipeline.position.ledger import Ledger
from pipeline.schema_changes.apply.keeper import DdlKeeper, DdlNote
from pipeline.settings import Settings
from pipeline.source.offsets import NO_OFFSETS, OffsetMap, Offsets, Ranges
from pipeline.storage import Storage
from pipeline.stream.engine import Engine
from pipeline.stream.record_counts import (
    check_threshold,
    ddl_progress,
    filtered_of_no_table,
    loose_tables,
    table_progress,
)
from pipeline.stream.schemas import SchemaRegistry
from pipeline.stream.table_inputs import Outcome, table_works
from pipeline.stream.transactions import Transactions
from pipeline.tasks.plan import (
    BatchPlan,
    TableState,
    TableWriter,
    TaskReport,
)
from pipeline.upsert.truncates import NOTHING_TRUNCATED

_PASSES = 4
_THREADS = 8


class BatchRunner:
    """Runs the batches of one stream, one after the other, with the state kept between them."""

    def __init__(
        self,
        settings: Settings,
        lake: Lake,
        state: Storage,
        ledger: Ledger,
        registry: SchemaRegistry,
        upkeep: Upkeep,
        transactions: Transactions | None = None,
    ) -> None:
        self.ledger = ledger
        self._settings = settings
        self._lake = lake
        self._state = state
        self._registry = registry
        self._upkeep = upkeep
        self._transactions = transactions
        self._quarantine = QuarantineTable(settings, lake, upkeep)
        self._ddl = DdlKeeper(settings, lake, registry)
        self._ddl_notes: list[DdlNote] = []
        self._before_of: set[SourceTable] = set()
        self._refused: dict[SourceTable, str] = {}
        self._by_topic: dict[str, set[SourceTable]] = {}
        for source in ledger.tables:
            self._note_topics(source)
            self._notice_restore(source)
        self._mean_bytes = 600.0
        self._kafka = settings.kafka.client_properties()
        self._tables = ThreadPoolExecutor(_THREADS, thread_name_prefix="binlake-table")
        self._files = ThreadPoolExecutor(_THREADS, thread_name_prefix="binlake-file")

    def close(self) -> None:
        """Stop the threads."""
        self._upkeep.close()
        self._tables.shutdown()
        self._files.shutdown()

    def run(self, batch_id: int, end: OffsetMap, trigger_ms: int, engine: Engine) -> ProgressEvent:
        """Apply everything from the ledger's positions to ``end``, or to the last transaction boundary before it where
        only whole transactions are wanted. Raises BinlakeError; nothing is lost by it."""
        ranges = self.ledger.positions.ranges_to(end)
        cut = self._transactions.cut(ranges) if self._transactions is not None else None
        if cut is not None:
            self.ledger.note_planned(end)
            ranges = Ranges(cut.ranges)
            end = ranges.ends()
        try:
            event, outcome, failed = self._apply(ranges, batch_id, trigger_ms, engine, None)
        except BinlogRestartedError as restart:
            # what lies before is applied, so that a new epoch begins right there
            place = {str(restart.where["topic"]): {int(restart.where["partition"]): int(restart.where["offset"])}}
            if self.ledger.positions.ranges_to(before := Offsets(end).merge(place)):
                self.run(batch_id, before, trigger_ms, engine)
            raise
        self.ledger.advance(end)
        self._note_behind(outcome.report, failed, ranges)
        self.ledger.save(self._state)
        return event if cut is None else dataclasses.replace(event, notices=cut.notices)

    def settle(self) -> ProgressEvent | None:
        """Carry out DDL that came without data; what became of it, None where there was none. Raises BinlakeError."""
        self._registry.refresh()
        self._settle_ddl()
        notes, self._ddl_notes = self._ddl_notes, []
        return ProgressEvent(self.ledger.batch, 0.0, ddl=ddl_progress(notes)) if notes else None

    def _settle_ddl(self) -> None:
        self._ddl_notes += self._ddl.settle(self.ledger.tables, self._settings.name, self._files, self._upkeep)

    def catch_up(self, source: SourceTable, engine: Engine) -> ProgressEvent | None:
        """Bring a table that is behind up to the ledger's positions, a batch's worth at a time; None when it failed."""
        try:
            self._lake.get(self._settings.table_rules(source))
        except BinlakeError:
            return None
        self._notice_restore(source)
        ranges = self.ledger.waiting(source)
        if self._transactions is None:
            ranges = ranges.at_most(self._settings.batch.max_events)  # else all of it: between it may be no boundary
        event, _, failed = self._apply(ranges, self.ledger.batch, now_ms(), engine, source)
        if failed:
            return None
        self.ledger.caught_up(source, ranges)
        self.ledger.save(self._state)
        return event

    def _apply(
        self, ranges: Ranges, batch_id: int, trigger_ms: int, engine: Engine, only: SourceTable | None
    ) -> tuple[ProgressEvent, Outcome, Collection[SourceTable]]:
        started, began_ms = monotonic_s(), now_ms()
        self._registry.refresh()
        outcome, plan = self._execute(ranges, engine, only)
        executed = monotonic_s()
        try:
            heights = climbed(self.ledger.heights, outcome.report.stretches) if only is None else self.ledger.heights
            check_threshold(self._settings.quarantine, outcome.report, ranges)
            self._quarantine.write(outcome.report.quarantined, ranges, self.ledger.batch, self._files)
        except BinlakeError:
            self._abort(plan)
            raise
        tables, failed = self._commit_tables(outcome, plan, ranges, trigger_ms)
        committed = monotonic_s()
        self.ledger.climb(heights)
        stages = {
            **outcome.report.stage_ms,
            "plan": max(0.0, began_ms - trigger_ms),
            "tasks": (executed - started) * 1000,
            "commit": (committed - executed) * 1000,
        }
        event = ProgressEvent(
            batch_id=batch_id,
            latency_ms=float(now_ms() - trigger_ms),
            stage_ms=stages,
            tables=(*tables, *loose_tables(outcome.report)),
            partitions=tuple(PartitionProgress(r.topic, r.partition, r.end, r.end) for r in ranges),
            filtered=filtered_of_no_table(outcome.report),
            quarantined=sum(q.source is None for q in outcome.report.quarantined),
            ddl=ddl_progress(self._ddl_notes),
        )
        self._ddl_notes = []
        return event, outcome, failed

    # -- reading ---------------------------------------------------------------------------------------------------

    def _execute(self, ranges: Ranges, engine: Engine, only: SourceTable | None) -> tuple[Outcome, BatchPlan]:
        """Run plans until one knows all that the batch needs."""
        if not ranges:
            return Outcome(), self._plan(ranges, only, shuffle=False)
        for attempt in range(_PASSES):
            shuffle = attempt == 0 and ranges.records * self._mean_bytes > self._settings.batch.shuffle_above_bytes
            plan = self._plan(ranges, only, shuffle=shuffle)
            try:
                outcome = Outcome.of(engine.run(plan, ranges, shuffle=shuffle))
            except Exception:
                self._abort(plan)
                raise
            if outcome.report.records:
                self._mean_bytes = outcome.report.raw_bytes / outcome.report.records
            if attempt == _PASSES - 1 or not self._learned(outcome, last=attempt > 0):
                break
            self._abort(plan)
        return outcome, plan

    def _plan(self, ranges: Ranges, only: SourceTable | None, *, shuffle: bool) -> BatchPlan:
        settings = self._settings
        starts = ranges.starts()
        self._settle_ddl()
        ddl = self._ddl.plan(starts)
        concerned = self._sources_of(starts) | self.ledger.behind.keys() | self._refused.keys()
        concerned |= self._ddl.lake_tables_of(starts)
        states = {source: self._table_state(source, only, starts) for source in concerned}
        return BatchPlan(
            decoding=self._registry.options(frozenset(self._before_of)),
            schemas=self._registry.schemas_for(starts),
            tables=settings.tables,
            states={s: state for s, state in states.items() if state != TableState()},
            kafka=self._kafka,
            lake_uri=settings.lake.uri,
            lake_options=settings.lake.storage_options(),
            only=only,
            writers=self._open_writers(starts) if shuffle else {},
            max_quarantined=settings.quarantine.max_records_per_batch,
            ddl=ddl,
        )

    def _table_state(self, source: SourceTable, only: SourceTable | None, starts: Offsets) -> TableState:
        """What tasks need of a table; nothing for one that is where the batch starts."""
        table = self._lake.opened(self._settings.table_rules(source).path)
        return TableState(
            applied_until=table.ahead_of(self._settings.name, starts) if table else NO_OFFSETS,
            truncates=table.truncates if table else NOTHING_TRUNCATED,
            refused=self._refused.get(source),
            skipped=source in self.ledger.behind and source != only,
        )

    def _note_topics(self, source: SourceTable) -> None:
        """Remember which topics feed a table, so that a batch looks only at the tables it can touch."""
        table = self._lake.opened(self._settings.table_rules(source).path)
        for topic in table.topics(self._settings.name) if table is not None else ():
            self._by_topic.setdefault(topic, set()).add(source)

    def _notice_restore(self, source: SourceTable) -> None:
        table = self._lake.opened(self._settings.table_rules(source).path)
        if table is not None:
            self.ledger.notice_restore(source, table.standing(self._settings.name))

    def _sources_of(self, topics: Iterable[str]) -> set[SourceTable]:
        return set().union(*(self._by_topic.get(topic, set()) for topic in topics))

    def _open_writers(self, topics: Iterable[str]) -> dict[str, TableWriter]:
        """Begin an instant for every known table that these topics have fed before."""
        writers: dict[str, TableWriter] = {}
        for source in self._sources_of(topics) - self.ledger.behind.keys() - self._refused.keys():
            table = self._lake.opened(self._settings.table_rules(source).path)
            if table is not None and table.keyless is None:
                table.refresh(self._settings.name)
                context = table.begin(table.table.schema)
                writers[table.rules.path] = TableWriter(context, table.foreign_file_ids)
        return writers

    def _abort(self, plan: BatchPlan) -> None:
        for path, writer in plan.writers.items():
            table = self._lake.opened(path)
            if table is not None:
                with contextlib.suppress(BinlakeError):
                    table.table.abort(writer.context.instant)

    def _learned(self, outcome: Outcome, *, last: bool) -> bool:
        """Take in what the batch taught; True if running it again will do better."""
        again = False
        for source, table in outcome.report.tables.items():
            rules = self._settings.table_rules(source)
            moving = table.target.partition is not None and not rules.immutable_partition
            rekeyed = rules.key is not None and rules.key != table.schema.key
            if (moving or rekeyed or not table.target.key) and not table.origins <= self._before_of:
                self._before_of |= table.origins
                again = True
            if source not in self.ledger.tables and self._lake.get(rules) is not None:
                self.ledger.table_met(source, rules.path)  # made by a run that died before its ledger
                self._note_topics(source)
                again = True
        truncated = {c.source for c in outcome.report.controls if c.kind is ControlKind.TRUNCATE}
        again |= any(self._settings.table_rules(source).path in outcome.written for source in truncated)
        again |= bool(outcome.written.keys() & outcome.parcels.keys())  # a new column: one writer a file group
        again |= self._registry.take_in(outcome.report.controls)
        again |= self._ddl.learn(outcome.report.controls)
        if self._registry.waits_for(outcome.report) and not last:
            again |= self._registry.wait_for_news()
        return again

    # -- writing ---------------------------------------------------------------------------------------------------

    def _commit_tables(
        self, outcome: Outcome, plan: BatchPlan, ranges: Ranges, trigger_ms: int
    ) -> tuple[list[TableProgress], dict[SourceTable, BinlakeError]]:
        """Commit every table the batch touched; a table that fails does not hold the others up."""
        works = self._works(outcome, plan, ranges)
        errors = {failed.table: failed.error for failed in outcome.failed}
        done = list(self._tables.map(lambda work: self._commit_table(work, trigger_ms, errors), works))
        for work in works:
            outcome.report.took(work.stage_ms)
        used = {work.report.target.path for work in works}
        self._abort(dataclasses.replace(plan, writers={p: w for p, w in plan.writers.items() if p not in used}))
        failed = {w.report.target.source: e for w, (_, e) in zip(works, done, strict=True) if e is not None}
        outage = plan.only is None and len(failed) == len(works)
        if failed and outage and all(isinstance(e, TransientError) for e in failed.values()):
            raise next(iter(failed.values()))
        return [progress for progress, _ in done], failed

    def _works(self, outcome: Outcome, plan: BatchPlan, ranges: Ranges) -> list[TableWork]:
        works = table_works(outcome, plan, ranges, self._lake, self._settings)
        for work in works:
            table = self._lake.opened(work.report.target.path)
            standing = table.standing(self._settings.name) if table is not None else NO_OFFSETS
            work.notes = CommitNotes(
                skipped=self.ledger.skipped_before(ranges, standing),
                transactions=self._transactions.recorded if self._transactions is not None else None,
            )
        return works

    def _commit_table(
        self, work: TableWork, trigger_ms: int, errors: Mapping[str, BinlakeError]
    ) -> tuple[TableProgress, BinlakeError | None]:
        target = work.report.target
        error: BinlakeError | None = None
        outcome = TableOutcome(None)
        try:
            if target.path in errors:
                raise errors[target.path]
            if work.report.clash is not None:
                raise UnsupportedError(
                    work.report.clash, do_next="correct tables.routes or overrides", table=str(target.source)
                )
            table = self._lake.get_or_create(self._settings.table_rules(target.source), target, work.report.columns)
            if not table.ddl and (entries := self._ddl.entries_for(target.source)):
                work.notes = dataclasses.replace(work.notes, ddl=tuple(entries))  # of a table that was not there
            if work.context is None:
                table.refresh(self._settings.name)
            outcome = write_and_commit(table, work, self._settings.name, self.ledger.batch, self._files, self._upkeep)
            self.ledger.table_committed(target.source, target.path, table.standing(self._settings.name))
            self._note_topics(target.source)
        except BinlakeError as failure:
            error = failure
            self._lake.forget(target.path)
            if isinstance(failure, UnsupportedError):
                self._refused[target.source] = str(failure)
        return table_progress(work.report, outcome, trigger_ms, error, work.ranges), error

    def _note_behind(self, report: TaskReport, failed: Collection[SourceTable], ranges: Ranges) -> None:
        """Remember from where tables that could not commit, or were skipped, must be caught up."""
        for source in {*failed, *report.skipped}:
            missed = report.skipped.get(source, set())
            if source in failed:
                missed = missed | report.tables[source].topics
            self.ledger.note_behind(source, ranges.of_topics(missed).starts())
