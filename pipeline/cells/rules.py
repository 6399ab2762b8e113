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
import pyarrow.compute as pc

from pipeline.cells.masking import mask, show
from pipeline.cells.ordered import Bools, FamilyRules, Ordered, family_rules, ordered
from pipeline.decode.cells import FAMILY, KIND, TIMESTAMP, CellKind
from pipeline.settings.cells.rules import CellsRule


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
    families = family_rules(cells[FAMILY].combine_chunks().unique(), rule, moment.now_ms)
    found = np.zeros(len(cells), dtype=np.bool_)
    cut = ordered(cells, _read(cells, rule, moment, families), families)
    found[cut.at] = _shown(cut, families)
    return pa.array(found)


def _read(cells: pa.Table, rule: CellsRule, moment: Moment, families: FamilyRules) -> Bools:
    """Which cells count at the moment: bool of n."""
    if moment.as_of_ms is None:
        return np.ones(len(cells), dtype=np.bool_)
    newest = min(moment.as_of_ms * rule.ticks_per_ms + rule.ticks_per_ms - 1, np.iinfo(np.int64).max)
    kept = families.keep_deleted[pc.index_in(cells[FAMILY].combine_chunks(), families.names).to_numpy()]
    marker = pc.not_equal(cells[KIND].combine_chunks(), CellKind.PUT.value).to_numpy(zero_copy_only=False)
    early: Bools = cells[TIMESTAMP].combine_chunks().to_numpy() <= newest
    read: Bools = early | (marker & ~kept)
    return read


def _shown(cut: Ordered, families: FamilyRules) -> Bools:
    masked = np.zeros(len(cut.at), dtype=np.uint8)
    shown = np.zeros(len(cut.at), dtype=np.uint8)
    by_sequence, versions = families.by_sequence, families.versions
    mask(
        cut.group, cut.column, cut.family, cut.timestamp, cut.kind, cut.start, cut.order, by_sequence, versions, masked
    )
    show(
        cut.column,
        cut.family,
        cut.timestamp,
        cut.kind,
        masked,
        versions,
        families.oldest,
        families.min_versions,
        shown,
    )
    return shown.astype(np.bool_)
