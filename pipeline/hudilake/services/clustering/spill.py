"""The live rows of a unit in temporary files on local disk, and what puts them in order."""

from __future__ import annotations

import contextlib
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

from hudilake.format.definition.schema import COMMIT_TIME_FIELD
from hudilake.format.files.base_file import rows_at_once
from hudilake.format.layout.order import places, sort_keys
from hudilake.services.clustering.config import LayOutContext
from hudilake.services.clustering.plan import Unit
from hudilake.services.clustering.sources import rows_of
from hudilake.storage.base import Storage
from hudilake.write.form import BaseFileForm
from hudilake.write.merge import STRETCH_ROWS

Longs = npt.NDArray[np.int64]
Weights = npt.NDArray[np.uint32]
Seams = npt.NDArray[np.uint8]

_CODE: Final = pa.int32()


@dataclass(frozen=True)
class Spilled:
    """The n live rows of a unit.

    Args:
        paths: temporary files (Arrow IPC) with the rows in ``LayOutContext.stored``'s columns; a commit time is the
            number of a text in ``times``.
        times: the commit times.
        order: the numbers of the rows, as they are wanted, int64 array of n. Rows are numbered file by file.
        weights: about the decoded bytes of each row, uint32 array of n.
        seams: where files end well, of the rows as they are wanted (``hudilake.format.layout.cuts``).
    """

    paths: tuple[Path, ...]
    times: tuple[str, ...]
    order: Longs
    weights: Weights
    seams: Seams


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


@dataclass
class _Lane:
    """What one thread puts aside.

    Args:
        rows, keys: files (Arrow IPC) of the rows and of their sort keys, a batch a stretch of rows.
        sources: the number of the source of each stretch.
        weights: of the rows of each stretch.
    """

    rows: Path
    keys: Path
    sources: list[int] = field(default_factory=list)
    weights: list[Weights] = field(default_factory=list)

    def fill(self, storage: Storage, context: LayOutContext, unit: Unit, numbers: Iterable[int], times: _Times) -> None:
        """Put the rows of some sources aside, one source after the other."""
        i = context.stored.get_field_index(COMMIT_TIME_FIELD)
        coded = context.stored.set(i, pa.field(COMMIT_TIME_FIELD, _CODE))
        with contextlib.ExitStack() as stack:
            writer = stack.enter_context(pa.ipc.new_file(str(self.rows), coded))
            keys = _Keys(self.keys, stack)
            for number in numbers:
                for rows in _stretches(rows_of(storage, context, unit.sources[number]), context.form):
                    if context.order is not None:
                        rows = keys.sorted(rows, sort_keys(context.order, rows, unit.bounds))
                    self.sources.append(number)
                    self.weights.append(_weights(rows))
                    writer.write_table(rows.set_column(i, coded.field(i), times.codes(rows[i])).combine_chunks())


@dataclass
class _Keys:
    """A file of sort keys. ``stack``: closes it."""

    path: Path
    stack: contextlib.ExitStack
    _writer: pa.RecordBatchFileWriter | None = None

    def sorted(self, rows: pa.Table, keys: pa.Table) -> pa.Table:
        """The rows of a stretch in order, so that a new file reads runs of them; their keys are put aside."""
        order = pa.array(places([keys]))
        if self._writer is None:
            self._writer = self.stack.enter_context(pa.ipc.new_file(str(self.path), keys.schema))
        self._writer.write_table(keys.take(order).combine_chunks())
        return rows.take(order)


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
    lanes = [_Lane(directory / f"rows-{number}", directory / f"keys-{number}") for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        for _ in pool.map(lambda lane: lane.fill(storage, context, unit, waiting, times), lanes):
            pass
    weights = np.concatenate([np.empty(0, dtype=np.uint32), *(part for lane in lanes for part in lane.weights)])
    order, marks = _order(lanes, context)
    return Spilled(tuple(lane.rows for lane in lanes), tuple(times.numbers), order, weights, marks)


def _order(lanes: Sequence[_Lane], context: LayOutContext) -> tuple[Longs, Seams]:
    """The numbers of the rows as they are wanted, and the seams between them. Rows with equal keys stay in the order of
    the sources, whichever thread read them."""
    from hudilake.format.layout.cuts import seams  # needs compiled loops, seconds to import

    sources = np.array([source for lane in lanes for source in lane.sources], dtype=np.int64)
    starts = np.cumsum([0, *(len(part) for lane in lanes for part in lane.weights)])
    by_source = np.argsort(sources, kind="stable").tolist()
    numbers = [np.arange(starts[n], starts[n + 1], dtype=np.int64) for n in by_source]
    order = np.concatenate([np.empty(0, dtype=np.int64), *numbers])
    if context.order is None or not len(order):
        return order, np.zeros(len(order), dtype=np.uint8)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(pa.memory_map(str(lane.keys))) for lane in lanes if lane.sources]
        readers = [pa.ipc.open_file(file) for file in files]
        keys = [pa.table(reader.get_batch(n)) for reader in readers for n in range(reader.num_record_batches)]
        in_turn = [keys[n] for n in by_source]
        ranks = places(in_turn)
        return order[ranks], seams(context.order, in_turn, ranks)


def _stretches(tables: Iterator[pa.Table], form: BaseFileForm) -> Iterator[pa.Table]:
    for table in tables:
        step = rows_at_once(table, STRETCH_ROWS, form.at_once[1]) if table.num_rows else 1
        for start in range(0, table.num_rows, step):
            yield table.slice(start, step)


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
