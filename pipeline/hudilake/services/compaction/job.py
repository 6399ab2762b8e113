"""A plan with all data for its execution. It holds no resource of the table, so it may run in any process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from hudilake.commit.compaction_plan import CompactionOperation, CompactionPlan, read_plan
from hudilake.errors import UnsupportedError
from hudilake.format.definition.schema import avro_schema
from hudilake.format.layout.order import Order, within
from hudilake.format.timeline.instant import Instant, State
from hudilake.services.compaction.config import CompactionConfig
from hudilake.services.compaction.task import (
    CompactedFile,
    CompactionContext,
    CompletedInstants,
    compact_file_group,
)
from hudilake.storage.base import AlreadyExistsError, Storage
from hudilake.table.table import HudiTable

_log = logging.getLogger(__name__)

#: Runs a function over operations, one task each, and returns the results: a thread pool's or Spark's map.
MapTasks: TypeAlias = Callable[
    [Callable[[CompactionOperation], CompactedFile], Sequence[CompactionOperation]], list[CompactedFile]
]


@dataclass(frozen=True)
class CompactionJob:
    """All data for the execution of a plan, independent of the open table; it can be pickled."""

    instant: Instant
    storage: Storage
    context: CompactionContext
    plan: CompactionPlan


def prepare(table: HudiTable, instant: Instant, config: CompactionConfig) -> CompactionJob:
    """Put a scheduled compaction in flight.

    Args:
        table: as of its last refresh, which must not be older than the schedule.
        instant: from ``schedule``.
        config: the settings of base files.

    Raises CorruptDataError for a plan that cannot be read, UnsupportedError for tombstones of a table not ordered
    by a long, StorageError.
    """
    columns = table.schema_as_of(instant.requested_time)
    if not table.config.kind.appends:
        _check_tombstones(columns, table.config.ordering_field, config)
    _tell_lost_columns(table, config.form.order, columns)
    plan = read_plan(table.storage, instant)
    inflight = instant.in_state(State.INFLIGHT)
    with suppress(AlreadyExistsError):
        table.storage.create(inflight.path, b"")
    table.timeline.record(inflight)
    index = table.metadata_table
    context = CompactionContext(
        instant=instant.requested_time,
        avro_schema_json=avro_schema(columns, table.config.name, with_meta=True),
        arrow_schema=columns,
        ordering_field=table.config.ordering_field,
        completed=CompletedInstants.of(table.timeline),
        config=config,
        indexed_columns=(index.columns or None) if index is not None else None,
        restated_hours=table.config.restated_hours(config.tombstone_retention_hours),
        kind=table.config.kind,
    )
    return CompactionJob(inflight, table.storage, context, plan)


def _tell_lost_columns(table: HudiTable, order: Order | None, columns: pa.Schema) -> None:
    """Say which columns of the order the table lacks: its base files are in the order of the others."""
    known = within(order, columns)
    lost = sorted(set(order.columns if order is not None else ()) - set(known.columns if known is not None else ()))
    if lost:
        names, uri = ", ".join(lost), table.storage.uri
        fields = {"event": "order_columns_lost", "table": uri, "columns": names}
        _log.warning(
            "%s: compaction.order_by leaves out columns that cannot order its rows: %s", uri, names, extra=fields
        )


def _check_tombstones(columns: pa.Schema, ordering_field: str, config: CompactionConfig) -> None:
    """Restated deletes have ordering values of type long; Hudi Spark fails on other types."""
    kind = columns.field(ordering_field).type if ordering_field in columns.names else None
    if config.tombstone_retention_hours and kind != pa.int64():
        raise UnsupportedError(
            f"tombstones need an ordering column of type long, and {ordering_field or 'no column'} is {kind}",
            do_next="set tombstone_retention_hours to 0 for this table",
        )


def execute(job: CompactionJob, map_tasks: MapTasks) -> list[CompactedFile]:
    """Write the base files of a plan, one task each. Errors as ``compact_file_group``."""
    return map_tasks(partial(compact_file_group, job.storage, job.context), job.plan.operations)
