"""The policy of portions of a dump: their commits name the files they hold, and cover no offsets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from binlake.decode.changes import ControlKind, SourceTable
from binlake.load.replay.coverage import DumpPortion, with_hours
from binlake.load.replay.quarantine_table import delivered, refuse_out_of_turn, with_brought
from binlake.position.commit_record import CommitNotes
from binlake.position.ledger import Ledger
from binlake.rows.tasks.plan import BatchPlan, TableState
from binlake.rows.upsert.fanout import destination, truncates_of
from binlake.rows.upsert.target import tells_records
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED
from binlake.settings import Settings
from binlake.source.dump_layout import DumpFile
from binlake.source.offsets import NO_OFFSETS, NO_RANGES, Offsets, Ranges
from binlake.stream.batches.policy import Batch
from binlake.stream.batches.table_inputs import Outcome
from binlake.tables.early_truncates import EarlyTruncates
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.table_commit import TableInput
from hudilake.errors import LakeError
from hudilake.storage import Storage


class DumpPolicy:
    """See BatchPolicy. The ledger holds the tables that this replay has met, and is never saved.

    Args:
        settings: as returned by ``replaying``.
        lake: the tables.
        state: the state directory of the replays.
        uri: the dump's root.
        step: the hours that one directory of the dump holds.
    """

    holds = False

    def __init__(self, settings: Settings, lake: Lake, state: Storage, uri: str, step: int) -> None:
        self.ledger = Ledger(settings.name)
        self._settings, self._lake = settings, lake
        self._uri, self._step = uri, step
        self._truncates = EarlyTruncates(state)
        self._portion = DumpPortion(())
        self._touched: frozenset[SourceTable] = frozenset()

    def begin(self, portion: DumpPortion, number: int) -> None:
        """Begin a portion. Raises LakeError if a table cannot be opened."""
        self._portion = portion
        self.ledger.number(number)
        self._open_hinted(portion.files)

    def tables_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """Returns all tables that this replay has met: a file's tables are unknown before it is read."""
        return {*self.ledger.tables, *self._portion.done, *self._truncates}

    def table_state(self, source: SourceTable, table: LakeTable | None, batch: Batch) -> TableState:
        """Returns the table's state for the tasks, without positions; a table that has the portion is skipped."""
        table = table or self._table(source)  # it was closed if it failed
        truncates = table.truncates if table else NOTHING_TRUNCATED
        return TableState(
            truncates=self._truncates.joined(source, truncates),
            skipped=source in self._portion.done,
            bucketing=table.rows.own_bucketing if table else None,
            delivered=delivered(table) if table else NO_RANGES,
        )

    def met(self, source: SourceTable, table: LakeTable) -> None:
        """Notes the table in the replay's ledger."""
        self.ledger.table_met(source, table.rules.path)

    def executed(self, plan: BatchPlan, outcome: Outcome) -> None:
        """Notes the tables that the portion touches, and keeps TRUNCATEs of tables that do not exist yet."""
        if plan.only is None:
            self._touched = self._touched_by(outcome) | self._portion.done
        truncates = truncates_of(outcome.report.controls, self._settings.tables)
        self._truncates.keep({source: one for source, one in truncates.items() if self._table(source) is None})

    def quarantine_notes(self, plan: BatchPlan) -> CommitNotes:
        """Returns the portion, and the table that gets no commit because all its records are in quarantine."""
        state = plan.states.get(plan.only) if plan.only is not None else None
        settled = {plan.only} if plan.only is not None and state is not None and state.refused is not None else set()
        return CommitNotes(portion=self._portion.recorded(self._uri, self._touched, settled))

    def commit_input(self, table_input: TableInput) -> TableInput | None:
        """Adds portion and hours to the input; returns None if there is no such table and none of its rows is left."""
        source = table_input.report.target.source
        table = self._table(source)
        if table is None and not table_input.parcels and not table_input.written:
            return None
        recorded = table.recorded if table is not None else None
        before = recorded.hours if recorded is not None else None
        dumped = recorded.dumped if recorded is not None else NO_OFFSETS
        files = {file.path for file in self._portion.files}  # the topics of bare events
        report = table_input.report
        brought = Ranges(r for r in report.brought if r.topic not in files).without(table_input.left_out)
        if table is not None:
            refuse_out_of_turn(table, brought, table_input.left_out)
        known = table.brought if table is not None else NO_RANGES
        notes_all = not tells_records(report.target.config, report.target.merging)
        notes = dataclasses.replace(
            table_input.notes,
            portion=self._portion.recorded(self._uri, self._touched),
            portion_table=source,
            hours=with_hours(before or {}, self._uri, self._portion.span(self._step)),
            brought=with_brought(known, brought, report.target) if brought and notes_all else NO_RANGES,
            dumped=dumped.furthest(brought.ends()),
        )
        truncates = self._truncates.joined(source, table_input.truncates)
        report = dataclasses.replace(report, brought=brought)
        given = dataclasses.replace(table_input, report=report, ranges=NO_RANGES, truncates=truncates)
        return dataclasses.replace(given, notes=notes, has=delivered)

    def commits_without_rows(self, source: SourceTable) -> bool:
        """Tells whether the portion touches the table: it is done when each such table has its commit."""
        return source in self._touched

    def committed(self, source: SourceTable, table: LakeTable) -> None:
        """Notes in the replay's ledger that the table exists."""
        self.ledger.table_met(source, table.rules.path)

    def derives(self, wide: SourceTable) -> bool:
        """Returns True: a table that the stream holds back is derived all the same, because its cells are replayed."""
        return True

    def derived(self, wide: SourceTable, path: str) -> None:
        """Does nothing, because no record of a dump belongs to a wide table."""

    def cannot_go_on(self, source: SourceTable, error: LakeError, waiting: Offsets = NO_OFFSETS) -> None:
        """Does nothing: the stream, or the next replay, derives what is missing, and notes tables that stop."""

    def advance(self, batch: Batch, outcome: Outcome, failed: Mapping[SourceTable, LakeError]) -> None:
        """Does nothing: no table is behind, because a portion that is not done is repeated."""

    def _table(self, source: SourceTable) -> LakeTable | None:
        return self._lake.get(self._settings.table_rules(source))

    def _touched_by(self, outcome: Outcome) -> frozenset[SourceTable]:
        """The tables that will have a commit, with rows or without: tables with rows, and existing tables."""
        report = outcome.report
        truncated = {c.source for c in report.controls if c.kind is ControlKind.TRUNCATE}
        sources = set()
        for source in {*report.tables, *truncated}:
            path = self._settings.table_rules(source).path
            if path in outcome.parcels or path in outcome.written or self._table(source) is not None:
                sources.add(source)
        return frozenset(sources)

    def _open_hinted(self, files: Iterable[DumpFile]) -> None:
        """Open the tables that paths name, so that the first plan has them. The records decide, not the paths."""
        tables = self._settings.tables
        named = {SourceTable(f.database, f.table) for f in files if f.database is not None and f.table is not None}
        for source in {destination(s, tables) for s in named if tables.selects(s)} - self.ledger.tables.keys():
            table = self._table(source)
            if table is not None:
                self.ledger.table_met(source, table.rules.path)
