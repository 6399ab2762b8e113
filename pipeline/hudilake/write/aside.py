"""Rows that wait in files on local disk (Arrow IPC) until their order is known."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from hudilake.format.files.log_rows import Longs


class AsideRows:
    """The rows of some files, numbered through, one file after the other. Safe to use from several threads.

    Args:
        batches: of the files, which are mapped into memory, not read.
    """

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self._batches = batches
        self._starts = np.cumsum([0, *(batch.num_rows for batch in batches)])

    @classmethod
    @contextlib.contextmanager
    def open(cls, paths: Sequence[Path]) -> Iterator[AsideRows]:
        """Open files of one schema, each with all its batches."""
        with contextlib.ExitStack() as stack:
            readers = [pa.ipc.open_file(stack.enter_context(pa.memory_map(str(path)))) for path in paths]
            yield cls([reader.get_batch(n) for reader in readers for n in range(reader.num_record_batches)])

    def take(self, places: Longs) -> pa.Table:
        """The rows with these numbers, n > 0 of them, in that order."""
        number = np.searchsorted(self._starts, places, side="right") - 1
        by_batch = np.argsort(number, kind="stable")
        wanted = places[by_batch]
        batches, firsts = np.unique(number[by_batch], return_index=True)
        parts = [
            _rows(self._batches[batch], rows - self._starts[batch])
            for batch, rows in zip(batches.tolist(), np.split(wanted, firsts[1:]), strict=True)
        ]
        back = np.empty(len(places), dtype=np.int64)
        back[by_batch] = np.arange(len(places))
        return pa.concat_tables(parts).take(pa.array(back))


def _rows(batch: pa.RecordBatch, places: Longs) -> pa.Table:
    """The rows at these indexes, n > 0 of them; without a copy where they are a run."""
    first, count = int(places[0]), len(places)
    if bool((places == np.arange(first, first + count)).all()):
        return pa.table(batch.slice(first, count))
    return pa.table(batch).take(pa.array(places))
