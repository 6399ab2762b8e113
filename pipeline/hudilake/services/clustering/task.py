"""A task's part of a clustering: the rows of some file groups of one partition are written anew, in the wanted order.

Each slice is merged as a compaction merges it: a row keeps its commit time and its sequence number, and the deletes in
log files end. The merged rows go to temporary files on local disk; with their sort keys in memory they are put in order
and written as base files of about the same size, which are new file groups. Names and bytes depend on the unit and the
clustering alone, so a retried or speculative task overwrites its own files with the same bytes.

In memory are forty bytes for each row of the unit, and for each thread the decoded log files of one slice, or a row
group of a source or of a new file.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hudilake.format.definition.schema import avro_schema
from hudilake.format.files.file_group_write import WriteResult
from hudilake.format.layout.columns import within
from hudilake.format.layout.order import Order
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.context import LayOutContext
from hudilake.services.clustering.output import write_files
from hudilake.services.clustering.plan import Unit
from hudilake.services.clustering.spill import spilled
from hudilake.services.compaction.task import CompactionContext, CompletedInstants
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class LaidOut:
    """The files that were written for a unit; none if no row of it lives."""

    unit: Unit
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
        restates_deletes=False,
        appends=kind.appends,
    )
    return LayOutContext(merging, table.config.name, within(order, write.arrow_schema), config, kind.keeps_keys)


def lay_out(storage: Storage, context: LayOutContext, unit: Unit) -> LaidOut:
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
        return LaidOut(unit, tuple(write_files(storage, context, unit, rows, directory)))
