"""Upkeep of the files of tombstones: few files a file group, none older than the retention, none of instants that were
rolled back.

Rows keep the instant that deleted, so a merged file says what the single ones said, also after a restore. A crash
between the merged file and the removal of the single ones leaves rows twice, which changes nothing.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.tombstones import INSTANT, decode, encode, folder
from hudilake.clock import format_instant, now_ms
from hudilake.format.files.names import TOMBSTONES_PATH
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable

#: The files of a file group that are left as they are.
MOST_FILES: Final = 16
_MS_PER_HOUR = 3_600_000
_MERGED = "-merged"


def tidy(table: HudiTable, retention_hours: float | None) -> None:
    """Merge the tombstones of file groups that have many files, and remove those that count no longer.

    Call it before instants are archived: an instant before the active timeline counts as completed. Raises
    CorruptDataError, StorageError.

    Args:
        table: open.
        retention_hours: the largest age of a tombstone; None keeps them all.
    """
    with table.exclusively():
        table.refresh()
        oldest = "" if retention_hours is None else format_instant(now_ms() - int(retention_hours * _MS_PER_HOUR))
        for file_id in table.storage.list_dirs(TOMBSTONES_PATH):
            _tidy_group(table.storage, table.timeline, file_id, oldest)


def _tidy_group(storage: Storage, timeline: Timeline, file_id: str, oldest: str) -> None:
    settled = []
    for info in storage.list(folder(file_id)):
        instant = info.path.rpartition("/")[2].removesuffix(".arrow")
        if instant.endswith(_MERGED) or timeline.is_completed(instant):
            settled.append(info.path)
        elif _is_rolled_back(timeline, instant):
            storage.delete(info.path)
    tables = [decode(storage.read(path), path) for path in settled]
    if not tables:
        return
    kept = [rows.filter(_counts(rows, timeline, oldest)) for rows in tables]
    if len(settled) > MOST_FILES or any(len(a) < len(b) for a, b in zip(kept, tables, strict=True)):
        _replace(storage, file_id, settled, pa.concat_tables(kept, promote_options="permissive"))


def _counts(rows: pa.Table, timeline: Timeline, oldest: str) -> pa.Array:
    """Which rows are young enough and of completed instants, bool array."""
    encoded = rows.column(INSTANT).combine_chunks().dictionary_encode()
    counts = [instant >= oldest and timeline.is_completed(instant) for instant in encoded.dictionary.to_pylist()]
    return pa.array(counts, pa.bool_()).take(encoded.indices)


def _replace(storage: Storage, file_id: str, paths: list[str], rows: pa.Table) -> None:
    target = ""
    if len(rows):
        target = f"{folder(file_id)}/{pc.max(rows.column(INSTANT)).as_py()}{_MERGED}.arrow"
        storage.write(target, encode(rows))
    for path in paths:
        if path != target:
            storage.delete(path)


def _is_rolled_back(timeline: Timeline, instant: str) -> bool:
    """An instant that began before the newest write and is not in the timeline."""
    newest = timeline.last_completed()
    return timeline.find(instant) is None and newest is not None and instant < newest.requested_time
