"""Makes the plan of a batch: the facts that the driver knows before the batch is read, for the tasks."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor

from binlake.decode.changes import SourceTable
from binlake.rows.tasks.plan import BatchPlan, TableState, TableWriter
from binlake.schema.apply.keeper import DdlKeeper, DdlOutcome
from binlake.settings import Settings
from binlake.stream.batches.learning import Lessons
from binlake.stream.batches.policy import Batch, BatchPolicy
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from binlake.tables.services.table_services import TableServices
from hudilake.errors import LakeError


class Planner:
    """Makes the plans of one source of batches.

    Args:
        settings: of the stream.
        lake: the tables.
        registry: the known schemas.
        ddl: the statements; pending ones are carried out before each plan.
        policy: of the batches.
        lessons: the facts that earlier batches revealed.
        services: compacts a table before a statement that changes a type.
        files: writes the file groups that statements restate.
    """

    def __init__(
        self,
        settings: Settings,
        lake: Lake,
        registry: SchemaRegistry,
        ddl: DdlKeeper,
        policy: BatchPolicy,
        lessons: Lessons,
        services: TableServices,
        files: Executor,
    ) -> None:
        self._settings, self._lake, self._registry = settings, lake, registry
        self._ddl, self._policy, self._lessons = ddl, policy, lessons
        self._services, self._files = services, files
        self._kafka = settings.kafka.client_properties()
        self._notes: list[DdlOutcome] = []

    def settle(self) -> None:
        """Carry out the pending statements. Raises LakeError."""
        ledger = self._policy.ledger
        self._ddl.history.hear(ledger.positions)
        held = ledger.paused.keys() | ledger.stopped.keys()
        self._notes += self._ddl.settle(ledger.tables, self._settings.name, self._files, self._services, held)

    def take_notes(self) -> list[DdlOutcome]:
        """The outcomes of statements since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def plan(self, batch: Batch, *, shuffle: bool, append: bool = False) -> BatchPlan:
        """The plan for the tasks of a batch; with ``shuffle``, an instant begins for every table they may write, with
        ``append`` for every append table.

        Raises LakeError.
        """
        settings, starts = self._settings, batch.starts
        for offsets in (starts, batch.end):
            self._ddl.history.hear(offsets)
        self.settle()
        ddl, unsaid = self._ddl.plan(starts), self._policy.ledger.deletes_unsaid_in
        return BatchPlan(
            decoding=dataclasses.replace(
                ddl.decoding(self._registry.options(frozenset(self._lessons.before_of))),
                deletes_unsaid_in=unsaid.intersection(starts) if batch.end else unsaid,  # a dump's topics are files
                nulls_unsaid_in=self._policy.ledger.nulls_unsaid_in,
            ),
            schemas=self._registry.schemas_for(starts),
            tables=settings.tables,
            states=self._states(batch),
            kafka=self._kafka,
            lake_uri=settings.lake.uri,
            lake_options=settings.lake.storage_options(),
            only=batch.only,
            writers=self._writers(starts, all_kinds=shuffle) if shuffle or append else {},
            max_quarantined=settings.quarantine.max_records_per_batch,
            ddl=ddl,
        )

    def abort(self, writers: Mapping[str, TableWriter]) -> None:
        """Abandon the instants of a plan (by table path) that will not be committed."""
        for path, writer in writers.items():
            table = self._lake.opened(path)
            if table is not None:
                with contextlib.suppress(LakeError):
                    table.hudi.abort(writer.context.instant)

    def _states(self, batch: Batch) -> dict[SourceTable, TableState]:
        topics = batch.starts
        concerned = self._policy.tables_of(topics) | self._policy.ledger.behind.keys() | self._lessons.refused.keys()
        concerned |= self._lessons.columns.keys()
        concerned |= self._ddl.lake_tables_of(topics)
        states = {source: self._state(source, batch) for source in concerned}
        return {source: state for source, state in states.items() if state != TableState()}

    def _state(self, source: SourceTable, batch: Batch) -> TableState:
        table = self._lake.opened(self._settings.table_rules(source).path)
        state, lessons = self._policy.table_state(source, table, batch), self._lessons
        if (refused := lessons.refused.get(source)) is not None:
            state = dataclasses.replace(state, refused=refused)
        if (names := lessons.columns.get(source)) is not None:
            known = table.hudi.schema.names if table is not None else ()
            state = dataclasses.replace(state, columns=(*known, *names))
        return state

    def _writers(self, topics: Iterable[str], *, all_kinds: bool) -> dict[str, TableWriter]:
        """Begin an instant for every known table that these topics have fed before and whose file groups tasks can
        compute."""
        writers: dict[str, TableWriter] = {}
        apart = self._policy.ledger.behind.keys() | self._lessons.refused.keys()
        for source in self._policy.tables_of(topics) - apart:
            table = self._lake.opened(self._settings.table_rules(source).path)
            if table is not None and table.tasks_may_write(shuffled=all_kinds):
                try:
                    table.refresh(self._settings.name, begins=True)
                    context = table.begin(table.hudi.schema)
                    with table.undone_on_error(context.instant):
                        writer = table.rows.task_writer(context, table.heights)
                except LakeError:  # the driver tries it again, and the error is then this table's alone
                    continue
                writers[table.rules.path] = writer
        return writers
