"""Keeps facts that a batch reveals and its plan lacked, from one batch to the next.

A plan is made from the facts known before the batch is read. A batch may reveal more: a column that the schema lacked,
a table that needs before images, a TRUNCATE after rows that tasks have written. A second plan then holds these facts,
and the batch runs again. This is rare, and simpler than predicting them.
"""

from __future__ import annotations

from binlake.decode.changes import ControlKind, SourceTable
from binlake.rows.tasks.plan import TaskReport, TaskTableReport
from binlake.rows.upsert.fanout import destination
from binlake.rows.upsert.shape import first_spellings
from binlake.schema.apply.keeper import DdlKeeper
from binlake.settings import Settings
from binlake.stream.batches.policy import BatchPolicy
from binlake.stream.batches.table_inputs import Outcome
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from hudilake.errors import LakeError, UnsupportedError


class Lessons:
    """The facts that the batches so far have revealed.

    ``before_of``: source tables whose before images are decoded. ``refused``: lake tables whose records go to
    quarantine -> the reason. ``columns``: lake tables whose rows came with column names in another case than the
    table's -> the names that are kept.
    """

    def __init__(
        self, settings: Settings, lake: Lake, registry: SchemaRegistry, ddl: DdlKeeper, policy: BatchPolicy
    ) -> None:
        self.before_of: set[SourceTable] = set()
        self.refused: dict[SourceTable, str] = {}
        self.columns: dict[SourceTable, tuple[str, ...]] = {}
        self._settings, self._lake = settings, lake
        self._registry, self._ddl, self._policy = registry, ddl, policy

    def take_in(self, outcome: Outcome, *, last: bool) -> bool:
        """Take in the facts of a batch; True if the batch must run again. ``last``: do not wait for DDL any more."""
        again = False
        for source, report in outcome.report.tables.items():
            again |= self._take_in_table(source, report)
        for source, columns in outcome.report.inferred.items():
            table = self._lake.get(self._settings.table_rules(destination(source, self._settings.tables)))
            again |= self._registry.infer(source, columns, table.hudi.schema if table is not None else None)
        truncated = {c.source for c in outcome.report.controls if c.kind is ControlKind.TRUNCATE}
        again |= any(self._settings.table_rules(source).path in outcome.written for source in truncated)
        again |= bool(outcome.written.keys() & outcome.parcels.keys())  # a new column: one writer a file group
        again |= self._registry.take_in(outcome.report.controls)
        again |= self._ddl.history.learn(outcome.report.controls)
        for source in outcome.report.held:
            known = outcome.report.tables.get(source)
            applied = known is None or not known.counts.read  # all rows before the statement are
            if applied and source in self._ddl.held:
                self._ddl.release(source)
                again = True
        if self._registry.waits_for(outcome.report) and not last:
            again |= self._registry.wait_for_news()
        # rows that were read by older definitions seem to lack columns
        return again or self._take_in_forms(outcome.report)

    def refuse(self, source: SourceTable, failure: LakeError) -> None:
        """Let the records of a table that cannot take them go to the quarantine from now on."""
        if isinstance(failure, UnsupportedError):
            self.refused[source] = str(failure)

    def _take_in_forms(self, report: TaskReport) -> bool:
        """Note which messages say deletes, and nulls; whether some that do not were taken for ones that do."""
        ledger = self._policy.ledger
        ledger.note_deletes(report.says_deletes)
        ledger.note_nulls(report.nulls.said)
        lone = not ledger.deletes_unsaid_in.isdisjoint(report.lone_tombstones)
        return lone or not ledger.nulls_unsaid_in.isdisjoint(report.nulls.trusted)

    def _take_in_table(self, source: SourceTable, report: TaskTableReport) -> bool:
        rules, again = self._settings.table_rules(source), self._take_in_names(source, report)
        if report.before_images and not report.origins <= self.before_of:
            self.before_of |= report.origins
            again = True
        if source not in self._policy.ledger.tables and (table := self._lake.get(rules)) is not None:
            self._policy.met(source, table)
            again = True
        return again

    def _take_in_names(self, source: SourceTable, report: TaskTableReport) -> bool:
        table = self._lake.opened(self._settings.table_rules(source).path)
        known = table.hudi.schema.names if table is not None else self.columns.get(source, ())
        names = first_spellings(known, report.columns.names)
        if names is not None:
            self.columns[source] = names
        return names is not None
