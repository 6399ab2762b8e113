"""The orders of the rows of file groups, kept in memory from commit to commit.

An entry belongs to the files from which it was made. When a file group is asked for, its newest file slice says which
files count now: with the same files the entry is right; with further log files, of this writer or of others, only those
are read; in all other cases (a compaction, a rollback, a restore) the entry is made anew from the slice. So nobody
has to report a commit to the cache, and a new process begins with an empty one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from hudilake.format.files.view import FileSlice
from hudilake.index.key_map import KeyMap

#: The most bytes that the entries of a table take; what was not asked for longest goes first.
MAX_BYTES: Final = 256 << 20


def files_of(piece: FileSlice | None) -> tuple[str | None, frozenset[str]]:
    """The path of the base file, None without one, and those of the log files."""
    if piece is None:
        return None, frozenset()
    base = piece.base_file.path if piece.base_file is not None else None
    return base, frozenset(file.path for file in piece.log_files)


@dataclass(slots=True)
class StateEntry:
    """What the files of a file group say: for each key that has a row or a tombstone its longs."""

    base: str | None
    logs: frozenset[str]
    index: KeyMap

    def is_before(self, piece: FileSlice | None) -> bool:
        """Whether the slice has the entry's files, and perhaps further log files."""
        base, logs = files_of(piece)
        return base == self.base and logs >= self.logs


@dataclass
class StateCache:
    """Entries by file id, at most ``max_bytes`` of them. Safe to use from several threads, if each file group is asked
    for by one of them at a time."""

    max_bytes: int = MAX_BYTES
    _entries: OrderedDict[str, StateEntry] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, file_id: str) -> StateEntry | None:
        """The entry of a file group."""
        with self._lock:
            return self._entries.get(file_id)

    def put(self, file_id: str, entry: StateEntry) -> None:
        """Keep an entry, as the one that was asked for last."""
        with self._lock:
            self._entries[file_id] = entry
            self._entries.move_to_end(file_id)
            total = sum(one.index.nbytes for one in self._entries.values())
            while total > self.max_bytes and self._entries:
                _, gone = self._entries.popitem(last=False)
                total -= gone.index.nbytes

    @property
    def nbytes(self) -> int:
        """The bytes of all entries."""
        with self._lock:
            return sum(one.index.nbytes for one in self._entries.values())

    def __getstate__(self) -> dict[str, object]:
        """A task keeps nothing: it is asked for a file group once."""
        return {"max_bytes": 0, "_entries": OrderedDict()}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Takes over the state, with a lock of its own."""
        self.__dict__.update(state, _lock=threading.Lock())
