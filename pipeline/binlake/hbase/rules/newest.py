"""The newest visible version of each column of each row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import FAMILY, QUALIFIER, ROW, TIMESTAMP
from binlake.hbase.rules.buffers import Int64s, Mask


@dataclass(frozen=True, slots=True)
class Newest:
    """m cells, ordered by row, family and qualifier.

    Args:
        cell: the place of each in the table of cells.
        row: the place of its row in the rows that were asked for.
        family, qualifier: places in ``families`` and ``qualifiers``.
        families, qualifiers: the distinct names, sorted.
    """

    cell: Int64s
    row: Int64s
    family: Int64s
    qualifier: Int64s
    families: pa.Array
    qualifiers: pa.Array

    def where(self, mask: Mask) -> Newest:
        """Those of the cells."""
        if mask.all():
            return self
        return replace(
            self,
            cell=self.cell[mask],
            row=self.row[mask],
            family=self.family[mask],
            qualifier=self.qualifier[mask],
        )


def newest_cells(cells: pa.Table, rows: pa.Array) -> Newest:
    """The cell with the newest timestamp of each column of each row.

    Args:
        cells: n visible cells in any order; no two of one column have one timestamp.
        rows: the rows of the cells, each once.

    Raises ValueError if a cell is of another row, or a row is there twice.
    """
    if len(rows.unique()) != len(rows):
        raise ValueError("a row was asked for twice")
    row = pc.index_in(cells.column(ROW), value_set=rows)
    if row.null_count:
        raise ValueError("cells of rows that were not asked for")
    family, families = _sorted_codes(cells.column(FAMILY))
    qualifier, qualifiers = _sorted_codes(cells.column(QUALIFIER))
    at = row.to_numpy().astype(np.int64)
    column = (at * max(1, len(families)) + family) * max(1, len(qualifiers)) + qualifier
    order = np.lexsort((cells.column(TIMESTAMP).to_numpy(), column))
    ordered = column[order]
    last = np.ones(len(order), dtype=bool)
    last[:-1] = ordered[1:] != ordered[:-1]
    cell = order[last]
    return Newest(cell, at[cell], family[cell], qualifier[cell], families, qualifiers)


def _sorted_codes(names: pa.ChunkedArray) -> tuple[Int64s, pa.Array]:
    """The place of each name among the distinct names, and these, sorted."""
    encoded = names.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    return rank[encoded.indices.to_numpy()], encoded.dictionary.take(order)
