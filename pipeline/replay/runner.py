"""Portions of a dump carried out: batches as the stream's, but for where records come from and what commits say.

The commits are of another stream, ``<name>.replay``: they cover no offsets and move no position, so neither the stream
nor its recovery sees them. Rows are decided by the order of their events, whoever wrote first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa

from pipeline.clock import now_ms
from pipeline.decode.changes import ControlKind, SourceTable
from pipeline.errors import BinlakeError, TransientError
from pipeline.hudi.actions.commit import OvertakenError
from pipeline.lake.lake import Lake, locking
from pipeline.lake.lake_table import LakeTable
from pipeline.lake.table_commit import TableOutcome, TableWork
from pipeline.lake.table_services import Upkeep
from pipeline.monitoring.progress import ProgressEvent, TableProgress
from pipeline.position.commit_record import CommitNotes, CommitRecord
from pipeline.position.ledger import Ledger
from pipeline.replay.coverage import Portion, with_hours
from pipeline.replay.truncates import EarlyTruncates
from pipeline.settings import Settings, TableRules
from pipeline.source.dump_layout import DumpFile
from pipeline.source.dump_read import record_bytes
from pipeline.source.offsets import NO_RANGES, OffsetRange, Offsets, Ranges
from pipeline.storage import Storage
from pipeline.stream.batch import BatchRunner
from pipeline.stream.engine import Engine
from pipeline.stream.record_counts import table_progress
from pipeline.stream.schemas import SchemaRegistry
from pipeline.stream.table_inputs import Outcome
from pipeline.tasks.plan import BatchPlan, TableState, TableWriter
from pipeline.upsert.fanout import destination, truncates_of
from pipeline.upsert.target import Target

#: What stands before a file's path where a batch has the topic of an offset range.
FILE = "dump:"
#: Bytes of a record, about: a batch is measured in records.
_RECORD_BYTES = 600
_ATTEMPTS = 3


def replay_stream(name: str) -> str:
    """The stream that the commits of a replay name. No stream of the settings can be called so."""
    return f"{name}.replay"


def replaying(settings: Settings) -> Settings:
    """The settings under which a replay writes: a stream of another name, with a state below that of the stream; the
    same tables, the same quarantine."""
    quarantine = settings.quarantine.model_copy(update={"path": settings.quarantine_path})
    state = settings.state.model_copy(update={"uri": f"{settings.state_uri}/replay_dumps"})
    return settings.model_copy(update={"name": replay_stream(settings.name), "quarantine": quarantine, "state": state})


class ReplayLake(Lake):
    """The lake's tables: compacted between two commits, since a replay ends; first rows may go to base files."""

    def __init__(self, root: Storage, settings: Settings) -> None:
        super().__init__(root, locking(settings.locking, f"stream {settings.name}", one_run=True))
        self._base_from_rows = settings.dump.base_files_from_rows

    def get(self, rules: TableRules) -> LakeTable | None:
        """See Lake."""
        table = super().get(_inline(rules))
        if table is not None:
            table.base_from_rows = self._base_from_rows
        return table

    def get_or_create(self, rules: TableRules, target: Target, columns: pa.Schema) -> LakeTable:
        """See Lake."""
        table = super().get_or_create(_inline(rules), target, columns)
        table.base_from_rows = self._base_from_rows
        return table


def _inline(rules: TableRules) -> TableRules:
    rule = rules.compaction
    if rule is None or rule.mode != "async":
        return rules
    return dataclasses.replace(rules, compaction=dataclasses.replace(rule, mode="inline"))


