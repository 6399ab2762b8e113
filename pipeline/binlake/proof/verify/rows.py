"""Rows of either side in canonical form, with the hashes by which they are compared; and the keys to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.proof.verify.canonical import digests
from binlake.proof.verify.columns import ColumnPlan
from hudilake.format.digest.rows import Digests, Ulongs

Flags = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]
NO_ORDERS: Longs = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The rows whose first key column is at least ``low`` and less than ``high``; None for no bound."""

    low: int | None = None
    high: int | None = None

    def __str__(self) -> str:
        if self.low is None and self.high is None:
            return "all rows"
        low = "the first" if self.low is None else self.low
        return f"keys from {low} " + ("on" if self.high is None else f"to below {self.high}")


EVERYTHING = KeyRange()


@dataclass(frozen=True, slots=True)
class KnownRows:
    """n rows of one side.

    Args:
        rows: canonical columns under the source's names, the key's first; maybe only those of the key.
        keys: the hash of each row's key, uint64 array of n.
        digests: of each row.
        orders: the ordering value of each row in the lake, int64 array of n; None for rows of the source. Of a row
            that is ahead of the source it is ``~order``, below zero: older than any other.
        groups: the number of each row's file group, int64 array of n; None for rows of the source.
        astray: which rows are not where the table's writer looks for them (``places``), or are ahead of the source;
            None for rows of the source. Their digests are no others' digests.
    """

    rows: pa.Table
    keys: Ulongs
    digests: Digests
    orders: Longs | None = None
    groups: Longs | None = None
    astray: Flags | None = None

    @staticmethod
    def of(rows: pa.Table, plan: ColumnPlan, orders: Longs | None = None) -> KnownRows:
        """Hash canonical rows. ``rows``: the plan's columns, or those of its key."""
        whole = digests(rows)
        key = [c.source.name for c in plan.key]
        keys = whole.low if len(key) == rows.num_columns else digests(rows.select(key)).low
        return KnownRows(rows, keys, whole, orders)

    @staticmethod
    def joined(parts: Sequence[KnownRows], plan: ColumnPlan) -> KnownRows:
        """All rows of several parts."""
        if not parts:
            fields = [pa.field(c.source.name, c.canonical) for c in plan.columns]
            none = KnownRows.of(pa.schema(fields).empty_table(), plan, np.empty(0, dtype=np.int64))
            return none.standing(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_))
        low, high = (np.concatenate([getattr(p.digests, half) for p in parts]) for half in ("low", "high"))
        orders = [p.orders for p in parts if p.orders is not None]
        groups = [p.groups for p in parts if p.groups is not None]
        astray = [p.astray for p in parts if p.astray is not None]
        return KnownRows(
            pa.concat_tables([p.rows for p in parts]),
            np.concatenate([p.keys for p in parts]),
            Digests(low, high),
            np.concatenate(orders) if orders else None,
            np.concatenate(groups) if groups else None,
            np.concatenate(astray) if astray else None,
        )

    def standing(self, groups: Longs, astray: Flags) -> KnownRows:
        """The same rows of the lake, with their places."""
        marked = Digests(self.digests.low, np.where(astray, ~self.digests.high, self.digests.high))
        return KnownRows(self.rows, self.keys, marked, self.orders, groups, astray)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def ahead(self) -> Flags:
        """Which rows have an ordering value that no change of the source has, bool array of n."""
        return np.zeros(len(self), dtype=np.bool_) if self.orders is None else self.orders < 0

    def where(self, chosen: Flags) -> KnownRows:
        """The marked rows. ``chosen``: bool array of n."""
        if chosen.all():
            return self
        orders, groups = (None if values is None else values[chosen] for values in (self.orders, self.groups))
        astray, rows = None if self.astray is None else self.astray[chosen], self.rows.filter(pa.array(chosen))
        return KnownRows(rows, self.keys[chosen], self.digests.take(chosen), orders, groups, astray)

    def doubled(self) -> Ulongs:
        """The hashes of keys that more than one row has, ascending."""
        keys, counts = np.unique(self.keys, return_counts=True)
        return np.asarray(keys[counts > 1])
