"""Which cells of an HBase-like store a read has.

The rules are HBase's (Reference Guide, "Data Model": versions, deletes, TTL), read in its source where the guide is
silent, and compared with the scans of a real HBase. A marker masks also what comes later. Where a marker and a value
have one timestamp, the marker wins. A masked value is no version, so that a delete exposes the version before. With
``by_sequence`` a marker masks only values whose sequence id is not greater than its own: equal ones are of one entry,
and the marker wins there, too (``NewVersionBehaviorTracker.isDeleted``: its ``tailMap`` is inclusive).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from binlake.hbase.rules.ordered import PUT, Bools, Bytes, FamilyRules, OrderedCells, family_rules, ordered
from binlake.hbase.settings.rules import CellsRule


@dataclass(frozen=True, slots=True)
class Moment:
    """When a read happens, and as of which timestamp.

    Args:
        now_ms: wall time in milliseconds since 1970. It decides what has expired.
        as_of_ms: values with a greater timestamp are not read; None for no such limit. Markers with a greater timestamp
            mask all the same, unless the family keeps deleted cells (as a time range of HBase's scans).
    """

    now_ms: int
    as_of_ms: int | None = None


def visible(cells: pa.Table, rule: CellsRule, moment: Moment) -> pa.BooleanArray:
    """Which cells a read of all versions has, boolean of n. Markers are never visible.

    Args:
        cells: n cells with the columns ``CELL_KEY`` and ``_binlake_order``, in any order, each key once; all cells of
            each row that is in it.
        rule: of the table of cells.
        moment: of the read.

    Raises:
        CorruptDataError: a cell's kind is not known.
    """
    families = family_rules(cells, rule, moment.now_ms)
    visible_mask = np.zeros(len(cells), dtype=np.bool_)
    cut = ordered(cells, families)
    cut = cut.chosen(_read(cut, rule, moment, families))
    visible_mask[cut.at] = shown_of(cut, families, masked_of(cut, families))
    return pa.array(visible_mask)


def masked_of(cut: OrderedCells, families: FamilyRules) -> Bytes:
    """1 for each value that a marker masks, 0 for other cells; uint8 of n."""
    from binlake.hbase.rules.masking import mask  # needs compiled loops, seconds to import

    masked = np.zeros(len(cut.at), dtype=np.uint8)
    sequence, versions = families.by_sequence, families.versions
    mask(cut.group, cut.column, cut.family, cut.timestamp, cut.kind, cut.start, cut.order, sequence, versions, masked)
    return masked


def shown_of(cut: OrderedCells, families: FamilyRules, masked: Bytes) -> Bools:
    """Which cells a read has; bool of n. ``masked``: of ``masked_of``."""
    from binlake.hbase.rules.masking import show  # needs compiled loops

    shown = np.zeros(len(cut.at), dtype=np.uint8)
    limits = (families.versions, families.oldest, families.min_versions)
    show(cut.column, cut.family, cut.timestamp, cut.kind, masked, *limits, shown)
    return shown.astype(np.bool_)


def _read(cut: OrderedCells, rule: CellsRule, moment: Moment, families: FamilyRules) -> Bools:
    """Which cells count at the moment: bool of n."""
    if moment.as_of_ms is None:
        return np.ones(len(cut.at), dtype=np.bool_)
    newest = min(moment.as_of_ms * rule.ticks_per_ms + rule.ticks_per_ms - 1, np.iinfo(np.int64).max)
    read: Bools = (cut.timestamp <= newest) | ((cut.kind != PUT) & ~families.keep_deleted[cut.family])
    return read
