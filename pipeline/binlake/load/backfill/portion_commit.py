"""The commit of a portion: the table's groups, the open instant, the write, the record."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from binlake.load.backfill.groups import Assignment, assign
from binlake.load.backfill.pieces import InputPortion, Place
from binlake.load.backfill.portion_write import PortionPlan, PortionResult
from binlake.load.backfill.read_rows import RowCounts
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.row_plan import RowPlan, value_columns
from binlake.load.backfill.rule import BackfillRule
from binlake.load.backfill.workers import PortionWorkers
from binlake.position.commit_record import CommitNotes, CommitRecord
from binlake.position.recorded import RecordedBackfill
from binlake.rows.merging.row_states import SliceRowStates
from binlake.rows.upsert.route import Counts
from binlake.stream.monitoring.progress import ProgressEvent, TableProgress
from binlake.tables.lake_table import LakeTable
from hudilake.clock import monotonic_s
from hudilake.commit.commit import OvertakenError
from hudilake.format.files.file_group_write import WriteContext

#: How often a portion is written beside other writers. After that the table's lock is held while it is written.
_ATTEMPTS = 2


@dataclass(frozen=True)
class PortionCommit:
    """A portion that was committed, or only counted."""

    group: str
    counts: RowCounts
    bytes_written: int
    event: ProgressEvent


@dataclass
class PortionCommitter:
    """Commits the portions of one backfill.

    Args:
        table: open.
        name: of the table, for people.
        stream: the stream name in the commits.
        request: what to write.
        rows: how rows become rows of the lake.
        place: of the input's files.
        workers: who writes.
    """

    table: LakeTable
    name: str
    stream: str
    request: BackfillRequest
    rows: RowPlan
    place: Place
    workers: PortionWorkers
    _started: float = field(default=0.0)

    def count(self, portion: InputPortion) -> PortionCommit:
        """What a commit would write; changes nothing."""
        self._started = monotonic_s()
        assignment = self._assignment()
        result = self.workers.run(self._plan(assignment, None, self._schema(assignment)), portion)
        return self._portion_commit(portion, assignment, result, None)

    def commit(self, portion: InputPortion, recorded: RecordedBackfill) -> PortionCommit:
        """Commit a portion. If another writer has overtaken the instant, it is written again.

        Raises as ``PortionWorkers.run`` and ``LakeTable.commit``.
        """
        self._started = monotonic_s()
        for _ in range(_ATTEMPTS):
            self.table.refresh(self.stream)
            try:
                return self._attempt(portion, recorded)
            except OvertakenError:
                continue
        with self.table.hudi.exclusively():
            self.table.refresh(self.stream)
            return self._attempt(portion, recorded)

    def _attempt(self, portion: InputPortion, recorded: RecordedBackfill) -> PortionCommit:
        assignment, table = self._settled(), self.table
        schema = self._schema(assignment)
        context = table.begin(schema)
        with table.undone_on_error(context.instant):
            result = self.workers.run(self._plan(assignment, context, schema), portion)
            notes = CommitNotes(backfill=replace(recorded, group=assignment.group.name))
            record = CommitRecord(
                self.stream, portion.number, _counts(result.counts), table.source, table.origin, notes=notes
            )
            table.commit(context, result.written, record)
        return self._portion_commit(portion, assignment, result, context.instant)

    def _assignment(self) -> Assignment:
        return assign(self.table.merging, value_columns(self.table), self.rows.written, self.request.group)

    def _settled(self) -> Assignment:
        """The columns' group; the table's properties name it from now on. Writers look at them before each commit."""
        assignment = self._assignment()
        self.table.become(assignment.merging)
        return assignment

    def _schema(self, found: Assignment) -> pa.Schema:
        fields = [column.field for column in self.rows.columns]
        hidden = [pa.field(name, pa.int64()) for name in found.merging.hidden_fields]
        return self.table.schema_with(pa.schema([*fields, *hidden]))

    def _plan(self, found: Assignment, context: WriteContext | None, schema: pa.Schema) -> PortionPlan:
        request, table = self.request, self.table
        rule = BackfillRule(found.merging, found.group, self.rows.written, found.whole, request.order, request.insert)
        return PortionPlan(
            self.place,
            self.rows,
            rule,
            table.hudi.storage,
            self._states(found, schema),
            table.rows.group_writer(context) if context is not None else None,
            table.names,
        )

    def _states(self, found: Assignment, schema: pa.Schema) -> SliceRowStates:
        table = self.table.hudi
        slices = {piece.file_id: piece for piece in table.file_slices()}
        return SliceRowStates(table.storage, table.timeline, schema, found.merging, slices)

    def _portion_commit(
        self, portion: InputPortion, found: Assignment, result: PortionResult, instant: str | None
    ) -> PortionCommit:
        counts, size = _counts(result.counts), sum(one.size_bytes for one in result.written)
        took = (monotonic_s() - self._started) * 1000
        progress = TableProgress(
            self.name,
            counts.read,
            counts.applied,
            counts.superseded,
            counts.filtered,
            commit_instant=instant,
            commit_latency_ms=took,
            bytes_written=size,
        )
        event = ProgressEvent(portion.number, took, tables=(progress,))
        return PortionCommit(found.group.name, result.counts, size, event)


def _counts(rows: RowCounts) -> Counts:
    """The rows by the outcomes that a commit record knows."""
    counts = Counts(
        rows.read,
        superseded=rows.repeated + rows.older,
        filtered=rows.filtered + rows.without_key + rows.missing,
    )
    counts.settle()
    return counts
