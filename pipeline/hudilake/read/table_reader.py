"""Reading a table: a question becomes a plan, a plan becomes Arrow batches.

::

    reader = TableReader.open("s3://lake/shop/orders")
    plan = reader.plan(condition="customer_id = 42 and placed_at >= '2024-01-01'", columns=["id", "total"])
    for batch in reader.batches(plan): ...
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hudilake.errors import LakeError, TransientError
from hudilake.format.timeline.instant import CLEAN
from hudilake.read.counting import CountRequest
from hudilake.read.index import TableIndex, table_index
from hudilake.read.inside.tally import ReadTally
from hudilake.read.plan import BATCH_ROWS, ScanPlan, ScanWarning
from hudilake.read.planner import Planner, plan_of
from hudilake.read.pruning import IndexReads
from hudilake.read.query import Query, Snapshot
from hudilake.read.question import Condition, ResolvedQuery, ask
from hudilake.read.retention import retained_since
from hudilake.read.served import ServedTable
from hudilake.read.slice import readable_schema
from hudilake.read.source import SERVICE, PlanSource, Selection, SliceQuestion
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable

_PLAN_ATTEMPTS = 3


@dataclass(frozen=True)
class _PlanArguments:
    """The arguments of a plan."""

    query: Query
    condition: Condition
    columns: Sequence[str] | None
    count_all: bool
    batch_rows: int
    counting: CountRequest | None

    def question(self, table: HudiTable) -> ResolvedQuery:
        return ask(table, self.query, self.condition, self.columns)


@dataclass
class TableReader:
    """A table opened for reading, as of its last ``refresh``. Not for use from several threads at once.

    Args:
        table: open.
        use_index: whether the metadata table may be used at all.
        reads: the settings of index reads.
        served: the table as a service knows it; None to ask storage alone. What the service does not tell is found out
            from storage; plans then have a warning.
        index_of: opens the metadata table of a state of the table, on the first use of each state.
    """

    table: HudiTable
    use_index: bool = True
    reads: IndexReads = field(default_factory=IndexReads)
    served: ServedTable | None = None
    index_of: Callable[[HudiTable], TableIndex | None] = table_index
    _planner: Planner | None = field(init=False, default=None)

    @classmethod
    def open(
        cls,
        source: str | Storage,
        options: Mapping[str, str] | None = None,
        use_index: bool = True,
        reads: IndexReads | None = None,
        service: PlanSource | None = None,
    ) -> TableReader:
        """Open the table at a path or URI (with the store's options), or at a storage's root.

        ``service``: knows the table, if it answers; without the index it is not asked.

        Raises ConfigError if there is no table, CorruptDataError, StorageError.
        """
        storage = open_storage(source, options) if isinstance(source, str) else source
        served = ServedTable(service, storage) if service is not None and use_index else None
        table = None
        if served is not None:
            with contextlib.suppress(LakeError):  # the first plan asks again, and warns
                table = served.newer()
        return cls(table or HudiTable.open(storage), use_index, reads or IndexReads(), served)

    @property
    def schema(self) -> pa.Schema:
        """The latest columns, the meta fields first."""
        return readable_schema(self.table, None)

    def refresh(self) -> bool:
        """Refresh the table. True if other writers have committed since."""
        if self.served is not None:
            with contextlib.suppress(LakeError):
                return self._replace(self.served.newer())
        return self._refresh_from_storage()

    @property
    def retained_since(self) -> str:
        """The time as of which, and later, all files exist; "" for a table that was never cleaned. Raises
        CorruptDataError, StorageError."""
        return retained_since(self.table.timeline, self.table.storage)

    def plan(
        self,
        query: Query | None = None,
        condition: Condition = None,
        columns: Sequence[str] | None = None,
        count_all: bool = False,
        batch_rows: int = BATCH_ROWS,
        counting: CountRequest | None = None,
    ) -> ScanPlan:
        """Find the file slices to read. Reads no data file.

        Args:
            query: the rows to read; a snapshot of the latest rows if None.
            condition: the rows to return.
            columns: the returned columns, which may include meta fields; None for all columns and meta fields.
            count_all: also count the slices of skipped partitions (their files are looked up for it).
            batch_rows: the largest number of rows of one batch.
            counting: what is needed of rows that are only counted; ``ScanPlan.counted`` has such rows as far as the
                metadata table knows their number. None to read all rows.

        Raises UnsupportedError for columns the table lacks, literals that cannot be compared with their column, table
        features that are not supported, and moments whose files may have been cleaned; ConfigError for a condition that
        cannot be parsed; CorruptDataError, StorageError.
        """
        wanted = _PlanArguments(query or Snapshot(), condition, columns, count_all, batch_rows, counting)
        if self.served is None:
            return self._planned(wanted)
        try:
            return self._planned_by(self.served, wanted)
        except LakeError as error:
            self._refresh_from_storage()
            plan = self._planned(wanted)
            return replace(plan, warnings=(ScanWarning(SERVICE, f"not used: {error}"), *plan.warnings))

    def _planned(self, wanted: _PlanArguments) -> ScanPlan:
        """The plan from storage."""
        for _ in range(_PLAN_ATTEMPTS):
            question = wanted.question(self.table)
            plan = self._current_planner().plan(question, wanted.count_all, wanted.batch_rows, wanted.counting)
            if not self._cleaned_meanwhile():
                return plan
        raise _moving("the table was cleaned during each attempt to plan the read", self.table)

    def _planned_by(self, served: ServedTable, wanted: _PlanArguments) -> ScanPlan:
        """The plan from a service."""
        for _ in range(_PLAN_ATTEMPTS):
            question = wanted.question(self.table)
            answer = served.select(self.table, question, wanted.count_all, wanted.counting)
            if isinstance(answer, Selection):
                return plan_of(self.table, question, answer, wanted.batch_rows)
            self._replace(answer)
        raise _moving("the table changed during each attempt to plan the read", self.table)

    def select(self, asked: SliceQuestion) -> Selection | None:
        """The file slices for a question of another reader, from storage; None if the table was cleaned meanwhile: ask
        again, about its newer state. Errors as ``plan``."""
        question = ask(self.table, asked.query, asked.condition, ())
        selection = self._current_planner().select(question, asked.count_all, asked.counting)
        return None if self._cleaned_meanwhile() else selection

    def batches(self, plan: ScanPlan, tally: ReadTally | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a plan, slice after slice; no more than one slice is in memory. ``tally`` counts what is read of
        base files. Errors as ``SliceScan.read``."""
        for file_slice in plan.slices:
            yield from plan.scan.read(file_slice, tally)

    def read(
        self, query: Query | None = None, condition: Condition = None, columns: Sequence[str] | None = None
    ) -> pa.RecordBatchReader:
        """Plan and read at once. Arguments and errors as ``plan`` and ``batches``, and UnsupportedError for a condition
        with unsupported parts."""
        plan = self.plan(query, condition, columns)
        plan.require_exact()
        return pa.RecordBatchReader.from_batches(plan.scan.schema, self.batches(plan))

    def count(self, query: Query | None = None, condition: Condition = None) -> int:
        """The number of rows that pass. Of files whose rows all pass, the metadata table tells it: no data file is
        opened for them. Arguments and errors as ``read``."""
        plan = self.plan(query, condition, self.schema.names[:1], counting=CountRequest(()))
        plan.require_exact()
        read: int = sum(batch.num_rows for batch in self.batches(plan))
        return read + sum(one.rows for one in plan.counted)

    def _replace(self, newer: HudiTable | None) -> bool:
        """Go on with a newer state of the table, if there is one."""
        if newer is not None:
            self.table, self._planner = newer, None
        return newer is not None

    def _refresh_from_storage(self) -> bool:
        if self.served is not None and self.served.known is not None:
            self.served.known = None
            return self._replace(HudiTable.open(self.table.storage))
        changed = self.table.refresh()
        if changed:
            self._planner = None
        return changed

    def _current_planner(self) -> Planner:
        if self._planner is None:
            self._planner = Planner(self.table, self.index_of(self.table) if self.use_index else None, self.reads)
        return self._planner

    def _cleaned_meanwhile(self) -> bool:
        """Whether a clean has begun since the timeline was read: then a file may have been deleted before the listing,
        and its newer replacement is not visible in the older timeline."""
        before = self._cleans()
        if not self._refresh_from_storage():
            return False
        return not self._cleans() <= before

    def _cleans(self) -> set[str]:
        timeline = self.table.timeline
        begun = [instant for instant in timeline.pending() if instant.action == CLEAN]
        return {instant.requested_time for instant in [*begun, *timeline.completed_actions({CLEAN})]}


def _moving(what: str, table: HudiTable) -> TransientError:
    return TransientError(
        what,
        do_next="try again; raise the cleaner's retention if it happens often",
        table=table.config.name,
    )
