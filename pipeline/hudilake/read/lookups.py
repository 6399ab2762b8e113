"""Index lookups over many files: in this process, cached for the next plan, or in tasks that return one bit per
file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.column_stats import ColumnRange
from hudilake.metadata.records.delta import FileKey
from hudilake.metadata.records.file_group import FileGroup
from hudilake.metadata.records.reader import MetadataReader
from hudilake.read.filters.bounds import ColumnBounds, column_bounds, may_match, span
from hudilake.read.filters.evaluate import Flags
from hudilake.read.filters.expressions import Filter, columns_of
from hudilake.read.index import FileLookups
from hudilake.read.slice_files import SliceFiles

#: Index rows (files times columns) of one task.
ROWS_PER_TASK: Final = 20_000

#: A part of an index read. It can be pickled, opens its files by itself, and returns packed bits.
IndexTask: TypeAlias = Callable[[], bytes]
#: Runs tasks in any process and returns their results in the tasks' order.
IndexExecutor: TypeAlias = Callable[[Sequence[IndexTask]], Iterable[bytes]]


def run_here(tasks: Sequence[IndexTask]) -> Iterable[bytes]:
    """The executor without a cluster: one task after the other."""
    return (task() for task in tasks)


@dataclass
class LoadedStats:
    """Column statistics of the files of some slices, each read once.

    Args:
        files: the slices.
        schema: the columns in the types in which they are read, meta fields included.
    """

    files: SliceFiles
    schema: pa.Schema
    _ranges: dict[str, list[ColumnRange | None]] = field(default_factory=dict)
    _loaded: dict[str, Flags] = field(default_factory=dict)
    _indexed: dict[str, Flags] = field(default_factory=dict)
    _bounds: dict[str, ColumnBounds] = field(default_factory=dict)

    def missing(self, columns: Iterable[str], selected: Flags) -> int:
        """The number of index rows to read for those columns of the marked files."""
        seen = (self._loaded.get(column) for column in columns)
        return sum(int((selected if loaded is None else selected & ~loaded).sum()) for loaded in seen)

    def bounds(self, reader: FileLookups, columns: Iterable[str], selected: Flags) -> dict[str, ColumnBounds]:
        """Bounds over all files; those of files not in ``selected`` may be unknown. Raises as ``reader``."""
        return {column: self._column(reader, column, selected) for column in columns}

    def _column(self, reader: FileLookups, column: str, selected: Flags) -> ColumnBounds:
        count = len(self.files.files)
        ranges = self._ranges.setdefault(column, [None] * count)
        loaded = self._loaded.setdefault(column, np.zeros(count, dtype=np.bool_))
        missing = np.flatnonzero(selected & ~loaded)
        if len(missing) or column not in self._bounds:
            ranges_by_file = reader.column_ranges([column], [self.files.files[i] for i in missing])
            for i in missing.tolist():
                ranges[i] = ranges_by_file.get(self.files.files[i], {}).get(column)
            loaded[missing] = True
            self._indexed[column] = np.array([item is not None for item in ranges], dtype=np.bool_)
            kind = self.schema.field(column).type
            self._bounds[column] = column_bounds(kind, ranges, self.files.in_log.tolist())
        return self._bounds[column]

    def indexed(self, columns: Iterable[str], selected: Flags) -> int:
        """The number of marked files with statistics of at least one of the columns."""
        some = np.zeros(len(self.files.files), dtype=np.bool_)
        for column in columns:
            some |= self._indexed[column]
        return int((some & selected).sum())


@dataclass(frozen=True)
class StatsTask:
    """The files that may hold rows that pass a filter."""

    groups: tuple[FileGroup, ...]
    files: tuple[FileKey, ...]
    part: Filter
    schema: pa.Schema

    def __call__(self) -> bytes:
        """One bit a file."""
        columns = columns_of(self.part)
        reader = MetadataReader({MetadataPartition.COLUMN_STATS: list(self.groups)})
        ranges_by_file = reader.column_ranges(columns, self.files)
        in_log = [name.startswith(".") for _, name in self.files]
        bounds = {
            column: column_bounds(
                self.schema.field(column).type,
                [ranges_by_file.get(file, {}).get(column) for file in self.files],
                in_log,
            )
            for column in columns
        }
        return np.packbits(may_match(self.part, bounds, len(self.files))).tobytes()


@dataclass(frozen=True)
class BloomTask:
    """The base files that may hold one of some record keys; files without a filter may.

    ``keys``: ascending. ``first``, ``last``: per file the range of the keys that its key range admits.
    """

    groups: tuple[FileGroup, ...]
    files: tuple[FileKey, ...]
    keys: pa.Array
    first: tuple[int, ...]
    last: tuple[int, ...]

    def __call__(self) -> bytes:
        """One bit a file."""
        return np.packbits(self.run(MetadataReader({MetadataPartition.BLOOM_FILTERS: list(self.groups)}))).tobytes()

    def run(self, reader: MetadataReader) -> Flags:
        """The same through an open reader."""
        filters = reader.bloom_filters(self.files)
        out = np.ones(len(self.files), dtype=np.bool_)
        for i, file in enumerate(self.files):
            keys = self.keys[self.first[i] : self.last[i]]
            if file in filters and _askable(keys):
                out[i] = filters[file].might_contain(keys).any()
        return out


def _askable(keys: pa.Array) -> bool:
    """Hadoop's filters have no empty key, so every file with a filter may hold it."""
    return "" not in keys[:1].to_pylist()


def run_tasks(executor: IndexExecutor, tasks: Sequence[StatsTask | BloomTask]) -> Flags:
    """The results of all tasks, bool array over their files in order."""
    parts = []
    for task, bits in zip(tasks, executor(tasks), strict=True):
        parts.append(np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=len(task.files)).astype(np.bool_))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)


def chunked(count: int, size: int) -> list[slice]:
    """``range(count)`` in chunks of at most ``size``."""
    return [slice(start, min(start + size, count)) for start in range(0, count, max(size, 1))]


def key_spans(
    bounds: Mapping[str, ColumnBounds], keys: pa.Array, count: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Per file the ascending keys that its key range admits: all of them if its key range is unknown."""
    key_bounds = bounds.get(RECORD_KEY_FIELD)
    if key_bounds is None:
        return (0,) * count, (len(keys),) * count
    first, last = span(key_bounds, keys)
    return tuple(first.tolist()), tuple(last.tolist())
