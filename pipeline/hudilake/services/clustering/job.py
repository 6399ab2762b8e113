"""A clustering on its way from its plan to its files.

A plan is executed once: the instant becomes inflight, and its process completes it or rolls it back. The table's next
writer rolls back the one of a dead process, files, entries and plan; the next clustering plans anew. (A second attempt
under the same instant would be wrong for an external index: it holds entries of the first attempt by that instant, also
of file groups that give way in the second.)

A task writes the rows of some file groups of one partition anew, in the wanted order. Each slice is merged as a
compaction merges it: a row keeps its commit time and its sequence number, and the deletes in log files end. The merged
rows go to temporary files on local disk; with their sort keys in memory they are put in order and written as base files
of about the same size, which are new file groups. Names and bytes depend on the unit and the clustering alone, so a
retried or speculative task overwrites its own files with the same bytes.

In memory are forty bytes for each row of the unit, and for each thread the decoded log files of one slice, or a row
group of a source or of a new file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hudilake.commit.announced import announcement
from hudilake.commit.planned import planned_intent
from hudilake.errors import LostOwnershipError
from hudilake.format.definition.schema import avro_schema
from hudilake.format.files.file_group_write import WriteResult
from hudilake.format.files.view import FileSlice
from hudilake.format.layout.order import Order, within
from hudilake.format.timeline.clustering_plan import read_clustering_plan
from hudilake.format.timeline.instant import CLUSTERING, Instant, State
from hudilake.format.timeline.timeline import FileGroupId
from hudilake.services.clustering.config import ClusteringConfig, LayOutContext
from hudilake.services.clustering.output import write_files
from hudilake.services.clustering.plan import ClusteringUnit, holds, order_of, units_of
from hudilake.services.clustering.scheduling import busy
from hudilake.services.clustering.sources import with_bounds
from hudilake.services.clustering.spill import spilled
from hudilake.services.compaction.task import CompactionContext, CompletedInstants
from hudilake.services.planned import MapTasks
from hudilake.storage.base import AlreadyExistsError, Storage
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class UnitResult:
    """The files that were written for a unit; none if no row of it lives."""

    unit: ClusteringUnit
    results: tuple[WriteResult, ...]


def context_of(table: HudiTable, instant: str, config: ClusteringConfig, order: Order | None) -> LayOutContext:
    """The context of a clustering's tasks.

    Args:
        table: as of its last refresh, which is not older than the plan.
        instant: the clustering's requested time.
        config: how files are written.
        order: of the plan; None to keep the order of the rows. Columns that the table does not have are left out.
    """
    write, kind = table.write_context(instant), table.config.kind
    merging = CompactionContext(
        instant=instant,
        avro_schema_json=avro_schema(write.arrow_schema, table.config.name, with_meta=True),
        arrow_schema=write.arrow_schema,
        ordering_field=table.config.ordering_field,
        completed=CompletedInstants.of(table.timeline),
        config=config.files,
        indexed_columns=write.indexed_columns,
        restated_hours=0,
        kind=kind,
    )
    return LayOutContext(merging, table.config.name, within(order, write.arrow_schema), config, kind.keeps_keys)


def lay_out(storage: Storage, context: LayOutContext, unit: ClusteringUnit) -> UnitResult:
    """Write the rows of a unit to new file groups.

    Args:
        storage: the table's root.
        context: of the clustering.
        unit: what to lay out.

    Raises CorruptDataError, UnsupportedError for log blocks that binlake cannot merge, StorageNotFoundError if the plan
    names deleted files, StorageError.
    """
    with tempfile.TemporaryDirectory(prefix="binlake-clustering-") as name:
        directory = Path(name)
        rows = spilled(storage, context, unit, directory)
        return UnitResult(unit, tuple(write_files(storage, context, unit, rows, directory)))


@dataclass(frozen=True)
class ClusteringJob:
    """All data for the execution of a plan, independent of the open table; it can be pickled.

    Args:
        instant: inflight.
        storage: the table's root.
        context: of its tasks.
        units: what is laid out: those of the plan that held when the execution began.
        planned: how many units the plan has.
    """

    instant: Instant
    storage: Storage
    context: LayOutContext
    units: tuple[ClusteringUnit, ...]
    planned: int

    @property
    def time(self) -> str:
        """The requested time."""
        return self.instant.requested_time


def waiting(table: HudiTable, *, of_hudi: bool) -> list[Instant]:
    """The plans that nobody executes, oldest first, as of the table's last refresh. Raises StorageError.

    ``of_hudi``: whether those of Hudi are among them.
    """
    return [
        one.instant
        for one in table.state.planned()
        if one.instant.state is State.REQUESTED
        and one.groups is not None
        and not one.takes_in
        and (one.ours or of_hudi)
        and table.ownership.is_abandoned(one.instant.requested_time)
    ]


def prepare(table: HudiTable, requested: Instant, config: ClusteringConfig) -> ClusteringJob | None:
    """Put a planned clustering in flight; None if nothing of the plan holds any more, and it was rolled back, or if
    another process was first.

    Args:
        table: open; it is refreshed under its lock.
        requested: from ``schedule``, or one of ``waiting``.
        config: how files are written.

    Raises UnsupportedError for a plan of Hudi that binlake does not execute, LockHeldError, CorruptDataError,
    StorageError.
    """
    time = requested.requested_time
    with table.exclusively():
        table.refresh()
        current = table.timeline.find(time)
        if current is None or current.action != CLUSTERING or current.state is not State.REQUESTED:
            table.ownership.end(time)
            return None
        plan = read_clustering_plan(table.storage, requested)
        units = units_of(plan)
        sound = holding(table, units, time)
        table.ownership.take_over(time)
        if not sound:
            table.abort(time)
            return None
        inflight = requested.in_state(State.INFLIGHT)
        _create(table, inflight, sound)
        table.timeline.record(inflight)
        table.rebase(time, whole=False)
        context = context_of(table, time, config, order_of(plan))
        return ClusteringJob(inflight, table.storage, context, tuple(sound), len(units))


def _create(table: HudiTable, inflight: Instant, units: Sequence[ClusteringUnit]) -> None:
    """Create the inflight file. It is empty as Hudi's; over a plan of Hudi it says that binlake executes it, so that it
    is rolled back if this process dies."""
    ours = any(one.ours for one in table.state.planned() if one.instant.requested_time == inflight.requested_time)
    body = b"" if ours else announcement(planned_intent(group for unit in units for group in unit.groups))
    try:
        table.storage.create(inflight.path, body)
    except AlreadyExistsError as error:
        raise LostOwnershipError(
            "another process executes this clustering",
            do_next="none needed: let it end",
            instant=inflight.requested_time,
            table=table.config.name,
        ) from error


def execute(job: ClusteringJob, map_tasks: MapTasks) -> list[UnitResult]:
    """Sample the values where the order needs it, then write the files, one task a unit. Errors as ``lay_out``."""
    units = with_bounds(job.storage, job.context, job.units, map_tasks)
    return map_tasks(partial(lay_out, job.storage, job.context), units)


def holding(table: HudiTable, units: Sequence[ClusteringUnit], time: str) -> list[ClusteringUnit]:
    """The units of a clustering whose file groups are as they were planned, as of the table's last refresh: no commit
    has written to them, nobody has replaced them, and no other plan has them. Raises CorruptDataError, StorageError.

    Args:
        table: open.
        units: of the plan.
        time: the clustering's requested time.
    """
    paths = {unit.partition_path for unit in units}
    slices: dict[FileGroupId, FileSlice] = {
        (piece.partition_path, piece.file_id): piece for piece in table.file_slices(paths)
    }
    taken = busy(table, besides=time)
    return [unit for unit in units if holds(unit, slices) and taken.isdisjoint(unit.groups)]
