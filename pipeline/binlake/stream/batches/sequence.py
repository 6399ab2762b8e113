"""The fixed sequence of a batch: plan, execute until no new facts appear, check, quarantine, commit tables, advance.

The order makes it safe: every table commits together with the offsets it covers, then the source of the batch advances.
A crash at any step leaves some tables ahead of others and of the ledger; when the batch runs again, each table drops
the records it has applied. A policy decides where the stream and a replay of dumps differ.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from types import MappingProxyType

import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.position.binlog_height import Heights, climbed
from binlake.rows.tasks.plan import BatchPlan
from binlake.rows.upsert.truncates import Truncates
from binlake.schema.apply.keeper import DdlKeeper, DdlOutcome
from binlake.settings import Settings
from binlake.source.offsets import NO_OFFSETS, NO_RANGES, Offsets
from binlake.stream.batches.learning import Lessons
from binlake.stream.batches.planning import Planner
from binlake.stream.batches.policy import Batch, BatchPolicy
from binlake.stream.batches.record_counts import (
    check_threshold,
    ddl_progress,
    filtered_of_no_table,
    loose_tables,
    table_progress,
)
from binlake.stream.batches.table_inputs import AcceptedRules, Outcome, table_inputs, take_refused
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.engine import Engine
from binlake.stream.monitoring.progress import PartitionProgress, ProgressEvent, TableProgress
from binlake.stream.monitoring.steps import BatchSteps
from binlake.stream.tables.derivations import Derivations, took_ms
from binlake.tables.feeds import Feeds
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.merging_check import lost_columns, lost_words
from binlake.tables.names import KeptNames, TableNames
from binlake.tables.quarantine import QuarantineTable
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, TableOutcome, commit_without_rows, write_and_commit
from binlake.tables.unmatched import ShownColumns
from hudilake.clock import monotonic_s, now_ms
from hudilake.errors import BadInputError, CommitUnknownError, ConfigError, LakeError, UnsupportedError
from hudilake.storage import is_near
from hudilake.storage.base import StorageError

_PASSES = 5
#: From this size on, tasks write the rows of append tables themselves: they need no shuffle for it.
_APPEND_IN_TASKS_BYTES = 4 << 20
#: Threads that commit tables, and that write files of a table: a disk answers so soon that more wait for each other.
_THREADS, _DISK_THREADS = 8, 4
#: What tables fail with in an outage of the store. Other passing errors tell of another process at work on a table:
#: it is caught up later.
_OUTAGE = (StorageError, CommitUnknownError)


@dataclass(frozen=True)
class BatchResult:
    """The result of a batch. ``failed``: the tables that could not commit -> the error; all others have committed."""

    event: ProgressEvent
    failed: Mapping[SourceTable, LakeError]


class BatchSequence:
    """Applies the batches of one source, one after the other, with the state kept between them.

    Args:
        settings: of the stream that the commits name.
        lake: the tables.
        registry: the known schemas.
        services: compaction, cleaning and archival of the tables.
        policy: of the batches.
        steps: hears what a batch is doing.
    """

    def __init__(
        self,
        settings: Settings,
        lake: Lake,
        registry: SchemaRegistry,
        services: TableServices,
        policy: BatchPolicy,
        steps: BatchSteps | None = None,
    ) -> None:
        self._steps = steps or BatchSteps()
        self._settings, self._lake, self._registry = settings, lake, registry
        self._services, self._policy = services, policy
        self._tables = ThreadPoolExecutor(_THREADS, thread_name_prefix="binlake-table")
        files = _DISK_THREADS if is_near(lake.root) else _THREADS
        self._files = ThreadPoolExecutor(files, thread_name_prefix="binlake-file")
        self._quarantine = QuarantineTable(settings, lake, services)
        self.derivations = Derivations(settings, lake, services, self._quarantine, policy, self._files)
        self._ddl = DdlKeeper(settings, lake, registry, holds=policy.holds)
        self._lessons = Lessons(settings, lake, registry, self._ddl, policy)
        self._planner = Planner(settings, lake, registry, self._ddl, policy, self._lessons, services, self._files)
        self._names = KeptNames(lake.root, settings.name) if policy.holds else None
        self._shown = ShownColumns(settings, lake.root) if policy.holds else None
        self._accepted = AcceptedRules(settings, lake.root) if policy.holds else None
        self._mean_bytes = 600.0

    @property
    def refused(self) -> Mapping[SourceTable, str]:
        """The tables whose records go to quarantine -> the reason."""
        return self._lessons.refused

    @property
    def held(self) -> Collection[SourceTable]:
        """The tables with a statement that waits until all rows before it are applied."""
        return self._ddl.held

    def open_statements(self) -> dict[SourceTable, LakeError]:
        """The lake tables with a statement that is not carried out, paused ones left out -> why."""
        ledger, statements = self._policy.ledger, self._ddl.open_statements()
        return {s: why for s, why in statements.items() if s in ledger.tables and s not in ledger.paused}

    def close(self) -> None:
        """Stop the threads."""
        self._services.close()
        self._tables.shutdown()
        self._files.shutdown()

    def remove_old_rows(self, source: SourceTable, order: int) -> None:
        """Delete the stored rows of a table up to an ordering value, in a commit that covers no offsets; such rows that
        arrive later are ignored. Does nothing if it was done before. Raises LakeError."""
        table = self._lake.get(self._settings.table_rules(source))
        if table is None:
            return
        stream = self._settings.name
        table.refresh(stream)
        truncates = Truncates(whole=order)
        table_input = TableInput(table.report(source), NO_RANGES, truncates=truncates)
        write_and_commit(table, table_input, stream, self._policy.ledger.batch, self._files, self._services)

    def removed_up_to(self, source: SourceTable) -> int | None:
        """The ordering value up to which rows of a table were deleted, -1 for none; None if the table is not open."""
        table = self._lake.opened(self._settings.table_rules(source).path)
        return table.truncates.whole if table is not None else None

    def still_called(self, source: SourceTable, name: SourceTable, since: int) -> bool:
        """Whether a lake table's source table has had a name from an ordering value on, by the statements that there
        are now. Raises TransientError, ConfigError."""
        self._registry.refresh()
        self._ddl.history.rebuild(sorted(self._policy.ledger.tables, key=str))
        names = TableNames(feeds=tuple(self._ddl.feeds()))
        return Feeds(self._settings.tables, names, self._lake.root).has_fed(name, source, since)

    def settle(self, has_all: Callable[[SourceTable, Collection[SourceTable]], bool]) -> list[DdlOutcome]:
        """Carry out the statements that came without data. Returns their outcomes. Raises LakeError.

        ``has_all``: whether all rows that exist now of a lake table, which come under these names, are applied.
        """
        self._registry.refresh()
        self._planner.settle()
        for _ in self._registry.ddl.events:  # each statement of a table may wait for the rows before it
            released = [source for source in self._ddl.held if has_all(source, self._ddl.history.names_of(source))]
            if not released:
                break
            for source in released:
                self._ddl.release(source)
            self._planner.settle()
        self._keep_names()
        self._stop_unsure()
        return self._planner.take_notes()

    def apply(self, batch: Batch, engine: Engine) -> BatchResult:
        """Apply a batch to every table it has records for. Raises LakeError; no data is lost then."""
        with self._steps.batch(batch.number, batch.ranges):
            return self._apply(batch, engine)

    def _apply(self, batch: Batch, engine: Engine) -> BatchResult:
        started, began_ms = monotonic_s(), now_ms()
        self._registry.refresh()
        plan, outcome = self._execute(batch, engine)
        executed = monotonic_s()
        refused = take_refused(outcome, plan, self._accepted) if self._accepted is not None else {}
        try:
            heights = self._check(batch, plan, outcome)
            self._quarantine.write(
                outcome.report.quarantined,
                batch.ranges,
                self._policy.ledger.batch,
                self._files,
                self._policy.quarantine_notes(plan),
            )
        except LakeError:
            self._planner.abort(plan.writers)
            raise
        tables, failed = self._commit_tables(batch, plan, outcome)
        if self._accepted is not None:
            self._accepted.keep(outcome.report.tables.keys() - failed.keys())
        self._keep_names()
        starts = {s: batch.ranges.of_topics(outcome.report.tables[s].topics).starts() for s in failed}
        self._stop_unsure(starts)
        committed = monotonic_s()
        self._steps.stage("derives and keeps its place")
        derived = self.derivations.after(outcome.report.tables.keys() - failed.keys(), batch.trigger_ms)
        stages = {
            **outcome.report.stage_ms,
            "plan": max(0.0, began_ms - batch.trigger_ms),
            "tasks": (executed - started) * 1000,
            "commit": (committed - executed) * 1000,
            **({"derive": took_ms(derived)} if derived else {}),
        }
        failed |= refused
        derived += [TableProgress(table=str(source), error=str(error)) for source, error in refused.items()]
        event = self._event(batch, outcome, [*tables, *derived], stages)
        if self._shown is not None:
            notices = tuple(f"matches nothing so far: {one}" for one in self._shown.keep(outcome.report.shown))
            event = dataclasses.replace(event, notices=notices)
        self._policy.ledger.climb(heights)
        self._policy.advance(batch, outcome, failed)
        return BatchResult(event, failed)

    def _keep_names(self) -> None:
        """Write what the source calls the tables, once those of a batch or of statements have committed."""
        if self._names is not None:
            self._ddl.take_in(self._policy.ledger.sources)
            self._names.keep(self._ddl.names(), self._ddl.feeds(), self._registry.heard)

    def _stop_unsure(self, waiting: Mapping[SourceTable, Offsets] = MappingProxyType({})) -> None:
        """Stop the tables whose names the statements leave open, whether they have rows now or not.

        ``waiting``: where the rows begin that were not written for it. They may be those of any table that the same
        statement leaves open.
        """
        ledger, unsure = self._policy.ledger, self._ddl.history.unsure() if self._names is not None else {}
        for source, why in unsure.items():
            mine = [start for other, start in waiting.items() if unsure.get(other) == why]
            if source in ledger.tables and (mine or source not in ledger.stopped):
                try:
                    self._ddl.refuse_unsure(source)
                except LakeError as error:
                    self._policy.cannot_go_on(source, error, reduce(Offsets.earliest, mine, NO_OFFSETS))

    def _execute(self, batch: Batch, engine: Engine) -> tuple[BatchPlan, Outcome]:
        """Run plans until one holds all facts that the batch needs."""
        if not batch.ranges:
            return self._planner.plan(batch, shuffle=False), Outcome()
        for attempt in itertools.count(1):
            size_bytes = batch.records * self._mean_bytes
            shuffle = attempt == 1 and size_bytes > self._settings.batch.shuffle_above_bytes
            append = attempt == 1 and size_bytes > _APPEND_IN_TASKS_BYTES
            plan = self._planner.plan(batch, shuffle=shuffle, append=append)
            plan = dataclasses.replace(plan, counts_in=self._steps.counts_in)
            self._steps.stage("fetches")
            try:
                outcome = Outcome.of(engine.run(plan, batch.ranges, shuffle=shuffle))
            except Exception:
                self._planner.abort(plan.writers)
                raise
            if outcome.report.records:
                self._mean_bytes = outcome.report.raw_bytes / outcome.report.records
            most = _PASSES + len(self._registry.ddl.events)  # each statement may wait for the rows before it
            if attempt >= most or not self._lessons.take_in(outcome, last=attempt > 1):
                break
            self._planner.abort(plan.writers)
        return plan, outcome

    def _check(self, batch: Batch, plan: BatchPlan, outcome: Outcome) -> Heights:
        """The newest binlog positions after the batch. Raises BadInputError if the batch must not be applied."""
        self._policy.executed(plan, outcome)
        heights = self._policy.ledger.heights
        if batch.only is None:
            heights = climbed(heights, outcome.report.stretches)
        check_threshold(self._settings.quarantine, outcome.report, batch.ranges)
        return heights

    def _commit_tables(
        self, batch: Batch, plan: BatchPlan, outcome: Outcome
    ) -> tuple[list[TableProgress], dict[SourceTable, LakeError]]:
        """Commit every table that the batch touched; a table that fails does not delay the others."""
        inputs = table_inputs(outcome, plan, batch.ranges, self._lake, self._settings)
        self._steps.stage("writes and commits")
        self._steps.tables((one.report.target.source for one in inputs), "waits")
        task_errors = {failed.table: failed.error for failed in outcome.failed}
        done = list(self._tables.map(lambda one: self._commit_and_tell(one, task_errors), inputs))
        for committed, _ in done:
            outcome.report.took(committed.stage_ms)
        used = {one.report.target.path for one in inputs}
        self._planner.abort({path: writer for path, writer in plan.writers.items() if path not in used})
        tables = [
            table_progress(one.report, committed, batch.trigger_ms, error, one.ranges)
            for one, (committed, error) in zip(inputs, done, strict=True)
        ]
        failed = {i.report.target.source: e for i, (_, e) in zip(inputs, done, strict=True) if e is not None}
        outage = batch.only is None and len(failed) == len(inputs)
        if failed and outage and all(isinstance(e, _OUTAGE) for e in failed.values()):
            raise next(iter(failed.values()))
        return tables, failed

    def _commit_and_tell(
        self, table_input: TableInput, task_errors: Mapping[str, LakeError]
    ) -> tuple[TableOutcome, LakeError | None]:
        """Commit a table, and say so to those who wait."""
        source, records = [table_input.report.target.source], table_input.report.counts.read
        self._steps.tables(source, f"writes {records:,} records")
        committed, error = self._commit_table(table_input, task_errors)
        self._steps.tables(source, "is committed" if error is None else "failed")
        return committed, error

    def _commit_table(
        self, table_input: TableInput, task_errors: Mapping[str, LakeError]
    ) -> tuple[TableOutcome, LakeError | None]:
        target, counts = table_input.report.target, copy.copy(table_input.report.counts)
        try:
            whole = self._policy.commit_input(table_input)
        except LakeError as error:
            self._lessons.refuse(target.source, error)
            return TableOutcome(None, counts), error
        if whole is None:
            counts.settle()
            return TableOutcome(None, counts), None
        try:
            self._ddl.refuse_unsure(target.source)
            if target.path in task_errors:
                raise task_errors[target.path]
            return self._write_table(whole), None
        except LakeError as error:
            self._lake.forget(target.path)
            failure = self._lake.judged(self._settings.table_rules(target.source), error)
            self._lessons.refuse(target.source, failure)
            return TableOutcome(None, counts), failure

    def _write_table(self, table_input: TableInput) -> TableOutcome:
        report, stream, number = table_input.report, self._settings.name, self._policy.ledger.batch
        source = report.target.source
        if report.twice:
            raise BadInputError(
                "two files of the dump hold the same records, and the rows of the table have no key to know them by",
                do_next="move the copies out of the way, or replay with --in-process, which leaves them out",
                table=str(source),
            )
        if report.clash is not None:
            raise UnsupportedError(report.clash, do_next="correct tables.routes or overrides", table=str(source))
        fresh = self._ddl.fresh(source)
        rules = self._settings.table_rules(source)
        table = self._lake.get_or_create(rules, report.target, fresh.columns(report.columns))
        if not table.ddl and fresh.entries:  # the table did not exist before
            notes = dataclasses.replace(table_input.notes, ddl=fresh.entries)
            table_input = dataclasses.replace(table_input, notes=notes)
        if table_input.context is None:
            table.refresh(stream, begins=True)
        if not report.target.config.record_key_fields:
            _refuse_added(table, table_input, stream)
        tell = partial(self._steps.tables, [source], "commits")
        outcome = write_and_commit(table, table_input, stream, number, self._files, self._services, committing=tell)
        if outcome.instant is None and self._policy.commits_without_rows(source):
            commit_without_rows(table, table_input, outcome.counts, stream, number)
        self._policy.committed(source, table)
        return _with_lost(outcome, table, report.columns)

    def _event(
        self, batch: Batch, outcome: Outcome, tables: list[TableProgress], stage_ms: Mapping[str, float]
    ) -> ProgressEvent:
        report = outcome.report
        return ProgressEvent(
            batch_id=batch.number,
            latency_ms=float(now_ms() - batch.trigger_ms),
            stage_ms=stage_ms,
            tables=(*tables, *loose_tables(report)),
            partitions=tuple(PartitionProgress(r.topic, r.partition, r.end, r.end) for r in batch.ranges),
            filtered=filtered_of_no_table(report),
            quarantined=sum(q.source is None for q in report.quarantined),
            ddl=ddl_progress(self._planner.take_notes()),
            by_template=report.by_template,
        )


def _refuse_added(table: LakeTable, table_input: TableInput, stream: str) -> None:
    """Raise ConfigError if another stream has added records of a batch to an append table: twice would be wrong."""
    for other, standing in table.positions.items():
        if other == stream or "." in other:  # a dot: a replay, which each record passes once
            continue
        if any(standing.at(one.topic, one.partition) > one.start for one in table_input.ranges):
            raise ConfigError(
                f"stream {other} has added these records to the table already",
                do_next="give this stream the name of the other one (name), or a lake of its own",
                table=table.rules.path,
            )


def _with_lost(outcome: TableOutcome, table: LakeTable, columns: pa.Schema) -> TableOutcome:
    """The outcome with what it means that rows have tracked columns no more; said once of each."""
    lost = lost_columns(table.merging, columns.names)
    news, table.lost = lost - table.lost, lost
    return dataclasses.replace(outcome, finding=lost_words(news)) if news else outcome
