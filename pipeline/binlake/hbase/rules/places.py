"""Which column of a wide table holds a cell: the column of its qualifier, else the map with the longest prefix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow.compute as pc

from binlake.decode.types.cell_text import bytes_of
from binlake.hbase.rules.buffers import Int64s, mask_of
from binlake.hbase.rules.newest import Newest
from binlake.hbase.settings.columns import WideColumn

#: The place of a cell that no column holds.
NOWHERE: Final = -1


def place_of_columns(newest: Newest, columns: Sequence[WideColumn]) -> Int64s:
    """For each of m cells the place in ``columns`` of the column that holds it, or NOWHERE."""
    table = np.full((len(newest.families), len(newest.qualifiers)), NOWHERE, dtype=np.int64)
    families = {name: at for at, name in enumerate(newest.families.to_pylist())}
    names = bytes_of(newest.qualifiers)
    numbered = sorted(enumerate(columns), key=lambda item: _rank(item[1]))
    for at, column in numbered:
        family = families.get(column.family or "")
        if family is None:
            continue
        if column.qualifier is None:
            table[family, mask_of(pc.starts_with(names, column.prefix))] = at
        elif (found := pc.index(newest.qualifiers, column.qualifier).as_py()) >= 0:
            table[family, found] = at
    return table[newest.family, newest.qualifier]


def _rank(column: WideColumn) -> tuple[bool, int]:
    """Columns come after maps, maps by the length of their prefix: a later one takes cells from an earlier one."""
    return column.qualifier is not None, len(column.prefix)
