"""The decisions in which a batch of the stream and a portion of a dump differ (see ``sequence``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from binlake.decode.changes import SourceTable
from binlake.position.commit_record import CommitNotes
from binlake.position.ledger import Ledger
from binlake.rows.tasks.plan import BatchPlan, TableState
from binlake.source.binlog.topic import is_binlog
from binlake.source.offsets import NO_OFFSETS, Offsets, Ranges
from binlake.stream.batches.table_inputs import Outcome
from binlake.tables.lake_table import LakeTable
from binlake.tables.table_commit import TableInput
from hudilake.errors import LakeError


@dataclass(frozen=True)
class Batch:
    """Records that are applied together.

    Args:
        number: the batch number in progress events.
        ranges: the offset ranges of the records.
        trigger_ms: the time of the trigger (ms since the epoch).
        end: the stream's positions after the batch; they also include partitions for which there was nothing to read.
            Empty for a batch that does not move the stream: a batch of one table, or of a dump.
        only: if set, records of all other tables are ignored.
    """

    number: int
    ranges: Ranges
    trigger_ms: int
    end: Offsets = NO_OFFSETS
    only: SourceTable | None = None

    @property
    def records(self) -> int:
        """About how many records the batch has, if its offsets count records; those of a binlog do not, and 0 stands
        for a number that one process can hold."""
        return sum(len(one) for one in self.ranges if not is_binlog(one.topic))

    @cached_property
    def starts(self) -> Offsets:
        """The first offset of each partition."""
        return self.ranges.starts()


class BatchPolicy(Protocol):
    """Decides for one source of batches, in the order of the sequence's calls. Any method may raise LakeError.

    ``ledger`` holds the known tables and the newest binlog positions. The ledger of a replay is never saved.
    """

    ledger: Ledger
    #: Whether rows of a table may wait for a later batch: they are noted as behind.
    holds: bool

    def tables_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """The known tables whose records come from these topics."""
        ...

    def table_state(self, source: SourceTable, table: LakeTable | None, batch: Batch) -> TableState:
        """The table's state for the tasks; ``table`` is None if it is not open. The planner adds why it is refused."""
        ...

    def met(self, source: SourceTable, table: LakeTable) -> None:
        """Note a table that exists in the lake and is missing in the ledger."""
        ...

    def executed(self, plan: BatchPlan, outcome: Outcome) -> None:
        """Note the content of the batch, before any of it is written."""
        ...

    def quarantine_notes(self, plan: BatchPlan) -> CommitNotes:
        """The optional entries for the commit record of the batch's quarantined records."""
        ...

    def commit_input(self, table_input: TableInput) -> TableInput | None:
        """The input with the entries for its commit record; None if no commit shall be made.

        Called in the table's thread.
        """
        ...

    def commits_without_rows(self, source: SourceTable) -> bool:
        """Whether a table gets a commit although none of its rows is left."""
        ...

    def committed(self, source: SourceTable, table: LakeTable) -> None:
        """Note what a table has applied now. Called in the table's thread."""
        ...

    def derives(self, wide: SourceTable) -> bool:
        """Whether a wide table is derived now, that is, not held back."""
        ...

    def derived(self, wide: SourceTable, path: str) -> None:
        """Note a wide table that is up to date with its table of cells."""
        ...

    def cannot_go_on(self, source: SourceTable, error: LakeError, waiting: Offsets = NO_OFFSETS) -> None:
        """Note a lake table that got no commit for another reason than its rows: a wide table that could not be
        derived, or one whose name at the source is not determined. ``waiting``: the first records that it may need."""
        ...

    def advance(self, batch: Batch, outcome: Outcome, failed: Mapping[SourceTable, LakeError]) -> None:
        """Advance the source of the batch, after every table has committed or is in ``failed``. Tables with rows that
        wait (``outcome.report.held``) have committed the records before those rows."""
        ...
