"""What the rows of file groups are, kept in memory from commit to commit.

An entry belongs to the files from which it was made. When a file group is asked for, its newest file slice says which
files count now: with the same files the entry is right; with further log files behind them, of this writer or of
others, only those are read; in all other cases (a compaction, a rollback, a restore) the entry is made anew from the
slice. So nobody has to report a commit to the cache, and a new process begins with an empty one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from binlake.rows.merging.tombstones import TombstoneFiles
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult
from hudilake.format.files.names import in_partition, parse_log_name
from hudilake.format.files.view import FileSlice, LogFile
from hudilake.index.key_map import KeyMap
from hudilake.write.group_writer import NO_KEYS

#: The most bytes that the orders of a table take, and the rows of all tables of a process.
ORDERS_BYTES: Final = 256 << 20
ROWS_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class SliceFiles:
    """The paths of a file slice: of its base file, None without one, and of its log files in merge order."""

    base: str | None
    logs: tuple[str, ...]

    @staticmethod
    def of(piece: FileSlice | None) -> SliceFiles:
        """Those of a slice; no slice has no files."""
        if piece is None:
            return SliceFiles(None, ())
        base = piece.base_file.path if piece.base_file is not None else None
        return SliceFiles(base, tuple(file.path for file in piece.log_files))

    def further(self, piece: FileSlice | None) -> Sequence[LogFile] | None:
        """The log files that a slice has behind these files; None if it has not grown out of them."""
        now = SliceFiles.of(piece)
        if now.base != self.base or now.logs[: len(self.logs)] != self.logs:
            return None
        return piece.log_files[len(self.logs) :] if piece is not None else ()


@dataclass(frozen=True, slots=True)
class KeptOrders:
    """The longs of each key that has a row or a tombstone in the files."""

    files: SliceFiles
    index: KeyMap

    @property
    def nbytes(self) -> int:
        """In memory."""
        return self.index.nbytes


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """What a log file of this process has.

    Args:
        rows: whole rows with the record key, in lake types.
        gone: the keys of rows that it deletes, string.
    """

    rows: pa.Table
    gone: pa.Array

    @property
    def nbytes(self) -> int:
        """In memory."""
        return int(self.rows.nbytes + self.gone.nbytes)

    def over(self, rows: pa.Table) -> pa.Table:
        """The rows of a slice, with those of a log file behind it; the columns of the slice, absent ones are null."""
        keys = pa.chunked_array([*self.rows.column(RECORD_KEY_FIELD).chunks, self.gone], pa.string())
        stays = pc.invert(pc.is_in(rows.column(RECORD_KEY_FIELD), value_set=keys.combine_chunks()))
        return pa.concat_tables([rows.filter(stays), aligned(self.rows, rows.schema)])


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The live rows of the files, with the columns that were asked for, the tombstones of their file group, and by its
    path what a log file has that was written upon them."""

    files: SliceFiles
    rows: pa.Table
    deleted: TombstoneFiles = field(default_factory=TombstoneFiles)
    written: Mapping[str, WrittenRows] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """In memory."""
        return int(self.rows.nbytes) + self.deleted.nbytes + sum(one.nbytes for one in self.written.values())

    def has(self, fields: pa.Schema) -> bool:
        """Whether the rows have these columns, in these types."""
        mine = self.rows.schema
        return all(one.name in mine.names and mine.field(one.name).type == one.type for one in fields)

    def wider(self, fields: pa.Schema) -> pa.Schema:
        """These columns, and the others that were asked for before."""
        return pa.schema([*fields, *(one for one in self.rows.schema if one.name not in fields.names)])


class Entry(Protocol):
    """What is kept of a file group."""

    @property
    def nbytes(self) -> int:
        """In memory."""
        ...


E = TypeVar("E", bound=Entry)


@dataclass
class StateCache(Generic[E]):
    """Entries, at most ``max_bytes`` of them; what was not asked for longest goes first. Safe to use from several
    threads, if each file group is asked for by one of them at a time."""

    max_bytes: int
    _entries: OrderedDict[Hashable, tuple[E, int]] = field(default_factory=OrderedDict)
    _total: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, group: Hashable) -> E | None:
        """The entry of a file group."""
        with self._lock:
            held = self._entries.get(group)
        return held[0] if held is not None else None

    def put(self, group: Hashable, entry: E) -> None:
        """Keep an entry, as the one that was asked for last. Its size is that of now: one that grows is put again."""
        size = entry.nbytes
        with self._lock:
            _, before = self._entries.pop(group, (entry, 0))
            self._entries[group] = entry, size
            self._total += size - before
            while self._total > self.max_bytes and self._entries:
                _, (_, gone) = self._entries.popitem(last=False)
                self._total -= gone

    @property
    def nbytes(self) -> int:
        """The bytes of all entries."""
        with self._lock:
            return self._total

    def __getstate__(self) -> dict[str, object]:
        """A task keeps nothing: it is asked for a file group once."""
        return {"max_bytes": 0, "_entries": OrderedDict(), "_total": 0}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Takes over the state, with a lock of its own."""
        self.__dict__.update(state, _lock=threading.Lock())


#: Rows of file groups by owner and file id: a process has many tables, and rows are larger than their orders. Who opens
#: a table owns what it keeps, for another lake may have the same names.
ROWS: Final[StateCache[KeptRows]] = StateCache(ROWS_BYTES)


def keep_written(
    kept: StateCache[KeptRows], group: Hashable, write: FileGroupWrite, results: Sequence[WriteResult]
) -> None:
    """Keep the rows of a log file that a merging writer has just written, if all of them are whole. They count once
    its commit has completed, and are not read then."""
    entry = kept.get(group)
    if entry is None or write.partials or len(results) != 1 or parse_log_name(results[0].file_name) is None:
        return
    gone = NO_KEYS if write.deletes is None else write.deletes.column(RECORD_KEY_FIELD).combine_chunks()
    rows = entry.rows.schema.empty_table() if write.upserts is None else write.upserts
    path = in_partition(write.partition_path, results[0].file_name)
    kept.put(group, replace(entry, written={**entry.written, path: WrittenRows(rows, gone)}))


def aligned(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema; absent ones are null."""
    held = set(rows.column_names)
    columns = [rows.column(f.name).cast(f.type) if f.name in held else pa.nulls(len(rows), f.type) for f in schema]
    return pa.table(columns, schema=schema)
