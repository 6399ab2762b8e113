"""What a table's files would hold if its rows were in another order: tried on a sample.

The rows of a sample are sorted as clustering (or compaction) sorts those of the table, cut into as many pieces, and the
least and greatest values of each piece select pieces by the same rule as those of files do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.format.files.view import FileSlice
from hudilake.format.layout.bounds import bounds_of
from hudilake.format.layout.cuts import ends, seams
from hudilake.format.layout.order import Order, places, sort_keys
from hudilake.format.layout.sketch import sample_size, sketch
from hudilake.read.filters.bounds import ColumnBounds, comparison_type, may_match
from hudilake.read.filters.expressions import Filter
from hudilake.services.advice.sample import Sample

Longs = npt.NDArray[np.int64]
#: Pieces with fewer drawn rows would have ranges that are too narrow: several pieces are then one.
_ROWS_A_PIECE: Final = 40


@dataclass(frozen=True, slots=True)
class Together:
    """Drawn rows that are sorted together.

    Args:
        rows: drawn rows.
        pieces: the number of files (or row groups) that the rows behind them become.
        at_seams: whether a piece ends at a seam of the curve (``layout.cuts``), as a file of a clustering does, and not
            after a fixed number of rows, as a row group.
    """

    rows: pa.Table
    pieces: float
    at_seams: bool


def clustered(sample: Sample, target_bytes: int, group_bytes: int) -> list[Together]:
    """The rows that a clustering sorts together: file slices of one partition, up to ``group_bytes``; files of
    ``target_bytes``."""
    out: list[Together] = []
    by_path: dict[str, list[int]] = {}
    for number, one in enumerate(sample.drawn):
        by_path.setdefault(one.piece.partition_path, []).append(number)
    for numbers in by_path.values():
        sizes = [_size(sample.drawn[number].piece) * sample.stands_for for number in numbers]
        groups = max(1, math.ceil(sum(sizes) / group_bytes))
        for group in np.array_split(np.array(numbers), min(groups, len(numbers))):
            mine = [sample.drawn[number] for number in group.tolist()]
            size = sum(_size(one.piece) for one in mine) * sample.stands_for
            files = max(1, math.ceil(size / target_bytes))
            out.append(Together(pa.concat_tables([one.rows for one in mine]), files, at_seams=True))
    return out


def in_buckets(sample: Sample, row_group_rows: int) -> list[Together]:
    """The rows of each file slice, which stay in it; row groups of ``row_group_rows``."""
    return [
        Together(one.rows, math.ceil(one.total / row_group_rows) * sample.stands_for, at_seams=False)
        for one in sample.drawn
        if one.rows.num_rows
    ]


def _size(piece: FileSlice) -> int:
    return piece.base_size + piece.log_size


@dataclass(frozen=True)
class Pieces:
    """The simulated files (or row groups).

    Args:
        bounds: of each column over the pieces.
        weights: how many files each piece stands for.
    """

    bounds: Mapping[str, ColumnBounds]
    weights: npt.NDArray[np.float64]

    @property
    def total(self) -> float:
        """The number of files."""
        return float(self.weights.sum())

    def read(self, condition: Filter) -> float:
        """The number of files that a condition reads. ``condition``: normalised."""
        return float(self.weights[may_match(condition, self.bounds, len(self.weights))].sum())


def pieces_of(together: Sequence[Together], order: Order | None, columns: Sequence[str]) -> Pieces:
    """The files that rows become.

    Args:
        together: rows that are sorted together, and the number of their files.
        order: of the rows; None leaves them as they are.
        columns: whose ranges are wanted.
    """
    tables: list[pa.Table] = []
    numbers: list[Longs] = []
    weights: list[float] = []
    for one in together:
        count = max(1, min(math.ceil(one.pieces), one.rows.num_rows // _ROWS_A_PIECE))
        rows, begins = _cut(one, order, count)
        numbers.append(len(weights) + np.searchsorted(begins, np.arange(rows.num_rows), side="right"))
        weights += [one.pieces / count] * count
        tables.append(rows)
    rows, number = pa.concat_tables(tables), pa.array(np.concatenate(numbers))
    return Pieces({name: _bounds(rows.column(name), number, len(weights)) for name in columns}, np.array(weights))


def _cut(one: Together, order: Order | None, count: int) -> tuple[pa.Table, Longs]:
    """The rows in an order, and where the pieces but the first one begin."""
    even = np.arange(1, count) * one.rows.num_rows // count
    if order is None:
        return one.rows, even
    bounds = None
    if order.sampled:
        bounds = bounds_of(order, [sketch(order, [one.rows], 0, sample_size(1))])
    keys = [sort_keys(order, one.rows, bounds)]
    numbers = places(keys)
    if one.at_seams and len(numbers):
        even = ends(np.arange(1, len(numbers) + 1), count, seams(order, keys, numbers))
    return one.rows.take(pa.array(numbers)), even


def _bounds(column: pa.ChunkedArray, number: pa.Array, count: int) -> ColumnBounds:
    """The range of a column in each piece. ``number``: the piece of each row."""
    table = pa.table({"piece": number, "value": column})
    wanted = [("value", "min"), ("value", "max"), ("value", "count"), ("piece", "count")]
    ranges = table.group_by("piece").aggregate(wanted).sort_by("piece")
    kind = comparison_type(column.type)
    row_of = np.full(count, -1, dtype=np.int64)
    row_of[ranges.column("piece").to_numpy()] = np.arange(ranges.num_rows)
    taken = ranges.take(pa.array(row_of, mask=row_of < 0)).combine_chunks()
    values = np.nan_to_num(taken.column("value_count").to_numpy().astype(np.float64))
    rows = np.nan_to_num(taken.column("piece_count").to_numpy().astype(np.float64))
    low, high = (pa.chunked_array(taken.column(name)).cast(kind) for name in ("value_min", "value_max"))
    return ColumnBounds(column.type, low.combine_chunks(), high.combine_chunks(), values > 0, values < rows)
