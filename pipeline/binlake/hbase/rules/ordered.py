"""Cells as columns of numbers, column by column of the store and newest version first, for compiled functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import FAMILY, KIND, QUALIFIER, ROW, TIMESTAMP, CellKind
from binlake.hbase.settings.families import FamilyRule
from binlake.hbase.settings.rules import CellsRule
from hudilake.errors import CorruptDataError

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: The column of the lake that holds the sequence id (``binlake.decode.cells``).
ORDER: Final = "_binlake_order"
#: Kinds as numbers. At one timestamp, markers sort before the values that they mask.
DELETE_FAMILY, DELETE_FAMILY_VERSION, DELETE_COLUMN, DELETE, DELETE_RANGE, PUT = range(6)
_KINDS: Final = (
    CellKind.DELETE_FAMILY,
    CellKind.DELETE_FAMILY_VERSION,
    CellKind.DELETE_COLUMN,
    CellKind.DELETE,
    CellKind.DELETE_RANGE,
    CellKind.PUT,
)
_NO_LIMIT: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class OrderedCells:
    """n cells, by row and family (markers of the family first), by qualifier, the newest timestamp first.

    All arrays are int64 of n.

    Args:
        at: where the cell is in the table that it comes from.
        group: row and family as one number.
        column: row, family and qualifier as one number; a family's markers have one of their own.
        family: the index in the rules.
        timestamp: in the store's unit.
        kind: as the numbers above.
        start: of a ``DELETE_RANGE`` the timestamp that it masks from, 0 of others.
        order: the sequence id.
    """

    at: Longs
    group: Longs
    column: Longs
    family: Longs
    timestamp: Longs
    kind: Longs
    start: Longs
    order: Longs

    def chosen(self, flags: Bools) -> OrderedCells:
        """Some of the cells; ``flags``: bool of n."""
        parts = (self.at, self.group, self.column, self.family, self.timestamp, self.kind, self.start, self.order)
        return OrderedCells(*(part[flags] for part in parts))


@dataclass(frozen=True, slots=True)
class FamilyRules:
    """What families keep, as numbers; all arrays are int64, one value a family.

    Args:
        names: of the families.
        versions: how many versions of a column are visible.
        oldest: the least timestamp that is not expired.
        min_versions: how many versions stay visible although they are expired.
        by_sequence: 1 where a marker masks only what was written before it.
        keep_deleted: whether a marker masks only in reads as of its timestamp or later (bool).
        declared: whether the settings name the family (bool).
    """

    names: pa.Array
    versions: Longs
    oldest: Longs
    min_versions: Longs
    by_sequence: Longs
    keep_deleted: Bools
    declared: Bools

    def of(self, cells: pa.Table) -> Longs:
        """The index of each cell's family, int64 of n."""
        family_indices: Longs = pc.index_in(cells[FAMILY].combine_chunks(), self.names).to_numpy().astype(np.int64)
        return family_indices


def family_rules(cells: pa.Table, rule: CellsRule, now_ms: int) -> FamilyRules:
    """The rules of the families of the cells, for reads at the wall time ``now_ms``."""
    names = cells[FAMILY].combine_chunks().unique()
    rules = [rule.family(name) for name in names.to_pylist()]
    return FamilyRules(
        names,
        np.array([one.versions for one in rules], dtype=np.int64),
        np.array([_oldest(one, rule, now_ms) for one in rules], dtype=np.int64),
        np.array([one.min_versions for one in rules], dtype=np.int64),
        np.array([one.by_sequence for one in rules], dtype=np.int64),
        np.array([one.keep_deleted for one in rules], dtype=np.bool_),
        np.array([one in rule.families for one in rules], dtype=np.bool_),
    )


def ordered(cells: pa.Table, families: FamilyRules) -> OrderedCells:
    """The cells put in order.

    Args:
        cells: n rows with the columns of ``CELL_KEY`` and ``ORDER``, each key once, in any order.
        families: of the cells.

    Raises:
        CorruptDataError: a kind is not known.
    """
    kind, start = _kinds(cells[KIND].combine_chunks())
    row = cells[ROW].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    family = families.of(cells)
    words = cells[QUALIFIER].combine_chunks().dictionary_encode()
    qualifier = np.where(kind <= DELETE_FAMILY_VERSION, 0, words.indices.to_numpy().astype(np.int64) + 1)
    group = row * max(len(families.names), 1) + family
    column = _numbered(group, qualifier, len(words.dictionary) + 1)
    timestamp = cells[TIMESTAMP].combine_chunks().to_numpy()
    order = cells[ORDER].combine_chunks().cast(pa.int64()).to_numpy()
    permutation = np.lexsort((kind, ~timestamp, column))
    return OrderedCells(
        permutation,
        group[permutation],
        column[permutation],
        family[permutation],
        timestamp[permutation],
        kind[permutation],
        start[permutation],
        order[permutation],
    )


def _oldest(family: FamilyRule, rule: CellsRule, now_ms: int) -> int:
    least = int(_NO_LIMIT)
    return least if family.ttl_ms is None else max((now_ms - family.ttl_ms) * rule.ticks_per_ms, least)


def _numbered(group: Longs, qualifier: Longs, qualifiers: int) -> Longs:
    """Both as one number, in the order of both; int64 of n."""
    if len(group) and int(group.max()) >= np.iinfo(np.int64).max // qualifiers:
        group = np.unique(group, return_inverse=True)[1].astype(np.int64)
    return group * qualifiers + qualifier


def _kinds(texts: pa.Array) -> tuple[Longs, Longs]:
    """The number of each kind, and where a range starts."""
    words = texts.dictionary_encode()
    kind_numbers, starts = _words(words.dictionary)
    codes = words.indices.to_numpy()
    return kind_numbers[codes], starts[codes]


def _words(kinds: pa.Array) -> tuple[Longs, Longs]:
    head = CellKind.DELETE_RANGE + ":"
    ranged = pc.starts_with(kinds, head)
    names = pc.if_else(ranged, CellKind.DELETE_RANGE.value, kinds)
    kind_numbers = pc.index_in(names, pa.array([kind.value for kind in _KINDS], pa.string()))
    start = pc.if_else(ranged, pc.utf8_slice_codeunits(kinds, len(head)), "0")
    if kind_numbers.null_count:
        raise CorruptDataError(
            "a cell is of a kind that is not known",
            kind=kinds.filter(kind_numbers.is_null())[0].as_py(),
            do_next="the table of cells was written by another version or program; read it with that one",
        )
    return kind_numbers.to_numpy().astype(np.int64), start.cast(pa.int64()).to_numpy()
