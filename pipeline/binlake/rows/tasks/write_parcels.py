"""Writes parcels to file groups in tasks, for the tables that the plan has opened for tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from binlake.rows.merging.write import write_merged
from binlake.rows.tasks.plan import BatchPlan, Item, TableFailure, TableWriter, TaskReport, WrittenFile
from binlake.rows.upsert.engines.facts import FACT, FEED
from binlake.rows.upsert.parcel import APPEND_BUCKET, KEYLESS_BUCKET, Parcel, unpack
from binlake.rows.upsert.route import GROUP, KEY, ORDER_COLUMNS
from hudilake.clock import monotonic_s
from hudilake.commit.intent import GroupIntent
from hudilake.errors import LakeError
from hudilake.format.definition.placement import LOOKED_UP_BUCKET
from hudilake.storage import open_storage

#: Columns of parcels that are no columns of tables.
_NOT_STORED = (KEY, GROUP, FEED, FACT, *ORDER_COLUMNS)


def write_parcels(plan: BatchPlan, items: Iterable[Item]) -> Iterator[Item]:
    """Merge and write the parcels of the tables that this plan opened; pass all other items on to the driver."""
    groups: dict[tuple[str, str, int], list[Parcel]] = {}
    report = TaskReport()
    for item in items:
        if isinstance(item, Parcel) and _writable(plan.writers, item):
            groups.setdefault((item.table, item.partition_path, item.bucket), []).append(item)
        else:
            yield item
    lake = open_storage(plan.lake_uri, plan.lake_options)
    started = monotonic_s()
    for (table, path, bucket), parcels in groups.items():
        writer = plan.writers[table]
        name = writer.names.of(path, bucket)
        try:
            rows = unpack(parcels)
            if not writer.knows_groups(rows):
                yield from parcels
                continue
            merged = writer.merger.merge((path, bucket), name, rows)
            results = write_merged(lake.sub(table), writer.groups, merged)
            yield from WrittenFile.of(table, GroupIntent(path, name), merged, results)
        except LakeError as error:
            yield TableFailure(table, error)
    report.spent("write", started)
    yield report


def _writable(writers: Mapping[str, TableWriter], parcel: Parcel) -> bool:
    """Whether a task may write this parcel: its table has an open instant, its file group is known, and no column is
    new."""
    writer = writers.get(parcel.table)
    if writer is None or parcel.bucket in (KEYLESS_BUCKET, LOOKED_UP_BUCKET, APPEND_BUCKET):
        return False
    return holds_columns(writer, parcel)


def holds_columns(writer: TableWriter, parcel: Parcel) -> bool:
    """Whether the files of the table's open instant have all columns of a parcel, in the same types."""
    known = {f.name: f.type for f in writer.context.arrow_schema}
    incoming = pa.ipc.open_stream(parcel.blob).schema
    return all(known.get(f.name) == f.type for f in incoming if f.name not in _NOT_STORED)
