"""A revert of several tables: planned as a whole, carried out table by table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from binlake.decode.changes import SourceTable
from binlake.position.lease import StreamLease
from binlake.proof.history.commits import CommitLog, revert_stream
from binlake.proof.history.lake_images import changes_in_lake
from binlake.proof.history.opened import change_reader
from binlake.proof.history.pasts import with_pasts
from binlake.proof.history.records import Records
from binlake.proof.history.revert import Order, TablePlan, plan_table, revert_table
from binlake.proof.history.selection import ChangeSelection
from binlake.proof.history.transaction import Changes, OpenTable, changes_in_kafka
from binlake.settings import Settings
from binlake.tables.catalog import CatalogTable
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.other_rows import refuse_lacking
from hudilake.errors import BadInputError
from hudilake.format.definition.kind_support import TableOperation
from hudilake.locking.ownership import Locking
from hudilake.storage import open_storage
from hudilake.wording import counted


class BeforeImages(StrEnum):
    """Where before images come from."""

    KAFKA = "kafka"
    LAKE = "lake"


@dataclass
class RevertPlan:
    """A planned revert.

    Args:
        order: what is reverted, and how.
        changes: the selected changes.
        tables: a plan for each table that has some, with its place.
    """

    order: Order
    changes: Changes
    tables: list[tuple[CatalogTable, TablePlan]] = field(default_factory=list)

    @property
    def conflicts(self) -> int:
        """How many rows are left as they are, wholly or in part."""
        return sum(len(plan.conflicts) for _, plan in self.tables)

    @property
    def written(self) -> int:
        """How many rows change."""
        return sum(len(plan.written) for _, plan in self.tables)


@dataclass(frozen=True)
class Means:
    """The means of a plan.

    Args:
        before: where before images come from.
        records: the topics.
        most: the largest number of records to read.
        by_column: as in ``undo``.
    """

    before: BeforeImages
    records: Records
    most: int
    by_column: bool = False


def plan_revert(
    settings: Settings, places: Sequence[CatalogTable], selection: ChangeSelection, means: Means
) -> RevertPlan:
    """Plan a revert. Changes nothing.

    Args:
        settings: of the stream; it may be running.
        places: the tables; changes of other tables stay.
        selection: not empty.
        means: where the changes are found.

    Errors as ``changes_in_kafka`` or ``changes_in_lake``, UnsupportedError for a table of a store (``other_rows``),
    CorruptDataError, StorageError.
    """
    tables: dict[SourceTable, OpenTable] = {}
    for place in places:
        refuse_lacking(place.rules, TableOperation.REVERT, place.name)
        table = LakeTable.look(place.storage, place.rules)
        tables[place.source] = OpenTable(table, CommitLog.of(table.hudi, settings.name))
    if means.before is BeforeImages.LAKE:
        changes = changes_in_lake(tables, selection)
    else:
        lake = Lake(open_storage(settings.lake.uri, settings.lake.storage_options()))
        reader = change_reader(settings, lake, {source: opened.table for source, opened in tables.items()})
        changes = changes_in_kafka(means.records, reader, tables, settings.name, selection, means.most)
        changes.rows = with_pasts(changes.rows, means.records, reader, tables, selection, means.most)
    order = Order(str(selection), means.before.value, tuple(sorted(changes.transactions)), means.by_column)
    plan = RevertPlan(order, changes)
    for place in places:
        rows, opened = changes.of(place.source), tables[place.source]
        if rows:
            plan.tables.append((place, plan_table(opened.table, opened.log, rows, order)))
    return plan


def carry_out(
    settings: Settings, plan: RevertPlan, locking: Locking | None, *, leave_conflicts: bool
) -> Iterator[tuple[CatalogTable, str | None]]:
    """Carry out a plan; yields each table with its commit, or None if nothing was left to do there.

    Args:
        settings: of the stream.
        plan: as it was shown.
        locking: how the tables are shared with the stream; None if no other process writes to them.
        leave_conflicts: whether rows with conflicts may be left; by default nothing is written if there are any.

    Raises BadInputError for conflicts, LostOwnershipError if another revert is running; errors as ``revert_table``. The
    tables before the failed one are reverted then, and the same call finishes the others.
    """
    if plan.conflicts and not leave_conflicts:
        raise BadInputError(
            f"{counted(plan.conflicts, 'row', 'was', 'were')} changed later or cannot be set back: nothing was written",
            do_next="look at them with --dry-run; --by-column sets back columns that were not changed later; "
            "--leave-conflicts reverts the other rows",
        )
    state = open_storage(settings.state_uri, settings.state_options())
    with StreamLease(state.sub("revert"), revert_stream(settings.name)):
        for place, table_plan in plan.tables:
            table = LakeTable.open(place.storage, place.rules, locking)
            rows = plan.changes.of(place.source)
            yield place, revert_table(table, rows, plan.order, settings.name, table_plan)
