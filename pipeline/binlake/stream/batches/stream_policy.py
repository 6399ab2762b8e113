"""The policy of the stream's batches: commits cover offsets, a table that fails is behind, and the ledger advances."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Protocol

from binlake.decode.changes import SourceTable
from binlake.position.commit_record import NO_NOTES, CommitNotes
from binlake.position.ledger import Ledger
from binlake.position.recorded import RecordedTransactions
from binlake.rows.tasks.plan import BatchPlan, TableState
from binlake.rows.upsert.fanout import truncates_of
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED
from binlake.settings import Settings
from binlake.source.offsets import NO_OFFSETS, NO_RANGES, Offsets, Ranges
from binlake.stream.batches.policy import Batch
from binlake.stream.batches.table_inputs import Outcome
from binlake.stream.tables.control import TableControl
from binlake.tables.early_truncates import EarlyTruncates
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.presence import KnownTable
from binlake.tables.table_commit import TableInput
from hudilake.errors import LakeError, UnsupportedError
from hudilake.storage import Storage


class TransactionNotes(Protocol):
    """What the commits of a stream record of transactions."""

    def note_of(self, source: SourceTable, ranges: Ranges, standing: Offsets) -> RecordedTransactions | None:
        """The note of a table's commit. ``standing``: the stream's positions in the table."""
        ...


class StreamPolicy:
    """See BatchPolicy.

    Args:
        settings: of the stream.
        lake: the tables; those of the ledger are open.
        state: the directory of the ledger.
        ledger: of the stream.
        notes: what the commits record of transactions; None if they record nothing.
        control: keeps the tables that cannot go on by themselves.
    """

    holds = True

    def __init__(
        self,
        settings: Settings,
        lake: Lake,
        state: Storage,
        ledger: Ledger,
        notes: TransactionNotes | None,
        control: TableControl,
    ) -> None:
        self.ledger = ledger
        self._control = control
        self._settings, self._lake, self._state = settings, lake, state
        self._notes = notes
        self._early = EarlyTruncates(state)
        self._by_topic: dict[str, set[SourceTable]] = {}
        self._anywhere: set[SourceTable] = set()
        for source in ledger.tables:
            table = self._opened(source)
            if table is not None:
                self._note_topics(source, table)
            self.notice_restore(source)

    def tables_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """Only the tables that the batch can touch. A table that was loaded from the source's server may have any topic
        until records of it have come."""
        return self._anywhere.union(*(self._by_topic.get(topic, set()) for topic in topics))

    def table_state(self, source: SourceTable, table: LakeTable | None, batch: Batch) -> TableState:
        """By its commits; a table whose positions are the start of the batch needs no ``applied_until``."""
        truncates = table.truncates if table else NOTHING_TRUNCATED
        return TableState(
            applied_until=table.ahead_of(self._settings.name, batch.starts) if table else NO_OFFSETS,
            truncates=self._early.joined(source, truncates),
            skipped=source in self.ledger.behind and source != batch.only,
            resync=self._control.request(source).resync,
            bucketing=table.rows.own_bucketing if table else None,
            delivered=table.brought if table else NO_RANGES,
        )

    def met(self, source: SourceTable, table: LakeTable) -> None:
        """A run created the table and died before it saved the ledger."""
        self.ledger.table_met(source, table.rules.path)
        self._note_topics(source, table)

    def executed(self, plan: BatchPlan, outcome: Outcome) -> None:
        """Keep the TRUNCATEs of tables that are not there yet: rows from before them may come in a later batch."""
        truncates = truncates_of(outcome.report.controls, self._settings.tables)
        self._early.keep({source: one for source, one in truncates.items() if self._opened(source) is None})

    def quarantine_notes(self, plan: BatchPlan) -> CommitNotes:
        """None: the ranges of the batch say where the records are."""
        return NO_NOTES

    def commit_input(self, table_input: TableInput) -> TableInput:
        """Add the offsets that were skipped on demand, and the transaction the batch ends with."""
        source = table_input.report.target.source
        table = self._lake.opened(table_input.report.target.path)
        standing = table.standing(self._settings.name) if table is not None else NO_OFFSETS
        notes = CommitNotes(
            skipped=self.ledger.skipped_before(table_input.ranges, standing),
            transactions=None if self._notes is None else self._notes.note_of(source, table_input.ranges, standing),
        )
        truncates = self._early.joined(source, table_input.truncates)
        return dataclasses.replace(table_input, truncates=truncates, notes=notes)

    def commits_without_rows(self, source: SourceTable) -> bool:
        """The ledger, too, holds what a table has applied."""
        return False

    def committed(self, source: SourceTable, table: LakeTable) -> None:
        """Note the table's positions in the ledger, and that the lake must have it from now on."""
        path = table.rules.path
        self.ledger.table_committed(source, path, table.standing(self._settings.name))
        self._lake.expect(KnownTable(source, path, path))
        self._note_topics(source, table)

    def derives(self, wide: SourceTable) -> bool:
        """A wide table that is behind is derived when it is caught up."""
        return wide not in self.ledger.behind

    def derived(self, wide: SourceTable, path: str) -> None:
        """Note the wide table in the ledger."""
        self.ledger.table_met(wide, path)

    def cannot_go_on(self, source: SourceTable, error: LakeError, waiting: Offsets = NO_OFFSETS) -> None:
        """The table is behind, and stopped if the error does not pass."""
        self.ledger.note_behind(source, waiting)
        self._control.stop_if_final(source, error)

    def advance(self, batch: Batch, outcome: Outcome, failed: Mapping[SourceTable, LakeError]) -> None:
        """Save the ledger; tables that could not commit, or were skipped, are noted as behind."""
        if batch.only is not None:
            if not failed:
                self.ledger.caught_up(batch.only, batch.ranges.until(outcome.report.held.get(batch.only, {})))
        else:
            self.ledger.advance(batch.end)
            self._note_behind(batch, outcome, failed)
        stopped = [table for table, error in failed.items() if self._stops(table, error)]
        if batch.only is None or stopped or not failed:
            self.ledger.save(self._state)

    def _stops(self, table: SourceTable, error: LakeError) -> bool:
        """Note a table that cannot go on by itself. The records of a refused table go to quarantine instead."""
        return not isinstance(error, UnsupportedError) and self._control.stop_if_final(table, error)

    def notice_restore(self, source: SourceTable) -> None:
        """Note a table as behind if it was restored to an earlier state."""
        table = self._opened(source)
        if table is not None:
            self.ledger.notice_restore(source, table.standing(self._settings.name))

    def _opened(self, source: SourceTable) -> LakeTable | None:
        return self._lake.opened(self._settings.table_rules(source).path)

    def _note_topics(self, source: SourceTable, table: LakeTable) -> None:
        topics = table.topics(self._settings.name)
        for topic in topics:
            self._by_topic.setdefault(topic, set()).add(source)
        if topics:
            self._anywhere.discard(source)
        else:
            self._anywhere.add(source)

    def _note_behind(self, batch: Batch, outcome: Outcome, failed: Mapping[SourceTable, LakeError]) -> None:
        report = outcome.report
        for source, first in report.held.items():
            if source not in failed:
                waiting = Offsets.of_places((topic, partition, offset) for (topic, partition), offset in first.items())
                self.ledger.note_behind(source, waiting)
        for source in {*failed, *report.skipped}:
            missed = report.skipped.get(source, set())
            if source in failed and source in report.tables:
                missed = missed | report.tables[source].topics
            self.ledger.note_behind(source, batch.ranges.of_topics(missed).starts())
