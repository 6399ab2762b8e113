"""Rows of append tables, written by the tasks that decoded them: no row has to meet another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from binlake.rows.tasks.plan import BatchPlan, Item, TableFailure, TableWriter, TaskReport, WrittenFile
from binlake.rows.tasks.write_parcels import holds_columns
from binlake.rows.upsert.parcel import APPEND_BUCKET, Parcel, unpack
from hudilake.clock import monotonic_s
from hudilake.errors import LakeError
from hudilake.storage import Storage, open_storage
from hudilake.write.append import AppendWriter


def append_parcels(plan: BatchPlan, number: int, items: Iterable[Item]) -> Iterator[Item]:
    """Write the rows of the append tables that this plan opened; pass all other items on.

    ``number``: of the task among those of the batch. Each task writes to file groups of its own.
    """
    held: dict[str, dict[str, list[Parcel]]] = {}
    for item in items:
        if isinstance(item, Parcel) and _writable(plan.writers, item):
            held.setdefault(item.table, {}).setdefault(item.partition_path, []).append(item)
        else:
            yield item
    if not held:
        return
    lake, report, started = open_storage(plan.lake_uri, plan.lake_options), TaskReport(), monotonic_s()
    for table, by_path in held.items():
        writer = plan.writers[table].append
        assert writer is not None
        yield from _written(table, lake.sub(table), writer, number, by_path)
    report.spent("write", started)
    yield report


def _written(
    table: str, storage: Storage, writer: AppendWriter, number: int, by_path: Mapping[str, list[Parcel]]
) -> Iterator[Item]:
    try:
        for part in writer.keyed(number, {path: unpack(parcels) for path, parcels in by_path.items()}):
            yield from (WrittenFile(table, result, 0) for result in writer.write(storage, part))
    except LakeError as error:
        yield TableFailure(table, error)


def _writable(writers: Mapping[str, TableWriter], parcel: Parcel) -> bool:
    writer = writers.get(parcel.table)
    return (
        parcel.bucket == APPEND_BUCKET
        and writer is not None
        and writer.append is not None
        and holds_columns(writer, parcel)
    )
