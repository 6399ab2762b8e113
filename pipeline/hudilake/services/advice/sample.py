"""Rows of a table, drawn from its files, on which orders are tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.format.files.view import FileSlice
from hudilake.read import TableReader

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rows of one file slice, in the order in which it holds them.

    Args:
        piece: the slice.
        rows: of it, evenly drawn.
        total: the rows of the slice.
    """

    piece: FileSlice
    rows: pa.Table
    total: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of some file slices.

    Args:
        schema: of the rows.
        drawn: the slices that were read.
        stands_for: how many bytes of the table each byte of those slices stands for, at least 1.
    """

    schema: pa.Schema
    drawn: tuple[Drawn, ...]
    stands_for: float

    @property
    def rows(self) -> pa.Table:
        """All drawn rows."""
        return pa.concat_tables([self.schema.empty_table(), *(one.rows for one in self.drawn)])


def draw(reader: TableReader, columns: Sequence[str], rows: int, most_slices: int, seed: int) -> Sample:
    """Rows of a table.

    Args:
        reader: the table.
        columns: of the rows.
        rows: about how many; a slice gives its share by its bytes.
        most_slices: so many slices are read, chosen by chance if the table has more; each is read as a whole, with
            these columns only.
        seed: the same table and seed give the same rows.

    Raises as ``TableReader.plan`` and ``SliceScan.read``.
    """
    plan, chance = reader.plan(columns=columns), np.random.default_rng(seed)
    pieces = list(plan.slices)
    if len(pieces) > most_slices:
        pieces = [pieces[i] for i in sorted(chance.choice(len(pieces), most_slices, replace=False).tolist())]
    size = sum(map(_bytes, pieces))
    drawn = []
    for piece in pieces:
        whole = pa.Table.from_batches(list(plan.scan.read(piece)), plan.scan.schema)
        wanted = min(whole.num_rows, max(1, round(rows * _bytes(piece) / size)))
        places = np.sort(chance.choice(whole.num_rows, wanted, replace=False)) if wanted else np.zeros(0, np.int64)
        drawn.append(Drawn(piece, whole.take(pa.array(places)), whole.num_rows))
    return Sample(plan.scan.schema, tuple(drawn), plan.size / size if size else 1.0)


def _bytes(piece: FileSlice) -> int:
    return max(1, piece.base_size + piece.log_size)
