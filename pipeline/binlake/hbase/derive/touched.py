"""Which rows of a table of cells the commits since a moment have touched, by their own files.

A commit's metadata names its files. Of each file only the column of the row is read, of a delete block the record keys.
Compactions and clusterings copy cells and touch no row. Where the files cannot tell, because the commits are archived,
cleaned or taken back by a restore, every row counts as touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import FAMILY, ROW
from binlake.position.derived_position import CellsMoment
from binlake.position.record_reader import RecordReader
from hudilake.format.definition.bucket import EMPTY_KEY_PART
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.base_file import read_base_file
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.delete_block import decode_deletes
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.format.files.names import parse_base_name
from hudilake.format.timeline.commit_metadata import WriteStat
from hudilake.format.timeline.instant import REPLACE_COMMIT, RESTORE, WRITE_ACTIONS, Instant
from hudilake.read.window import COMMIT_TIME_FIELD
from hudilake.storage.base import Storage, StorageNotFoundError
from hudilake.table.table import HudiTable

_NO_ROWS = pa.nulls(0, pa.string())


@dataclass(frozen=True)
class TouchedRows:
    """The rows that commits have touched.

    Args:
        until: the moment up to which commits are covered.
        rows: string array of distinct rows, in text form; None for every row of the table.
        why: why every row counts as touched.
        source_ms: the source's times (ms since the epoch) of the oldest and the newest change in these commits, as far
            as they tell; None where they do not.
    """

    until: CellsMoment
    rows: pa.Array | None
    why: str = ""
    source_ms: tuple[int, int] | None = None


def newest_moment(table: HudiTable) -> CellsMoment | None:
    """The newest write of rows, or restore, of a table of cells as of its last refresh; None if there is none.

    Raises CorruptDataError, StorageError.
    """
    timeline = table.timeline
    newest = next((write for write in timeline.newest_first() if _writes_rows(table, write)), None)
    restores = timeline.completed_actions({RESTORE})
    latest_instant = max([*([newest] if newest else []), *restores], key=_completed, default=None)
    if latest_instant is None:
        return None
    pending = tuple(i.requested_time for i in timeline.pending() if i.action in WRITE_ACTIONS)
    return CellsMoment(latest_instant.requested_time, _completed(latest_instant), pending)


def touched_since(table: HudiTable, since: CellsMoment | None, pool: Executor) -> TouchedRows | None:
    """The rows that commits completed after a moment have touched, as of the table's last refresh.

    Args:
        table: a table of cells, open.
        since: a moment of it; None for all its commits.
        pool: reads the files.

    Returns None if nothing has completed since. Raises CorruptDataError, StorageError.
    """
    until = newest_moment(table)
    if until is None or (since is not None and (until.instant, until.completed) == (since.instant, since.completed)):
        return None
    why = _unknown(table, since)
    if since is None or why:
        return TouchedRows(until, None, why)
    writes = [w for w in table.timeline.completed() if _completed(w) > since.completed and _writes_rows(table, w)]
    if any(write.action == REPLACE_COMMIT for write in writes):
        return TouchedRows(until, None, "file groups of the table of cells were replaced")
    stats = [(write, stat) for write in writes for stat in table.timeline.commit_metadata(write).stats]
    if any(stat.num_deletes and parse_base_name(stat.file_name) for _, stat in stats):
        return TouchedRows(until, None, "cells were deleted from base files")
    try:
        return TouchedRows(until, _rows_of(table.storage, stats, pool), source_ms=_source_ms(table, writes))
    except StorageNotFoundError:
        return TouchedRows(until, None, "files of its commits are cleaned")


def _unknown(table: HudiTable, since: CellsMoment | None) -> str:
    """Why the commits since a moment do not tell which rows they touched; empty if they do."""
    if since is None:
        return "nothing is derived yet"
    timeline = table.timeline
    restores = timeline.completed_actions({RESTORE})
    if any(_completed(restore) > since.completed for restore in restores):
        return "the table of cells was restored"
    held = [*timeline.completed(), *restores]
    if not any((i.requested_time, _completed(i)) == (since.instant, since.completed) for i in held):
        return "the commits since the last derivation are archived or taken back"
    history = timeline.history() if since.pending else None
    if history is not None and any(history.completion_time(pending) for pending in since.pending):
        return "a commit that completed since the last derivation is archived"
    return ""


def _source_ms(table: HudiTable, writes: Sequence[Instant]) -> tuple[int, int] | None:
    recorded = [RecordReader.of_commit(table.timeline.commit_metadata(write).extra).source_times for write in writes]
    times = [span for span in recorded if span is not None]
    return (min(oldest for oldest, _ in times), max(newest for _, newest in times)) if times else None


def _rows_of(storage: Storage, stats: Sequence[tuple[Instant, WriteStat]], pool: Executor) -> pa.Array:
    parts = pool.map(lambda one: pc.unique(_rows_in(storage, one[0].requested_time, one[1])), stats)
    return pc.unique(pa.chunked_array([_NO_ROWS, *parts]).combine_chunks())


def _rows_in(storage: Storage, instant: str, stat: WriteStat) -> pa.Array:
    """The rows of the cells that a commit wrote to a file, or deleted in it."""
    if parse_base_name(stat.file_name) is not None:
        base = read_base_file(storage, stat.path, [ROW, COMMIT_TIME_FIELD], stat.file_size)
        mine = base.filter(pc.equal(base.column(COMMIT_TIME_FIELD).cast(pa.string()), instant))
        return mine.column(ROW).combine_chunks()
    return pa.concat_arrays([_NO_ROWS, *_logged(storage, instant, stat.path)])


def _logged(storage: Storage, instant: str, path: str) -> Iterator[pa.Array]:
    for block in iter_blocks(storage.read(path), path):
        if block.instant != instant:
            continue
        if block.block_type is BlockType.DELETE:
            yield _row_of_keys(decode_deletes(block.content, path).column(RECORD_KEY_FIELD).combine_chunks())
        else:
            yield decode_data_block(block, [ROW], path).column(ROW).combine_chunks()


def _row_of_keys(keys: pa.Array) -> pa.Array:
    """The rows in record keys of cells (``row:...,family:...``); a row's text has no comma."""
    rows = pc.replace_substring_regex(keys, pattern=f"^{ROW}:([^,]*),{FAMILY}:.*$", replacement=r"\1")
    return pc.if_else(pc.equal(rows, EMPTY_KEY_PART), "", rows)


def _writes_rows(table: HudiTable, write: Instant) -> bool:
    return not (table.timeline.is_compaction(write) or table.timeline.is_clustering(write))


def _completed(instant: Instant) -> str:
    return instant.completion_time or ""
