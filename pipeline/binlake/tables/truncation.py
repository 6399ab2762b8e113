"""What TRUNCATE leaves of a batch's rows, and the deletes of what a table stores."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.tombstones import Tombstones
from binlake.rows.merging.truncate import (
    ended,
    ends_of,
    group_deletes,
    group_truncates,
    truncated,
    without_truncated_events,
)
from binlake.rows.upsert.merge import Place, records
from binlake.rows.upsert.route import KEY
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.rows.upsert.truncates import Truncates
from binlake.rows.upsert.version_columns import END_AT, KNOWN_TO, START_AT
from binlake.tables.lake_table import LakeTable
from hudilake.errors import UnsupportedError
from hudilake.format.files.view import FileSlice
from hudilake.read.slice import read_file_slice

#: Rows by file group, and the number of removed records.
_Left = tuple[dict[Place, pa.Table], int]


def without_truncated(table: LakeTable, truncates: Truncates, held: Mapping[Place, pa.Table]) -> _Left:
    """Remove rows at or before a TRUNCATE and add deletes for stored ones, of the whole row or of a column group.

    Args:
        table: open.
        truncates: of the batch.
        held: rows by file group, as parcels hold them.
    """
    if table.merging.groups:
        return _of_groups(table, truncates, held)
    if table.merging.keeps_versions:
        return _of_versions(table, truncates, held)
    return _of_rows(table, truncates, held)


def check_truncates(table: LakeTable, truncates: Truncates) -> None:
    """Raise UnsupportedError for a TRUNCATE that comes after later events of an engine that combines events: what is
    combined cannot be separated. Such engines count their events (``heights``); a row of ``partial_update`` keeps the
    order of each column."""
    known = table.truncates
    news = [truncates.whole] if truncates.whole > known.whole else []
    news += [order for shard, order in truncates.shards.items() if order > known.shards.get(shard, -1)]
    if news and min(news) < table.heights.newest:
        raise UnsupportedError(
            "a TRUNCATE came after later events of the table, whose effect on its rows cannot be told apart any more",
            do_next="load the table again under a new path, or give its topic one partition",
            table=table.rules.path,
        )


def _of_rows(table: LakeTable, truncates: Truncates, held: Mapping[Place, pa.Table]) -> _Left:
    groups, dropped = dict(held), 0
    for place, rows in held.items():
        groups[place] = rows.filter(pa.array(rows.column("__order").to_numpy() > truncates.order_at(rows)))
        dropped += records(rows) - records(groups[place])
    for piece in table.hudi.file_slices():
        stored = read_file_slice(table.hudi, piece, columns=[KEY, ORDER_FIELD, *truncates.columns])
        gone = truncated(table.rows.with_orders(stored), truncates)
        _add(groups, table.rows.place_of(piece), gone)
    return groups, dropped


def _of_versions(table: LakeTable, truncates: Truncates, held: Mapping[Place, pa.Table]) -> _Left:
    """The rows of a history table, with the ends that its TRUNCATEs make: all of them for rows that come now, the new
    ones for stored versions."""
    groups = {place: ended(rows, table.truncates.merged(truncates).ends) for place, rows in held.items()}
    news = {order: ms for order, ms in truncates.ends.items() if order not in table.truncates.ends}
    # A late one takes back what known ones after it have deleted: they found no row, if none came in between.
    oldest = min(news, default=0)
    news |= {order: ms for order, ms in table.truncates.ends.items() if news and order > oldest}
    columns = [KEY, ORDER_FIELD, START_AT, *(name for name in (END_AT, KNOWN_TO) if name in table.hudi.schema.names)]
    for piece in table.hudi.file_slices() if news else ():
        stored = read_file_slice(table.hudi, piece, columns=columns)
        _add(groups, table.rows.place_of(piece), ends_of(stored, news))
    return groups, 0


def _of_groups(table: LakeTable, truncates: Truncates, held: Mapping[Place, pa.Table]) -> _Left:
    merging, groups, dropped = table.merging, dict(held), 0
    by_group = group_truncates(truncates, merging)
    for place, rows in held.items():
        groups[place] = without_truncated_events(rows, by_group, merging)
        dropped += records(rows) - records(groups[place])
    for piece in table.hudi.file_slices():
        _add(groups, table.rows.place_of(piece), group_deletes(_known(table, piece), by_group, merging))
    return groups, dropped


def _known(table: LakeTable, piece: FileSlice) -> pa.Table:
    """The rows that groups know, with the groups' orders: those that live, and those that tombstones keep for a group
    although another one has deleted them."""
    config = table.hudi.config
    names = (*config.record_key_fields, *config.partition_fields, *table.merging.hidden_fields)
    columns = [KEY, ORDER_FIELD, *dict.fromkeys(name for name in names if name in table.hudi.schema.names)]
    live = read_file_slice(table.hudi, piece, columns=columns)
    dead = Tombstones(table.storage, table.hudi.timeline).of(piece.file_id)
    if dead is None:
        return live
    gone = dead.filter(pc.invert(pc.is_in(dead.column(KEY), value_set=live.column(KEY).combine_chunks())))
    return pa.concat_tables(
        [live, gone.select([name for name in columns if name in gone.column_names])], promote_options="default"
    )


def _add(groups: dict[Place, pa.Table], place: Place, gone: pa.Table) -> None:
    mine = [groups[place]] if place in groups else []
    groups[place] = pa.concat_tables([gone, *mine], promote_options="permissive")
