"""The newest visible version of each column of each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import FAMILY, QUALIFIER, ROW, TIMESTAMP
from binlake.decode.types.cell_text import bytes_of
from binlake.hbase.rules.piecewise import Int64s, Mask, mask_of
from binlake.hbase.settings.declared import WideColumn


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
    row_indices = row.to_numpy().astype(np.int64)
    column = (row_indices * max(1, len(families)) + family) * max(1, len(qualifiers)) + qualifier
    order = np.lexsort((cells.column(TIMESTAMP).to_numpy(), column))
    ordered = column[order]
    last = np.ones(len(order), dtype=bool)
    last[:-1] = ordered[1:] != ordered[:-1]
    cell = order[last]
    return Newest(cell, row_indices[cell], family[cell], qualifier[cell], families, qualifiers)


def _sorted_codes(names: pa.ChunkedArray) -> tuple[Int64s, pa.Array]:
    """The place of each name among the distinct names, and these, sorted."""
    encoded = names.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    return rank[encoded.indices.to_numpy()], encoded.dictionary.take(order)


# Which column of a wide table holds a cell: the column of its qualifier, else the map with the longest prefix.

#: The place of a cell that no column holds.
NOWHERE: Final = -1


def place_of_columns(newest: Newest, columns: Sequence[WideColumn]) -> Int64s:
    """For each of m cells the place in ``columns`` of the column that holds it, or NOWHERE."""
    table = np.full((len(newest.families), len(newest.qualifiers)), NOWHERE, dtype=np.int64)
    families = {name: index for index, name in enumerate(newest.families.to_pylist())}
    names = bytes_of(newest.qualifiers)
    numbered = sorted(enumerate(columns), key=lambda item: _rank(item[1]))
    for index, column in numbered:
        family = families.get(column.family or "")
        if family is None:
            continue
        if column.qualifier is None:
            table[family, mask_of(pc.starts_with(names, column.prefix))] = index
        elif (qualifier_index := pc.index(newest.qualifiers, column.qualifier).as_py()) >= 0:
            table[family, qualifier_index] = index
    return table[newest.family, newest.qualifier]


def _rank(column: WideColumn) -> tuple[bool, int]:
    """Columns come after maps, maps by the length of their prefix: a later one takes cells from an earlier one."""
    return column.qualifier is not None, len(column.prefix)
