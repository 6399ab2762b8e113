"""A compaction by hand: enough of one for the readers' rules about slices to be tested."""

from __future__ import annotations

import pyarrow as pa

from hudilake.format.definition.schema import META_FIELDS, RECORD_KEY_FIELD, avro_schema
from hudilake.format.files.base_file import encode_base_file
from hudilake.format.files.names import BaseFileName, in_partition
from hudilake.format.files.view import FileSlice, file_slices
from hudilake.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudilake.format.timeline.instant import COMPACTION, Instant, State
from hudilake.read.slice import read_file_slice
from hudilake.table.table import HudiTable


def request_compaction(table: HudiTable) -> tuple[Instant, list[FileSlice]]:
    """An inflight compaction and the slices it shall merge."""
    slices = file_slices(table.storage, table.timeline)
    requested = Instant(table.clock.next(), COMPACTION, State.REQUESTED)
    for instant in (requested, requested.in_state(State.INFLIGHT)):
        table.storage.create(instant.path, b"")
        table.timeline.record(instant)
    return requested.in_state(State.INFLIGHT), slices


def write_base_files(table: HudiTable, compaction: Instant, slices: list[FileSlice]) -> tuple[WriteStat, ...]:
    """The new base files; rows that are deleted are gone, and their ordering values with them."""
    schema = avro_schema(table.schema, table.config.name, with_meta=True)
    stats = []
    for merged in slices:
        rows = read_file_slice(table, merged).sort_by(RECORD_KEY_FIELD)
        name = BaseFileName(merged.file_id, compaction.requested_time)
        at = list(META_FIELDS).index("_hoodie_file_name")
        rows = rows.set_column(at, META_FIELDS[at], pa.repeat(pa.scalar(str(name)), rows.num_rows))
        data = encode_base_file(rows, schema)
        path = in_partition(merged.partition_path, str(name))
        table.storage.create(path, data)
        stats.append(
            WriteStat(
                merged.partition_path, merged.file_id, path, "null", num_writes=rows.num_rows, file_size=len(data)
            )
        )
    return tuple(stats)


def complete_compaction(table: HudiTable, compaction: Instant, stats: tuple[WriteStat, ...]) -> str:
    """Publish it; returns its requested time."""
    completed = compaction.in_state(State.COMPLETED, table.clock.next())
    schema = avro_schema(table.schema, table.config.name, with_meta=False)
    metadata = CommitMetadata(stats, {"schema": schema}, "COMPACT", compacted=True)
    with table.state.lock:
        table.storage.create(completed.path, metadata.to_bytes())
    table.timeline.record(completed)
    return completed.requested_time


def compact(table: HudiTable) -> str:
    """All three steps."""
    inflight, slices = request_compaction(table)
    return complete_compaction(table, inflight, write_base_files(table, inflight, slices))
