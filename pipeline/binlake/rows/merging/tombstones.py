"""The orders of deleted rows of a table merged by its writer.

A deleted row has no place in the table's files where readers would not show it, so its groups' orders are in files of
their own, below ``.hoodie``, a folder a file group. They keep out the events that are older than the delete.

Each row of such a file names the instant that deleted. A file is written before its commit completes, and a row counts
if the timeline says that its instant is completed, by the same rule as the blocks of log files. So a rollback or a
restore takes tombstones back without touching them, and files may be merged at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from hudilake.errors import CorruptDataError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.names import TOMBSTONES_PATH
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import FileInfo, Storage, StorageNotFoundError

INSTANT: Final = "__instant"
_ATTEMPTS = 5


def folder(file_id: str) -> str:
    """The folder of a file group's tombstones; file ids differ between partitions."""
    return f"{TOMBSTONES_PATH}/{file_id}"


def write_tombstones(storage: Storage, file_id: str, instant: str, rows: pa.Table) -> None:
    """Write the tombstones of one commit's deletes; a task that runs again replaces its own file. Raises StorageError.

    Args:
        storage: the table's root.
        file_id: of the file group.
        instant: the requested time of the commit, which has not completed.
        rows: n rows with ``_hoodie_record_key`` and the groups' order columns, n > 0.
    """
    instants = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), dtype=np.int32)), [instant])
    storage.write(f"{folder(file_id)}/{instant}.arrow", encode(rows.append_column(INSTANT, instants)))


def encode(rows: pa.Table) -> bytes:
    """The bytes of a file of tombstones."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(rows)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


@dataclass(slots=True)
class TombstoneFiles:
    """The files of one folder of tombstones that were read before and are still there: a file never changes, and every
    commit of a table that looks keys up asks for all of them."""

    _known: Mapping[FileInfo, pa.Table] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """In memory."""
        return sum(rows.nbytes for rows in self._known.values())

    def rows(self, storage: Storage, file_id: str) -> pa.Table | None:
        """Returns all rows of a file group's files, None without files; reads the new ones. Errors as ``all_rows``."""
        known = self._known
        self._known = {
            info: known[info] if info in known else decode(storage.read(info.path), info.path)
            for info in storage.list(folder(file_id))
        }
        return pa.concat_tables(self._known.values(), promote_options="permissive") if self._known else None


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Reads the tombstones of a table at one moment.

    Args:
        storage: the table's root.
        timeline: loaded; decides which rows count.
        files: those that were read before, of one folder; None to read all.
    """

    storage: Storage
    timeline: Timeline
    files: TombstoneFiles | None = None

    def of(self, file_id: str) -> pa.Table | None:
        """The newest tombstone of every key of a file group that has one; None for none. A key may live again: then its
        row counts. Raises CorruptDataError, StorageError."""
        rows = self.counted(file_id)
        if rows is None:
            return None
        keys = rows.column(RECORD_KEY_FIELD).combine_chunks().dictionary_encode()
        last = np.zeros(len(keys.dictionary), dtype=np.int64)
        last[np.asarray(keys.indices.to_numpy(), dtype=np.int64)] = np.arange(len(rows))  # the last assignment stays
        return rows.take(pa.array(last)).drop_columns([INSTANT])

    def counted(self, file_id: str) -> pa.Table | None:
        """The tombstones of a file group that completed commits have written, a key several times, in the order of the
        commits' requested times, with the column INSTANT. Returns and raises as ``of``."""
        rows = self._rows(file_id)
        if rows is None:
            return None
        instants = rows.column(INSTANT).combine_chunks().dictionary_encode()
        known = instants.dictionary.to_pylist()
        counts = np.array([self.timeline.is_completed(instant) for instant in known], dtype=np.bool_)
        rank = np.empty(len(known), dtype=np.int64)
        rank[np.argsort(np.array(known, dtype=np.str_))] = np.arange(len(known))
        places = np.asarray(instants.indices.to_numpy(), dtype=np.int64)
        kept = np.flatnonzero(counts[places])
        ranks = rank[places[kept]]
        if len(kept) == len(rows) and (np.diff(ranks) >= 0).all():  # as the files mostly have them
            return rows
        return rows.take(pa.array(kept[np.argsort(ranks, kind="stable")]))

    def _rows(self, file_id: str) -> pa.Table | None:
        for attempt in range(_ATTEMPTS):
            try:
                return (self.files or TombstoneFiles()).rows(self.storage, file_id)
            except StorageNotFoundError:  # merged with others meanwhile: list again
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")


def all_rows(storage: Storage, file_id: str) -> pa.Table | None:
    """Every row of a file group's files, with the instants that deleted; None without files. Raises CorruptDataError,
    StorageError."""
    return TombstoneFiles().rows(storage, file_id)


def decode(data: bytes, path: str) -> pa.Table:
    """The rows of a file of tombstones. Raises CorruptDataError."""
    try:
        rows = pa.ipc.open_file(data).read_all()
        column_index = rows.column_names.index(INSTANT)
        return rows.set_column(column_index, INSTANT, rows.column(column_index).cast(pa.string()))
    except (pa.ArrowException, ValueError) as error:
        raise CorruptDataError(
            f"a file of tombstones cannot be read: {error}",
            do_next="delete the file: late events may then restore rows that were deleted before",
            path=path,
        ) from error