class ReplayRunner(BatchRunner):
    """Carries out the portions of one replay.

    Args:
        settings: as ``replaying`` gives them.
        lake: the tables.
        state: of the replays.
        registry: what is known of schemas.
        upkeep: of the tables.
        uri: the dump's root.
        step: the hours of one of its directories.
    """

    def __init__(
        self,
        settings: Settings,
        lake: ReplayLake,
        state: Storage,
        registry: SchemaRegistry,
        upkeep: Upkeep,
        uri: str,
        step: int,
    ) -> None:
        super().__init__(settings, lake, state, Ledger(settings.name), registry, upkeep)
        self._uri, self._step = uri, step
        self._truncates = EarlyTruncates(state)
        self._portion = Portion(())
        self._touched: frozenset[SourceTable] = frozenset()
        self._errors: Mapping[SourceTable, BinlakeError] = {}

    def replay(self, portion: Portion, number: int, engine: Engine) -> list[ProgressEvent]:
        """Apply a portion to every table it has rows for; what was done, one event for each attempt.

        A table whose commit was overtaken is tried again; the records of one that refuses them go to quarantine. Raises
        BinlakeError: what is committed stays, and the portion is taken up again by the next replay.
        """
        self._portion = portion
        self.ledger.number(number)
        self._open_hinted(portion.files)
        records = {f"{FILE}{f.path}": max(1, record_bytes(f) // _RECORD_BYTES) for f in portion.files}
        ranges = Ranges(OffsetRange(name, 0, 0, count) for name, count in records.items())
        unmeasured = Ranges(OffsetRange(name, 0, 0, 0) for name in records)  # not shuffled: the driver can redo it
        try:
            events = [self._attempt(ranges, number, engine, None)]
        except OvertakenError:  # of every table: no other commit stands
            events = [self._attempt(unmeasured, number, engine, None)]
        for source, error in dict(self._errors).items():
            for attempt in range(_ATTEMPTS):
                if not (isinstance(error, TransientError) or source in self._refused):
                    raise error
                events.append(self._attempt(unmeasured, number, engine, source))
                if not self._errors:
                    break
                error = self._errors[source]
                if attempt == _ATTEMPTS - 1:
                    raise error
        return events

    def _attempt(self, ranges: Ranges, number: int, engine: Engine, only: SourceTable | None) -> ProgressEvent:
        self._errors = {}
        event, _, _ = self._apply(ranges, number, now_ms(), engine, only)
        return event

    def _open_hinted(self, files: Iterable[DumpFile]) -> None:
        """Open the tables that paths name, so that the first plan knows them. The records decide, not the paths."""
        tables = self._settings.tables
        named = {SourceTable(f.database, f.table) for f in files if f.database is not None and f.table is not None}
        for source in {destination(s, tables) for s in named if tables.selects(s)} - self.ledger.tables.keys():
            rules = self._settings.table_rules(source)
            if self._lake.get(rules) is not None:
                self.ledger.table_met(source, rules.path)

    # -- what differs from a batch of the stream ------------------------------------------------------------------

    def _sources_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """Which tables a file has rows for is not known before it is read: all that this replay has met."""
        return {*self.ledger.tables, *self._portion.done, *self._truncates}

    def _table_state(self, source: SourceTable, only: SourceTable | None, starts: Offsets) -> TableState:
        state = super()._table_state(source, only, starts)
        truncates = state.truncates.merged(self._truncates.of(source))
        return dataclasses.replace(state, truncates=truncates, skipped=state.skipped or source in self._portion.done)

    def _open_writers(self, topics: Iterable[str]) -> dict[str, TableWriter]:
        writers = super()._open_writers(topics)
        for path, writer in writers.items():
            table = self._lake.opened(path)
            if table is not None and writer.context.base_from_rows is not None:
                writers[path] = dataclasses.replace(writer, existing=frozenset(table.groups()))
        return writers

    def _execute(self, ranges: Ranges, engine: Engine, only: SourceTable | None) -> tuple[Outcome, BatchPlan]:
        outcome, plan = super()._execute(ranges, engine, only)
        if only is None:
            self._touched = self._tables_of(outcome) | self._portion.done
        settled = {only} if only is not None and only in self._refused else set()
        self._quarantine.notes = CommitNotes(portion=self._portion.recorded(self._uri, self._touched, settled))
        return outcome, plan

    def _tables_of(self, outcome: Outcome) -> frozenset[SourceTable]:
        """The tables that will have a commit, with rows or without: those with rows, and those that are there."""
        report = outcome.report
        truncated = {c.source for c in report.controls if c.kind is ControlKind.TRUNCATE}
        found = set()
        for source in {*report.tables, *truncated}:
            rules = self._settings.table_rules(source)
            if rules.path in outcome.parcels or rules.path in outcome.written or self._lake.get(rules) is not None:
                found.add(source)
        return frozenset(found)

    def _works(self, outcome: Outcome, plan: BatchPlan, ranges: Ranges) -> list[TableWork]:
        truncates = truncates_of(outcome.report.controls, self._settings.tables)
        rules = {source: self._settings.table_rules(source) for source in truncates}
        self._truncates.keep({s: one for s, one in truncates.items() if self._lake.get(rules[s]) is None})
        works = super()._works(outcome, plan, NO_RANGES)
        for work in works:
            source = work.report.target.source
            work.truncates = work.truncates.merged(self._truncates.of(source))
            portion = self._portion.recorded(self._uri, self._touched)
            work.notes = dataclasses.replace(work.notes, portion=portion, portion_table=source)
        return works

    def _commit_table(
        self, work: TableWork, trigger_ms: int, errors: Mapping[str, BinlakeError]
    ) -> tuple[TableProgress, BinlakeError | None]:
        source = work.report.target.source
        rules = self._settings.table_rules(source)
        try:
            table = self._lake.get(rules)
            before = table.recorded.hours if table is not None else None
        except BinlakeError as failure:
            return table_progress(work.report, TableOutcome(None), trigger_ms, failure, NO_RANGES), failure
        if table is None and not work.parcels and not work.written:
            work.report.counts.settle()  # none of its rows was left, and there is nothing to take them from
            return table_progress(work.report, TableOutcome(None), trigger_ms, None, NO_RANGES), None
        hours = with_hours(before or {}, self._uri, self._portion.span(self._step))
        work.notes = dataclasses.replace(work.notes, hours=hours)
        progress, error = super()._commit_table(work, trigger_ms, errors)
        if error is None and progress.commit_instant is None and source in self._touched:
            return self._commit_nothing(work, progress)
        return progress, error

    def _commit_nothing(self, work: TableWork, progress: TableProgress) -> tuple[TableProgress, BinlakeError | None]:
        """A portion of which no row was left for the table is a commit all the same, for it says so."""
        source = work.report.target.source
        try:
            table = self._lake.get(self._settings.table_rules(source))
            if table is not None:
                context = table.begin(table.table.schema)
                name, counts = self._settings.name, work.report.counts
                table.commit(context, [], CommitRecord(name, self.ledger.batch, counts, source, notes=work.notes))
        except BinlakeError as error:
            self._lake.forget(work.report.target.path)
            return progress, error
        return progress, None

    def _commit_tables(
        self, outcome: Outcome, plan: BatchPlan, ranges: Ranges, trigger_ms: int
    ) -> tuple[list[TableProgress], dict[SourceTable, BinlakeError]]:
        progress, failed = super()._commit_tables(outcome, plan, ranges, trigger_ms)
        self._errors = failed
        return progress, failed

    def _note_behind(self, report: object, failed: Collection[SourceTable], ranges: Ranges) -> None:
        """No table is behind: a portion that is not done is taken up again."""
