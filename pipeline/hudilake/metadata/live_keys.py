"""The record keys that have a row in a file slice, without its other columns: to initialise or to check an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.base_file import read_base_file
from hudilake.format.files.file_group_write import KeyChanges
from hudilake.format.files.log_events import LogEvents
from hudilake.format.files.log_file import iter_blocks
from hudilake.format.files.stored_rows import aligned
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage

_PARALLEL = 4
_NONE = pa.nulls(0, pa.string())


def live_keys(storage: Storage, piece: FileSlice, ordering_field: str, timeline: Timeline) -> pa.Array:
    """The keys of a file slice's rows, string array, in no promised order.

    Args:
        storage: rooted at the data table.
        piece: the slice.
        ordering_field: the table's ordering column; "" where the later commit always wins.
        timeline: the data table's: blocks of instants that are not completed are left out.

    Raises CorruptDataError, UnsupportedError, StorageError.
    """
    fields = [pa.field(RECORD_KEY_FIELD, pa.string())]
    if ordering_field and piece.log_files:
        fields.append(pa.field(ordering_field, pa.int64()))
    schema = pa.schema(fields)
    base = schema.empty_table()
    if piece.base_file is not None:
        path, size = piece.base_file.path, piece.base_file.size
        base = aligned(read_base_file(storage, path, schema.names, size), schema)
    events = LogEvents(schema, ordering_field)
    for log in piece.log_files:
        for block in iter_blocks(storage.read(log.path), log.path):
            if block.instant is not None and timeline.is_completed(block.instant):
                events.add(block, log.path)
    keys = base.column(RECORD_KEY_FIELD)
    if events.keys:
        winners = events.merged().winners
        met, wins = winners.against(base, ordering_field)
        alone = np.ones(len(winners.keys), dtype=np.bool_)
        alone[met[met >= 0]] = False
        stays = ~wins | (winners.row[met] >= 0)
        fresh = winners.keys.filter(pa.array(alone & (winners.row >= 0)))
        keys = pa.chunked_array([*keys.filter(pa.array(stays)).chunks, fresh], pa.string())
    whole = keys.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def keys_of_slices(
    storage: Storage, slices: Iterable[FileSlice], ordering_field: str, timeline: Timeline
) -> Iterator[KeyChanges]:
    """The keys of some file slices, as if one commit had added them. Arguments and errors as ``live_keys``."""

    def read(piece: FileSlice) -> KeyChanges:
        keys = live_keys(storage, piece, ordering_field, timeline)
        return KeyChanges(piece.partition_path, piece.file_id, keys, _NONE)

    with ThreadPoolExecutor(_PARALLEL) as pool:
        yield from pool.map(read, slices)
