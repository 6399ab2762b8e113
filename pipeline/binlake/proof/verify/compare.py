"""One portion of a table at one position: sums of digests by range of keys, then the rows of the ranges that differ.

1. The lake's rows are read. A row that is newer than the position is set aside: it was changed since, and its key takes
   no part on either side. ``settle`` looks at these keys again, at a later position.
2. The source's rows are read within its snapshot, and both sides are summed by range.
3. Of the ranges whose sums differ, the lake's rows are read again, the source's keys are read again, and the rows of
   these keys are fetched. What differs then is a candidate; ``settle`` finds out what remains of it.

All file groups are read, so a key that has two rows has them in these sums wherever they are, and a row that is astray
has a digest that no row of the source has. Such keys are candidates, and their file groups are passed on: looks at
single keys ask an index, which does not know these rows. A key of a changed row is looked at in any case if it has two.

Memory holds the sums, the keys that were changed since, one chunk of rows of either side and the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from binlake.proof.verify.canonical import RangeSums, is_in, ranges_of
from binlake.proof.verify.columns import ColumnPlan
from binlake.proof.verify.lake_rows import LakeRows
from binlake.proof.verify.rows import NO_ORDERS, Flags, KnownRows, Longs
from binlake.proof.verify.source_rows import SourceRows
from hudilake.format.digest.rows import Ulongs

#: Rows of a range, on average; fewer make more ranges, more make a range that differs dearer.
_ROWS_A_RANGE = 16
_LEAST_BITS, _MOST_BITS = 16, 20
#: More rows in ranges that differ than this, of either side, are not compared one by one.
MOST_ROWS = 200_000
#: So many rows that were changed since are looked at again; each was replaced whole by its later event.
MOST_CHANGED = 20_000


@dataclass(frozen=True)
class Comparison:
    """What the two sides of a portion hold at one position.

    Args:
        source_rows, lake_rows: their numbers of rows; the lake's without those changed since.
        changed_since: rows of the lake that are newer than the position.
        ranges, ranges_differing: of keys.
        source, lake: the rows in ranges that differ and that have no equal on the other side.
        too_many: how much differs, if it is too much to compare it row by row; ``source`` and ``lake`` are then empty.
        changed: the key columns of rows that were changed since, at most MOST_CHANGED and those with two rows.
        doubtful: numbers of the file groups in which rows stand that a look at their keys may not find.
        newer: the ordering values of rows that were changed since, ascending.
        newest: the greatest ordering value in the lake, -1 without rows.
    """

    source_rows: int
    lake_rows: int
    changed_since: int
    ranges: int
    ranges_differing: int
    source: KnownRows
    lake: KnownRows
    too_many: str
    changed: pa.Table
    doubtful: Longs
    newer: Longs
    newest: int


@dataclass
class _NewerRows:
    """The rows of the lake that are newer than the position: hashes of their keys, and some of the keys."""

    hashes: list[Ulongs]
    keys: list[pa.Table]
    astray: list[Ulongs]
    orders: list[Longs]
    newest: int = -1

    def add(self, rows: KnownRows, key: list[str]) -> None:
        assert rows.astray is not None
        assert rows.orders is not None
        self.hashes.append(rows.keys)
        self.orders.append(np.unique(rows.orders))
        self.astray.append(rows.keys[rows.astray])
        if (room := MOST_CHANGED - sum(map(len, self.keys))) > 0:
            self.keys.append(rows.rows.select(key).slice(0, room))

    def ascending(self) -> Ulongs:
        return np.unique(np.concatenate(self.hashes)) if self.hashes else np.empty(0, dtype=np.uint64)

    def doubtful(self) -> Ulongs:
        """The keys that two of these rows have, and those of rows that are astray; ascending."""
        if not self.hashes:
            return np.empty(0, dtype=np.uint64)
        keys, counts = np.unique(np.concatenate(self.hashes), return_counts=True)
        return np.union1d(keys[counts > 1], np.concatenate(self.astray))


def compare(source: SourceRows, lake: LakeRows, order: int) -> Comparison:
    """Compare a portion of a table.

    Args:
        source: reads within the snapshot.
        lake: reads the same portion.
        order: the ordering value of the snapshot's position.
    """
    plan = source.plan
    bits = _bits(source.table.rows)
    lake_sums, source_sums = RangeSums.empty(bits), RangeSums.empty(bits)
    newer = _summed_lake(lake, order, lake_sums)
    changed = newer.ascending()
    for rows in source.all():
        fresh = rows.where(~is_in(rows.keys, changed))
        source_sums.add(fresh.keys, fresh.digests)
    differing = lake_sums.differing(source_sums)
    found_source, found_lake, late = _no_rows(plan), _no_rows(plan), _no_rows(plan)
    doubtful, standing = newer.doubtful() if plan.keys else changed[:0], np.empty(0, dtype=np.int64)
    too_many = _too_many(lake_sums, source_sums, differing)
    if (differing.any() or len(doubtful)) and not too_many:
        candidates = KnownRows.joined(list(_of_interest(lake.all(), order, differing, bits, doubtful)), plan)
        is_late = is_in(candidates.keys, changed)  # of a table without a key: equal older rows
        found_lake, late = candidates.where(~is_late), candidates.where(is_late)
        standing = _unsure(found_lake, late, lake)
        found_source = _source_of_ranges(source, differing, bits, changed)
        found_source, found_lake = _without_equals(found_source, found_lake)
    return Comparison(
        int(source_sums.counts.sum()),
        int(lake_sums.counts.sum()),
        len(changed),
        1 << bits,
        int(differing.sum()),
        found_source,
        found_lake,
        too_many,
        pa.concat_tables([late.rows.select([c.source.name for c in plan.key]), *newer.keys]),
        standing,
        np.unique(np.concatenate([NO_ORDERS, *newer.orders])),
        newer.newest,
    )


def _bits(rows: int) -> int:
    return min(max(_LEAST_BITS, (rows // _ROWS_A_RANGE).bit_length()), _MOST_BITS)


def _no_rows(plan: ColumnPlan) -> KnownRows:
    return KnownRows.joined([], plan)


def _summed_lake(lake: LakeRows, order: int, sums: RangeSums) -> _NewerRows:
    """Add the lake's rows up to an ordering value; returns the newer ones."""
    changed, key = _NewerRows([], [], [], []), [c.source.name for c in lake.plan.key]
    for rows in lake.all():
        assert rows.orders is not None
        newer = rows.orders > order
        changed.newest = max(changed.newest, int(rows.orders.max(initial=-1)))
        changed.add(rows.where(newer), key)
        old = rows.where(~newer)
        sums.add(old.keys, old.digests)
    return changed


