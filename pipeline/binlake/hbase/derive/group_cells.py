"""The cells of one file group as runs: those of its base file in a local file, those of further log files over it.

What is kept belongs to the files from which it was made. When a file slice is asked for, its files say what of it
counts: with further log files at the end of the merge order, of this writer or of others, only those are read; in all
other cases (a compaction, a rollback, a restore, a log file that comes before a known one) what does not belong to the
slice is dropped and made anew from the lake. So no writer has to report a commit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from binlake.hbase.derive.cell_runs import STORED_SCHEMA, CellRun
from binlake.hbase.derive.run_files import (
    LakeFile,
    Manifest,
    RunFile,
    open_run_file,
    read_manifest,
    remove,
    write_run_file,
)
from hudilake.format.files.base_file import open_base_file
from hudilake.format.files.log_events import LogEvents
from hudilake.format.files.stored_rows import aligned
from hudilake.format.files.view import BaseFile, FileSlice, LogFile
from hudilake.read.slice import SliceReader
from hudilake.storage.base import Storage

#: The most cells and decoded bytes of a run that is made at once. Runs in memory are merged up to that size.
RUN_CELLS: Final = 250_000
RUN_BYTES: Final = 64 << 20
#: A run is merged with the one before it if that has at most so many times its bytes.
_GROWTH: Final = 4
SUFFIX: Final = ".cells"


def lake_file(file: BaseFile | LogFile) -> LakeFile:
    """A file of a slice by path and size."""
    return LakeFile(file.path, file.size)


@dataclass
class GroupCells:
    """What is kept of a file group.

    Args:
        base: the base file whose runs the first local file has; None for a slice without one.
        logs: the log files that are taken in, in merge order.
        files: local files, in the order in which their runs count.
        recent: the runs of log files in memory, which come after them.
        plain: whether the log files have nothing but whole rows. The cells of others are not kept: a delete beats
            older rows that later log files bring, so the log has to be merged as a whole.
    """

    base: LakeFile | None
    logs: tuple[LakeFile, ...] = ()
    files: list[RunFile] = field(default_factory=list)
    recent: list[CellRun] = field(default_factory=list)
    plain: bool = True

    @property
    def nbytes(self) -> int:
        """The bytes in memory."""
        return sum(run.nbytes for run in self.recent)

    @property
    def runs(self) -> list[CellRun]:
        """All runs, the oldest first."""
        return [*(run for file in self.files for run in file.runs), *self.recent]

    def is_before(self, piece: FileSlice) -> bool:
        """Whether the slice has these files, and perhaps further log files behind them."""
        base, logs = files_of(piece)
        return base == self.base and logs[: len(self.logs)] == self.logs

    def take(self, reader: SliceReader, log_files: Sequence[LogFile]) -> None:
        """Take in further log files. Errors as ``SliceReader.read``."""
        self.logs += tuple(lake_file(log) for log in log_files)
        cells = _whole_rows(reader, log_files) if self.plain else None
        if cells is None:
            self.plain, self.recent, self.files = False, [], []
        else:
            for part in _portions(cells):
                self._add(part)

    def _add(self, cells: pa.Table) -> None:
        run = CellRun.of(cells)
        while self.recent and self.recent[-1].nbytes <= min(_GROWTH * run.nbytes, RUN_BYTES - run.nbytes):
            run = CellRun.of(pa.concat_tables([self.recent.pop().all_cells(), cells]))
            cells = run.all_cells()
        self.recent.append(run)

    def spill(self, directory: Path, table: str, name: str) -> None:
        """Move the runs in memory to a local file. Raises OSError."""
        known = sum(len(file.manifest.logs) for file in self.files)
        made = write(directory, name, Manifest(table, None, self.logs[known:]), self.recent)
        self.files.append(made)
        self.recent = []


def files_of(piece: FileSlice) -> tuple[LakeFile | None, tuple[LakeFile, ...]]:
    """The base file of a slice and its log files in merge order."""
    base = lake_file(piece.base_file) if piece.base_file is not None else None
    return base, tuple(lake_file(log) for log in piece.log_files)


def from_disk(directory: Path, table: str, name: str, piece: FileSlice) -> GroupCells:
    """What local files have of a slice: at least the base file's cells, and log files' behind them; else nothing
    (``files`` is empty). Other local files of the file group are removed: they belong to a slice that was.

    Args:
        directory: of the table's local files.
        table: the URI of the table.
        name: the beginning of the names of the file group's local files.
        piece: the slice.
    """
    base, logs = files_of(piece)
    manifests = [(path, manifest) for path in _paths(directory, name) if (manifest := read_manifest(path)) is not None]
    mine = [(path, manifest) for path, manifest in manifests if manifest.table == table]
    kept = GroupCells(base)
    if base is not None:
        kept.files = _opened(path for path, manifest in mine if manifest.base == base)[:1]
    while base is None or kept.files:
        left = logs[len(kept.logs) :]
        further = _opened(p for p, m in mine if m.base is None and m.logs and m.logs == left[: len(m.logs)])[:1]
        if not further:
            break
        kept.files += further
        kept.logs += further[0].manifest.logs
    for path in set(_paths(directory, name)) - {file.path for file in kept.files}:
        remove(path)
    return kept


def write(directory: Path, name: str, manifest: Manifest, runs: Iterable[CellRun]) -> RunFile:
    """Write a local file of a file group, and open it. Raises OSError."""
    made_from = (manifest.table, manifest.base, manifest.logs)
    digest = hashlib.blake2b(repr(made_from).encode(), digest_size=8).hexdigest()
    path = directory / f"{name}.{digest}{SUFFIX}"
    directory.mkdir(parents=True, exist_ok=True)
    write_run_file(path, manifest, runs)
    opened = open_run_file(path)
    if opened is None:
        raise OSError(f"{path} is not what was written")
    return opened


def base_runs(storage: Storage, base: BaseFile) -> Iterator[CellRun]:
    """The runs of a base file, one row group after the other. Raises CorruptDataError, StorageError."""
    with open_base_file(storage, base.path, STORED_SCHEMA.names, base.size) as file:
        for cells in file.row_groups():
            yield from map(CellRun.of, _portions(aligned(cells, STORED_SCHEMA)))


def _paths(directory: Path, name: str) -> list[Path]:
    return sorted(directory.glob(f"{name}.*{SUFFIX}"))


def _opened(paths: Iterable[Path]) -> list[RunFile]:
    return [file for path in paths if (file := open_run_file(path)) is not None]


def _portions(cells: pa.Table) -> Iterator[pa.Table]:
    """The cells in their order, as many at once as a run may have; a single one may be larger."""
    if cells.num_rows > RUN_CELLS or (cells.nbytes > RUN_BYTES and cells.num_rows > 1):
        half = cells.num_rows // 2
        yield from _portions(cells.slice(0, half))
        yield from _portions(cells.slice(half))
    elif cells.num_rows:
        yield cells


def _whole_rows(reader: SliceReader, log_files: Iterable[LogFile]) -> pa.Table | None:
    """The rows of log files, the newest of each key; None if they have deletes or partial rows."""
    events = LogEvents(reader.working_schema(), reader.ordering_field)
    for log_file in log_files:
        reader.take_log_file(events, log_file)
    partial = bool(events.partial_tables)
    log = events.merged()
    if partial or (log.winners.row < 0).any():
        return None
    return log.rows.table.take(pa.array(log.winners.row)).select(STORED_SCHEMA.names)
