"""Writes parcels as log files in tasks, for the tables that the plan has opened for tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from pipeline.clock import monotonic_s
from pipeline.errors import BinlakeError
from pipeline.hudi.definition.bucket import file_id
from pipeline.hudi.files.file_group_write import FileGroupWrite, WriteContext, WriteResult, write_file_group
from pipeline.hudi.files.first_write import write_new_file_group
from pipeline.storage import Storage, open_storage
from pipeline.tasks.plan import BatchPlan, Item, TableFailed, TableWriter, TaskReport, Written
from pipeline.upsert.merge import merge
from pipeline.upsert.parcel import KEYLESS_BUCKET, Parcel, unpack
from pipeline.upsert.route import KEY, ORDER_COLUMNS


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
        name = writer.file_ids.get((path, bucket)) or file_id(writer.context.table_name, path, bucket)
        try:
            group, superseded = merge((path, bucket), name, unpack(parcels))
            storage, first = lake.sub(table), (path, bucket) not in writer.existing
            for result in _write_group(storage, writer.context, group, first=first):
                yield Written(table, result, superseded)
                superseded = 0
        except BinlakeError as error:
            yield TableFailed(table, error)
    report.spent("write", started)
    yield report


def _write_group(
    storage: Storage, context: WriteContext, group: FileGroupWrite, *, first: bool
) -> Sequence[WriteResult]:
    return write_new_file_group(storage, context, group) if first else [write_file_group(storage, context, group)]


def _writable(writers: Mapping[str, TableWriter], parcel: Parcel) -> bool:
    """Whether a task may write this parcel: its table has an open instant, a record key, readers that merge it, and no
    column is new."""
    writer = writers.get(parcel.table)
    if writer is None or writer.merging.by_writer or parcel.bucket == KEYLESS_BUCKET:
        return False
    known = {f.name: f.type for f in writer.context.arrow_schema}
    incoming = pa.ipc.open_stream(parcel.blob).schema
    return all(known.get(f.name) == f.type for f in incoming if f.name not in (KEY, *ORDER_COLUMNS))
