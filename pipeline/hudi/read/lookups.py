"""Index lookups over many files: in this process, kept for the next plan; or in tasks that send back one bit a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from pipeline.hudi.definition.metadata_partition import MetadataPartition
from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.files.column_stats import ColumnRange
from pipeline.hudi.metadata.records.delta import FileKey
from pipeline.hudi.metadata.records.file_group import FileGroup
from pipeline.hudi.metadata.records.reader import MetadataReader
from pipeline.hudi.read.filters.bounds import ColumnBounds, column_bounds, may_match, span
from pipeline.hudi.read.filters.evaluate import Flags
from pipeline.hudi.read.filters.expressions import Filter, columns_of
from pipeline.hudi.read.slice_files import SliceFiles

#: Index rows (files times columns) of one task.
ROWS_PER_TASK: Final = 20_000

#: A piece of an index read. It can be pickled, opens what it needs by itself, and gives packed bits.
IndexTask: TypeAlias = Callable[[], bytes]
#: Runs tasks wherever it likes and gives their answers in the tasks' order.
IndexExecutor: TypeAlias = Callable[[Sequence[IndexTask]], Iterable[bytes]]


def run_here(tasks: Sequence[IndexTask]) -> Iterable[bytes]:
    """The executor of those who have no cluster: one task after the other."""
    return (task() for task in tasks)


@dataclass
class LoadedStats:
    """Column statistics of the files of some slices, each read once.

    Args:
        files: the slices.
        schema: the columns in the types they are read in, meta fields included.
    """

    files: SliceFiles
    schema: pa.Schema
    _ranges: dict[str, list[ColumnRange | None]] = field(default_factory=dict)
    _loaded: dict[str, Flags] = field(default_factory=dict)
    _indexed: dict[str, Flags] = field(default_factory=dict)
    _bounds: dict[str, ColumnBounds] = field(default_factory=dict)

    def missing(self, columns: Iterable[str], wanted: Flags) -> int:
        """Index rows that would have to be read for those columns of the files marked."""
        seen = (self._loaded.get(column) for column in columns)
        return sum(int((wanted if loaded is None else wanted & ~loaded).sum()) for loaded in seen)

    def bounds(self, reader: MetadataReader, columns: Iterable[str], wanted: Flags) -> dict[str, ColumnBounds]:
        """Bounds over all files; of files not marked in ``wanted`` nothing may be known. Raises as ``reader``."""
        return {column: self._column(reader, column, wanted) for column in columns}

    def _column(self, reader: MetadataReader, column: str, wanted: Flags) -> ColumnBounds:
        count = len(self.files.files)
        ranges = self._ranges.setdefault(column, [None] * count)
        loaded = self._loaded.setdefault(column, np.zeros(count, dtype=np.bool_))
        missing = np.flatnonzero(wanted & ~loaded)
        if len(missing) or column not in self._bounds:
            found = reader.column_ranges([column], [self.files.files[i] for i in missing])
            for i in missing.tolist():
                ranges[i] = found.get(self.files.files[i], {}).get(column)
            loaded[missing] = True
            self._indexed[column] = np.array([item is not None for item in ranges], dtype=np.bool_)
            kind = self.schema.field(column).type
            self._bounds[column] = column_bounds(kind, ranges, self.files.in_log.tolist())
        return self._bounds[column]

    def indexed(self, columns: Iterable[str], wanted: Flags) -> int:
        """How many of the files marked have statistics of at least one of the columns."""
        some = np.zeros(len(self.files.files), dtype=np.bool_)
        for column in columns:
            some |= self._indexed[column]
        return int((some & wanted).sum())


@dataclass(frozen=True)
class StatsTask:
    """Which of some files may hold rows that pass a filter."""

    groups: tuple[FileGroup, ...]
    files: tuple[FileKey, ...]
    part: Filter
    schema: pa.Schema

    def __call__(self) -> bytes:
        """One bit a file."""
        columns = columns_of(self.part)
        reader = MetadataReader({MetadataPartition.COLUMN_STATS: list(self.groups)})
        found = reader.column_ranges(columns, self.files)
        in_log = [name.startswith(".") for _, name in self.files]
        bounds = {
            column: column_bounds(
                self.schema.field(column).type, [found.get(file, {}).get(column) for file in self.files], in_log
            )
            for column in columns
        }
        return np.packbits(may_match(self.part, bounds, len(self.files))).tobytes()


@dataclass(frozen=True)
class BloomTask:
    """Which of some base files may hold one of some record keys; files without a filter may.

    ``keys``: ascending. ``first``, ``last``: per file the part of the keys that its key range admits.
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
    """Hadoop's filters hold no empty key: a file that has one may hold it."""
    return "" not in keys[:1].to_pylist()


def run_tasks(executor: IndexExecutor, tasks: Sequence[StatsTask | BloomTask]) -> Flags:
    """The answers of all tasks, bool array over their files in order."""
    parts = []
    for task, bits in zip(tasks, executor(tasks), strict=True):
        parts.append(np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=len(task.files)).astype(np.bool_))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)


def chunked(count: int, size: int) -> list[slice]:
    """``range(count)`` in pieces of at most ``size``."""
    return [slice(start, min(start + size, count)) for start in range(0, count, max(size, 1))]


def key_spans(
    bounds: Mapping[str, ColumnBounds], keys: pa.Array, count: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Per file which of the ascending keys its key range admits: all of them where nothing is known of it."""
    known = bounds.get(RECORD_KEY_FIELD)
    if known is None:
        return (0,) * count, (len(keys),) * count
    first, last = span(known, keys)
    return tuple(first.tolist()), tuple(last.tolist())