def _of_interest(
    parts: Iterable[KnownRows], order: int, differing: Flags, bits: int, doubtful: Ulongs
) -> Iterator[KnownRows]:
    """The lake's rows in ranges that differ up to an ordering value, and all rows of doubtful keys."""
    for rows in parts:
        assert rows.orders is not None
        yield rows.where((rows.orders <= order) & differing[ranges_of(rows.keys, bits)] | is_in(rows.keys, doubtful))


def _unsure(found: KnownRows, late: KnownRows, lake: LakeRows) -> Longs:
    """The file groups of rows that a look at their keys may not find: keys with two rows, rows that are astray, and
    any where an index says where keys are."""
    assert found.astray is not None
    assert found.groups is not None
    assert late.groups is not None
    unsure = found.astray | is_in(found.keys, found.doubled())
    if lake.reader.table.config.kind.looks_up:
        unsure[:] = True
    return np.concatenate([found.groups[unsure], late.groups])


def _of_ranges(parts: Iterable[KnownRows], differing: Flags, bits: int) -> Iterator[KnownRows]:
    for rows in parts:
        yield rows.where(differing[ranges_of(rows.keys, bits)])


def _too_many(lake_sums: RangeSums, source_sums: RangeSums, differing: Flags) -> str:
    """How much differs, if more than MOST_ROWS rows lie in ranges that differ; else empty."""
    most = max(int(sums.counts[differing].sum()) for sums in (lake_sums, source_sums))
    if most <= MOST_ROWS:
        return ""
    return (
        f"{int(differing.sum())} of {len(differing)} ranges of keys differ, with {most} rows: too many to compare them "
        "row by row; bring the table anew (binlake table resync)"
    )


def _source_of_ranges(source: SourceRows, differing: Flags, bits: int, changed: Ulongs) -> KnownRows:
    """The source's rows in ranges that differ: their keys are read, then the rows fetched by them."""
    plan = source.plan
    if not plan.keys:
        rows = KnownRows.joined(list(_of_ranges(source.all(), differing, bits)), plan)
        return rows.where(~is_in(rows.keys, changed))
    keys = [rows.where(~is_in(rows.keys, changed)) for rows in _of_ranges(source.keys(), differing, bits)]
    wanted = pa.concat_tables([rows.rows for rows in keys])
    fetched_rows = source.of_keys(wanted)
    mine = np.unique(np.concatenate([rows.keys for rows in keys]))
    return fetched_rows.where(is_in(fetched_rows.keys, mine))


def _without_equals(source: KnownRows, lake: KnownRows) -> tuple[KnownRows, KnownRows]:
    """The rows of each side that have no equal on the other side, each row against one."""
    mine, theirs = _identities(source), _identities(lake)
    everything, numbers = np.unique(np.concatenate([mine, theirs]), return_inverse=True)
    here = np.bincount(numbers[: len(mine)], minlength=len(everything))
    there = np.bincount(numbers[len(mine) :], minlength=len(everything))
    left_here, left_there = np.maximum(here - there, 0), np.maximum(there - here, 0)
    return (
        source.where(_last_of_each(numbers[: len(mine)], left_here)),
        lake.where(_last_of_each(numbers[len(mine) :], left_there)),
    )


def _identities(rows: KnownRows) -> np.ndarray:
    """The 128 bits of each row's digest as one value."""
    return np.stack([rows.digests.low, rows.digests.high], axis=1).view([("low", np.uint64), ("high", np.uint64)])[:, 0]


def _last_of_each(numbers: np.ndarray, left: np.ndarray) -> Flags:
    """Mark ``left[k]`` of the rows with number k: rows with the same number are equal."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    first = np.searchsorted(ordered, ordered)
    marked = np.zeros(len(numbers), dtype=np.bool_)
    marked[order] = np.arange(len(numbers)) - first < left[ordered]
    return marked
