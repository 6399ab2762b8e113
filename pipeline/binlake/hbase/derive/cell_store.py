"""The cells of tables, kept on this machine in the form in which they are found by their row (``group_cells``)."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from binlake.hbase.derive.cell_runs import CellRun
from binlake.hbase.derive.group_cells import SUFFIX, GroupCells, base_runs, from_disk, lake_file, write
from binlake.hbase.derive.run_files import UNFINISHED, Manifest, remove
from binlake.settings import Settings
from hudilake.format.files.view import BaseFile, FileSlice
from hudilake.read.slice import SliceReader
from hudilake.storage import open_storage
from hudilake.storage.local import LocalStorage

_log = logging.getLogger(__name__)

MAX_DISK_BYTES: Final = 32 << 30
MAX_MEMORY_BYTES: Final = 256 << 20
#: Bytes of a local file for each byte of its base file (measured: 3.5 for cells of 10 to 20 bytes, 1 for large ones).
_GROWTH_ON_DISK: Final = 4
GroupKey = tuple[str, str, str]


@dataclass
class CellStore:
    """Local files below a directory, and runs in memory. Safe to use from several threads and, each with a store of its
    own, from several processes. The directory may be removed at any time; what is missing is made anew from the lake.

    Args:
        directory: on a local disk.
        max_disk_bytes: the most that local files take, those of all tables together. File groups that find no room
            are not kept.
        max_memory_bytes: the most that runs in memory take; the others go to local files.
    """

    directory: Path
    max_disk_bytes: int = MAX_DISK_BYTES
    max_memory_bytes: int = MAX_MEMORY_BYTES
    _groups: OrderedDict[GroupKey, GroupCells] = field(default_factory=OrderedDict, init=False, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    #: The base files whose cells are not kept, because there was no room.
    _refused: dict[GroupKey, str] = field(default_factory=dict, init=False, repr=False)
    _locks: defaultdict[GroupKey, threading.Lock] = field(
        default_factory=lambda: defaultdict(threading.Lock), init=False, repr=False
    )

    def runs(self, reader: SliceReader, piece: FileSlice) -> Sequence[CellRun] | None:
        """The runs of the cells of a file slice, the oldest first; None for a slice whose cells are not kept.

        Args:
            reader: of the table, with the columns of ``STORED_SCHEMA``.
            piece: its newest slice.

        Errors as ``SliceReader.read``.
        """
        key = (reader.storage.uri, piece.partition_path, piece.file_id)
        with self._guard:
            lock = self._locks[key]
        with lock:
            kept = self._followed(key, reader, piece)
            return None if kept is None or not kept.plain else kept.runs

    def _followed(self, key: GroupKey, reader: SliceReader, piece: FileSlice) -> GroupCells | None:
        """What is kept of a file group, brought to its slice."""
        with self._guard:
            kept = self._groups.get(key)
        if kept is None or not kept.is_before(piece):
            self._forget(key)
            kept = self._begun(key, reader, piece)
        if kept is None:
            return None
        further = piece.log_files[len(kept.logs) :]
        try:
            if further:
                kept.take(reader, further)
        except BaseException:
            self._forget(key)
            raise
        self._keep(key, kept)
        return kept

    def _begun(self, key: GroupKey, reader: SliceReader, piece: FileSlice) -> GroupCells | None:
        """What local files have of a slice, made if there are none; None if there is no room for them."""
        directory, name = self._place(key)
        kept = from_disk(directory, key[0], name, piece)
        base = piece.base_file
        if base is None or kept.files:
            return kept
        if self._refused.get(key) == base.path:
            return None
        manifest = Manifest(key[0], lake_file(base), ())
        try:
            self._make_room(base)
            kept.files = [write(directory, name, manifest, base_runs(reader.storage, base))]
        except OSError as error:
            self._refused[key] = base.path
            _warn(key, error)
            return None
        self._refused.pop(key, None)
        return kept

    def _place(self, key: GroupKey) -> tuple[Path, str]:
        """The directory of a table's local files, and how the names of a file group's begin."""
        table, partition, file_id = key
        within = hashlib.blake2b(partition.encode(), digest_size=4).hexdigest()
        return self.directory / hashlib.blake2b(table.encode(), digest_size=8).hexdigest(), f"{file_id}-{within}"

    def _make_room(self, base: BaseFile) -> None:
        """Remove local files that this store does not use, those of long ago first, until there is room for the cells
        of a base file. Raises OSError if there is none."""
        files = [(stat.st_mtime, stat.st_size, path) for path in self._files() if (stat := _stat(path)) is not None]
        lacking = _GROWTH_ON_DISK * base.size + sum(size for _, size, _ in files) - self.max_disk_bytes
        with self._guard:
            used = {file.path for kept in self._groups.values() for file in kept.files}
        for _, size, path in sorted(files):
            if lacking > 0 and path not in used:
                remove(path)
                lacking -= size
        if lacking > 0:
            raise OSError(errno.EDQUOT, f"local files may take {self.max_disk_bytes} bytes, {lacking} more are needed")

    def _files(self) -> list[Path]:
        """All local files, also those that dead processes have not finished."""
        return [*self.directory.glob(f"*/*{SUFFIX}"), *self.directory.glob(f"*/*{UNFINISHED}")]

    def _keep(self, key: GroupKey, kept: GroupCells) -> None:
        """Keep a file group as the one that was asked for last. What is too much in memory goes to a local file, or,
        of file groups that were not asked for longest, is dropped."""
        with self._guard:
            self._groups[key] = kept
            self._groups.move_to_end(key)
            count, total = len(self._groups), self.memory_bytes
        if kept.recent and total > self.max_memory_bytes and kept.nbytes * 2 * count >= self.max_memory_bytes:
            directory, name = self._place(key)
            try:
                kept.spill(directory, key[0], name)
            except OSError as error:
                _warn(key, error)
        with self._guard:
            while self.memory_bytes > self.max_memory_bytes and self._groups:
                self._groups.popitem(last=False)

    @property
    def memory_bytes(self) -> int:
        """The bytes of the runs in memory."""
        return sum(kept.nbytes for kept in self._groups.values())

    @property
    def disk_bytes(self) -> int:
        """The bytes of all local files."""
        return sum(stat.st_size for path in self._files() if (stat := _stat(path)) is not None)

    def _forget(self, key: GroupKey) -> None:
        with self._guard:
            self._groups.pop(key, None)

    def __getstate__(self) -> dict[str, object]:
        """A task opens local files itself."""
        return {name: getattr(self, name) for name in ("directory", "max_disk_bytes", "max_memory_bytes")}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Makes a store of the same directory and bounds, with nothing in memory."""
        self.__dict__.update(vars(CellStore(**state)))  # type: ignore[arg-type]


def store_of(settings: Settings) -> CellStore | None:
    """The store that the settings declare; None if nothing shall be kept. Raises ConfigError."""
    declared = settings.derive
    if not declared.max_disk_gb:
        return None
    directory = Path(declared.directory) if declared.directory is not None else _usual_directory(settings)
    return CellStore(directory, int(declared.max_disk_gb * (1 << 30)), declared.max_memory_mb << 20)


def _usual_directory(settings: Settings) -> Path:
    """Below the state if that is on local disk, else in the user's cache."""
    state = open_storage(settings.state_uri, settings.state_options())
    if isinstance(state, LocalStorage):
        return state.root / "cells"
    base = os.environ.get("BINLAKE_CACHE")
    return (Path(base) if base else Path.home() / ".cache" / "binlake") / "cells"


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:  # removed meanwhile
        return None


def _warn(key: GroupKey, error: OSError) -> None:
    """The local disk is full or fails: what is asked for is read from the lake, at its cost."""
    _log.warning("%s: the cells of file group %s are not kept on this machine: %s", key[0], key[2], error)
