"""The numbers of the ranges into which sorted bounds divide values."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.compiled import LONG, LONGS, NOTHING, ULONGS, compiled
from hudilake.format.definition.xxhash32 import utf8_of
from hudilake.format.layout.search_tree import fill_tree, rank, tree_height
from hudilake.format.layout.text_search import text_ranges

_Longs: TypeAlias = npt.NDArray[np.int64]
_Ulongs: TypeAlias = npt.NDArray[np.uint64]


def ranges_of(values: pa.Array, bounds: pa.Array) -> _Longs:
    """How many bounds are not above each value, int64 of n; anything where a value is null.

    Args:
        values: n values: uint64 or large_binary, as ``comparable`` makes them.
        bounds: of the same type, ascending, without nulls and duplicates.
    """
    if not len(bounds):
        return np.zeros(len(values), dtype=np.int64)
    if values.type != pa.uint64():
        return text_ranges(utf8_of(values), utf8_of(bounds))
    marks = np.array(bounds.to_numpy(), dtype=np.uint64)
    tree = np.empty(1 << tree_height(len(marks)), dtype=np.uint64)
    fill_tree(marks, 0, len(marks), tree, 0)
    found = np.empty(len(values), dtype=np.int64)
    _search(np.array(values.fill_null(0).to_numpy(), dtype=np.uint64), tree, len(marks), found)
    return found


@compiled(NOTHING(ULONGS, ULONGS, LONG, LONGS))
def _search(values: _Ulongs, tree: _Ulongs, count: int, found: _Longs) -> None:
    for row in range(len(values)):
        found[row] = rank(tree, 0, count, values[row])
