"""The live rows of a unit in temporary files on local disk, and what puts them in order."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.hudi.layout.order import places, sort_keys
from pipeline.hudi.rewrite.merge import STRETCH_ROWS
from pipeline.hudi.services.clustering.context import COMMIT_TIME, LayOutContext
from pipeline.hudi.services.clustering.plan import Unit
from pipeline.hudi.services.clustering.sources import rows_of
from pipeline.storage.base import Storage

Longs = npt.NDArray[np.int64]
Weights = npt.NDArray[np.uint32]

_CODE: Final = pa.int32()
_NONE: Final = np.empty(0, dtype=np.uint32)


@dataclass(frozen=True)
class Spilled:
    """The n live rows of a unit.

    Args:
        paths: temporary files (Arrow IPC) with the rows in ``LayOutContext.stored``'s columns; a commit time is the
            number of a text in ``times``.
        times: the commit times.
        order: the numbers of the rows, as they are wanted, int64 array of n. Rows are numbered file by file.
        weights: about the decoded bytes of each row, uint32 array of n.
    """

    paths: tuple[Path, ...]
    times: tuple[str, ...]
    order: Longs
    weights: Weights


@dataclass
class _Times:
    """Numbers of commit times. Safe to use from several threads."""

    numbers: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def codes(self, times: pa.ChunkedArray) -> pa.Array:
        """The number of each of n texts, int32 array of n."""
        encoded = times.combine_chunks().dictionary_encode()
        with self._lock:
            known = [self.numbers.setdefault(text, len(self.numbers)) for text in encoded.dictionary.to_pylist()]
        return pa.array(known, _CODE).take(encoded.indices)


@dataclass
class _Part:
    """What is known of the rows of one source. ``first``: the number of the first one in its file of rows."""

    first: int
    keys: list[pa.Table] = field(default_factory=list)
    weights: list[Weights] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many rows."""
        return sum(map(len, self.weights))


def spilled(storage: Storage, context: LayOutContext, unit: Unit, directory: Path) -> Spilled:
    """Read the sources of a unit, several at once, and put their live rows aside.

    Args:
        storage: the table's root.
        context: of the clustering.
        unit: what to read.
        directory: an empty one on local disk; it gets about the decoded size of the rows.

    Errors as ``lay_out``.
    """
    times, waiting = _Times(), _Waiting(len(unit.sources))
    count = min(context.config.threads, len(unit.sources))
    paths = tuple(directory / f"rows-{number}" for number in range(count))

    def fill(path: Path) -> dict[int, _Part]:
        return _fill(storage, context, unit, path, waiting, times)

    with ThreadPoolExecutor(count) as pool:
        lanes = list(pool.map(fill, paths))
    return _ordered(lanes, paths, tuple(times.numbers))


def _ordered(lanes: Sequence[dict[int, _Part]], paths: tuple[Path, ...], times: tuple[str, ...]) -> Spilled:
    """Rows with equal keys stay in the order of the sources, whichever thread read them."""
    starts = np.cumsum([0, *(sum(part.count for part in lane.values()) for lane in lanes)])
    parts = {
        n: (start + part.first, part) for start, lane in zip(starts, lanes, strict=False) for n, part in lane.items()
    }
    by_source = [parts[number] for number in sorted(parts)]
    numbers = [np.arange(first, first + part.count, dtype=np.int64) for first, part in by_source]
    keys = [table for _, part in by_source for table in part.keys]
    weights = np.zeros(starts[-1], dtype=np.uint32)
    for first, part in by_source:
        weights[first : first + part.count] = np.concatenate([_NONE, *part.weights])
    order = np.concatenate([np.empty(0, dtype=np.int64), *numbers])
    return Spilled(paths, times, order[places(keys)] if keys else order, weights)


@dataclass
class _Waiting:
    """The numbers from 0 to ``count``, each given once. Safe to use from several threads."""

    count: int
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __iter__(self) -> Iterator[int]:
        while True:
            with self._lock:
                number, self._next = self._next, self._next + 1
            if number >= self.count:
                return
            yield number


def _fill(
    storage: Storage, context: LayOutContext, unit: Unit, path: Path, numbers: Iterable[int], times: _Times
) -> dict[int, _Part]:
    """Put the rows of some sources aside, one source after the other; what is known of them by the source's number."""
    coded = context.stored.set(context.stored.get_field_index(COMMIT_TIME), pa.field(COMMIT_TIME, _CODE))
    at, count, parts = coded.get_field_index(COMMIT_TIME), 0, dict[int, _Part]()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, coded) as writer:
        for number in numbers:
            part = parts[number] = _Part(count)
            for stretch in _stretches(rows_of(storage, context, unit.sources[number])):
                rows = stretch
                if context.order is not None:  # each stretch is in order, so that a new file reads runs of its rows
                    keys = sort_keys(context.order, stretch, unit.bounds)
                    sorted_first = pa.array(places([keys]))
                    rows, keys = stretch.take(sorted_first), keys.take(sorted_first)
                    part.keys.append(keys)
                writer.write_table(rows.set_column(at, coded.field(at), times.codes(rows.column(at))).combine_chunks())
                part.weights.append(_weights(rows))
            count += part.count
    return parts


def _stretches(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        for at in range(0, table.num_rows, STRETCH_ROWS):
            yield table.slice(at, STRETCH_ROWS)


def _weights(rows: pa.Table) -> Weights:
    """About the decoded bytes of each row."""
    weights, fixed = np.zeros(rows.num_rows, dtype=np.uint32), 0
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            weights += pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.uint32)
            fixed += 4
        else:
            fixed += max(1, column.type.bit_width // 8) if pa.types.is_primitive(column.type) else 16
    return weights + np.uint32(fixed)
