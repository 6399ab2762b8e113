"""The rows of a batch without those that its TRUNCATEs remove, and deletes for the stored ones."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from pipeline.hudi.definition.bucket import bucket_of_file_id
from pipeline.hudi.read.slice import read_file_slice
from pipeline.lake.lake_table import LakeTable
from pipeline.merging.truncated import group_deletes, without_truncated
from pipeline.upsert.merge import Place, records, truncated
from pipeline.upsert.route import KEY
from pipeline.upsert.target import ORDER_FIELD
from pipeline.upsert.truncates import Truncates


def without_truncated_rows(
    table: LakeTable, truncates: Truncates, held: Mapping[Place, pa.Table]
) -> tuple[dict[Place, pa.Table], int]:
    """Remove rows at or before a TRUNCATE and add deletes for stored ones.

    Args:
        table: open.
        truncates: of the batch.
        held: the batch's rows by file group.

    Returns the rows by file group and the number of removed records. Raises CorruptDataError, StorageError.
    """
    if table.merging.groups:
        return _of_groups(table, truncates.groups, held)
    groups, dropped = dict(held), 0
    for place, rows in held.items():
        groups[place] = rows.filter(pa.array(rows.column("__order").to_numpy() > truncates.order_at(rows)))
        dropped += records(rows) - records(groups[place])
    for piece in table.table.file_slices():
        place = (piece.partition_path, bucket_of_file_id(piece.file_id))
        columns = [KEY, ORDER_FIELD, *truncates.columns]
        deletes = truncated(read_file_slice(table.table, piece, columns=columns), truncates)
        mine = [groups[place]] if place in groups else []
        groups[place] = pa.concat_tables([deletes, *mine], promote_options="default")
    return groups, dropped


def _of_groups(
    table: LakeTable, truncated: Mapping[str, int], held: Mapping[Place, pa.Table]
) -> tuple[dict[Place, pa.Table], int]:
    """The same for the TRUNCATEs of a stitched table's groups."""
    merging, schema = table.merging, table.table.schema
    groups = {place: without_truncated(rows, merging, truncated) for place, rows in held.items()}
    dropped = sum(records(rows) - records(groups[place]) for place, rows in held.items())
    states, shared = table.row_states(schema), [*table.table.config.record_key_fields]
    for piece in table.table.file_slices():
        place = (piece.partition_path, bucket_of_file_id(piece.file_id))
        columns = [*shared, *table.table.config.partition_fields, *merging.hidden_fields]
        stored = [states.live(piece.file_id, columns), states.dead(piece.file_id, merging.hidden_fields)]
        deletes = [group_deletes(rows, merging, truncated) for rows in stored]
        mine = [groups[place]] if place in groups else []
        groups[place] = pa.concat_tables([*deletes, *mine], promote_options="default")
    return groups, dropped
