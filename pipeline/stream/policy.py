"""The questions that a batch of the stream and a portion of a dump answer differently (see ``sequence``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from pipeline.decode.changes import SourceTable
from pipeline.errors import BinlakeError
from pipeline.lake.lake_table import LakeTable
from pipeline.lake.table_commit import TableInput
from pipeline.position.commit_record import CommitNotes
from pipeline.position.ledger import Ledger
from pipeline.source.offsets import NO_OFFSETS, Offsets, Ranges
from pipeline.stream.table_inputs import Outcome
from pipeline.tasks.plan import BatchPlan, TableState


@dataclass(frozen=True)
class Batch:
    """Records that are applied together.

    Args:
        number: as progress names it.
        ranges: the records.
        trigger_ms: when it was asked for (epoch, milliseconds).
        end: where the stream stands afterwards; more than the ranges cover where there was nothing to cover. Empty for
            a batch that does not move the stream: of one table, or of a dump.
        only: when set, records of all other tables are left alone.
    """

    number: int
    ranges: Ranges
    trigger_ms: int
    end: Offsets = NO_OFFSETS
    only: SourceTable | None = None

    @cached_property
    def starts(self) -> Offsets:
        """Where each partition begins."""
        return self.ranges.starts()


class BatchPolicy(Protocol):
    """Answers for one source of batches, in the order in which the sequence asks. Any answer may raise BinlakeError.

    ``ledger`` holds the tables that were met and the heights of the binlog. A replay's is never saved.
    """

    ledger: Ledger

    def tables_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """The tables that are known to have records in these topics."""
        ...

    def table_state(self, source: SourceTable, table: LakeTable | None, batch: Batch) -> TableState:
        """What tasks must know of a table, which is None where it is not open. The planner adds why it is refused."""
        ...

    def met(self, source: SourceTable, table: LakeTable) -> None:
        """Note a table that was in the lake before the ledger knew it."""
        ...

    def executed(self, plan: BatchPlan, outcome: Outcome) -> None:
        """Note what the batch holds, before anything of it is written."""
        ...

    def quarantine_notes(self, plan: BatchPlan) -> CommitNotes:
        """What else the commit that holds the batch's quarantined records records."""
        ...

    def commit_input(self, table_input: TableInput) -> TableInput | None:
        """The input with all that its commit says; None where the table is to get none. Asked in the table's thread."""
        ...

    def commits_without_rows(self, source: SourceTable) -> bool:
        """Whether a table gets a commit though none of its rows is left."""
        ...

    def committed(self, source: SourceTable, table: LakeTable) -> None:
        """Note what a table has applied now. Asked in the table's thread."""
        ...

    def advance(self, batch: Batch, outcome: Outcome, failed: Mapping[SourceTable, BinlakeError]) -> None:
        """Move on, now that every table has committed or is in ``failed``."""
        ...
