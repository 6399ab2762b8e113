"""Rows that go aside to local disk and come back in an order: that of the record keys, or one of other columns.

The rows are in an Arrow file that is mapped into memory, so that only the numbers of the rows, the columns that sort
them and the rows that are gathered at once take memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.log_rows import Longs
from hudilake.format.layout.order import Order, places, sort_keys
from hudilake.write.merge import SortedLog, gathered, merge_any
from hudilake.write.retention import KeptRows

#: The rows of a file by which values are numbered. The ranges need be fine for the row groups of one file only.
_SAMPLE_ROWS: Final = 32_768


class OrderedRows:
    """Rows in a temporary file, which is there from the first row on. Add all rows, close it, take them in their order.

    Args:
        path: of a new file on local disk; it gets the size of the uncompressed rows.
        schema: of the rows.
        order: of the rows; None for that of the record keys.
    """

    def __init__(self, path: Path, schema: pa.Schema, order: Order | None) -> None:
        self._path, self._schema, self._order = path, schema, order
        self._writer: pa.RecordBatchFileWriter | None = None
        #: The number of rows.
        self.rows = 0

    def add(self, rows: pa.Table) -> None:
        """Add rows."""
        if self._writer is None:
            self._writer = pa.ipc.new_file(str(self._path), self._schema)
        self._writer.write_table(rows.combine_chunks())
        self.rows += rows.num_rows

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()

    def in_order(self, at_once: tuple[int, int]) -> Iterator[pa.Table]:
        """All rows in their order; those that are equal in it stay as they were added. The file is removed after them.

        ``at_once``: the largest number of rows, and about the largest number of bytes, gathered at once.
        """
        if self.rows:
            yield from gathered(self._path, self._places(), at_once)
            self._path.unlink()

    def _places(self) -> Longs:
        """The numbers of the rows in their order, from the columns of the mapped file alone."""
        columns = [RECORD_KEY_FIELD] if self._order is None else list(self._order.columns)
        with pa.memory_map(str(self._path)) as source, pa.ipc.open_file(source) as reader:
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
            parts = [pa.table(batch.select(columns)) for batch in batches]
            if self._order is not None:
                return _places_of(self._order, parts)
            keys = pa.concat_tables(parts).column(RECORD_KEY_FIELD)
            return np.asarray(pc.sort_indices(keys).to_numpy(), dtype=np.int64)


def _places_of(order: Order, parts: Sequence[pa.Table]) -> Longs:
    """``parts``: the rows of one file; where values are numbered by ranges, these are of its rows alone."""
    bounds = None
    if order.sampled:
        from hudilake.format.layout.bounds import bounds_of  # these need compiled loops, seconds to import
        from hudilake.format.layout.sketch import sketch

        bounds = bounds_of(order, [sketch(order, parts, 0, _SAMPLE_ROWS)])
    return places([sort_keys(order, part, bounds) for part in parts])


def merge_in_order(
    base: Iterable[pa.Table],
    log: SortedLog,
    aside: Path,
    order: Order | None,
    at_once: tuple[int, int],
    kept: KeptRows | None = None,
) -> Iterator[pa.Table]:
    """The live rows in an order, for a base file in any order.

    Args:
        base, log: as ``merge.merge_sorted``.
        aside, order: as ``OrderedRows``.
        at_once: as ``OrderedRows.in_order``.
        kept: leaves rows out; they then go aside twice if the order is not that of the record keys.
    """
    schema, merged = log.rows.table.schema, merge_any(base, log)
    if kept is None:
        yield from _through(aside, schema, order, merged, at_once)
        return
    by_key = kept(_through(aside.with_name(f"{aside.name}-by-key"), schema, None, merged, at_once))
    yield from by_key if order is None else _through(aside, schema, order, by_key, at_once)


def _through(
    aside: Path, schema: pa.Schema, order: Order | None, rows: Iterable[pa.Table], at_once: tuple[int, int]
) -> Iterator[pa.Table]:
    with closing(OrderedRows(aside, schema, order)) as ordered:
        for some in rows:
            ordered.add(some)
    yield from ordered.in_order(at_once)
