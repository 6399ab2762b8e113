"""Which rows are complete: known to every column group of a stitched table, or without nulls in a plain one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.merging import WRITER_ORDER

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Completeness:
    """The rule by which rows of one table are complete.

    Args:
        orders: hidden columns with the orders of the column groups that must know the row.
        not_null: columns that must not be null.
        ordering_field: the table's ordering column. A row that was written before the table was stitched has no order
            of the first group; that group knows it if the ordering value is an event's.
        first: the order column of the first group.
    """

    orders: tuple[str, ...] = ()
    not_null: tuple[str, ...] = ()
    ordering_field: str = ""
    first: str = ""

    @classmethod
    def of(cls, config: TableConfig, asked: Sequence[str], complete: bool | Collection[str]) -> Completeness:
        """The rule of a table.

        Args:
            config: the table's.
            asked: the returned columns.
            complete: whether rows must be complete; or the names of the column groups that must know them.

        Raises UnsupportedError for a group that the table does not have, CorruptDataError for a damaged property.
        """
        groups = config.merging.groups
        names = {group.name for group in groups}
        if not isinstance(complete, bool):
            if unknown := sorted(set(complete) - names):
                raise UnsupportedError(
                    f"the table has no column groups {unknown}",
                    do_next=f"name some of {sorted(names)}, or give complete=True",
                    table=config.name,
                )
            names = set(complete)
        if complete is False:
            return cls()
        if not groups:
            return cls(not_null=tuple(asked))
        orders = tuple(group.order_field for group in groups if group.name in names)
        return cls(orders, (), config.ordering_field, groups[0].order_field)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that ``holds`` reads."""
        legacy = (self.ordering_field,) if self.first in self.orders and self.ordering_field else ()
        return (*self.orders, *legacy, *self.not_null)

    def holds(self, rows: pa.Table) -> Flags:
        """Which of n rows are complete, bool array of n. ``rows``: with ``columns``."""
        passing = np.ones(rows.num_rows, dtype=np.bool_)
        for name in self.not_null:
            passing &= _flags(pc.is_valid(rows.column(name)))
        for name in self.orders:
            passing &= self._knows(rows, name)
        return passing

    def _knows(self, rows: pa.Table, name: str) -> Flags:
        order = rows.column(name)
        known = _flags(pc.fill_null(pc.greater_equal(order, 0), False))
        if name == self.first and self.ordering_field and order.null_count:
            event = pc.fill_null(pc.less(rows.column(self.ordering_field), WRITER_ORDER), False)
            known |= _flags(pc.and_(pc.is_null(order), event))
        return known


def _flags(values: pa.ChunkedArray) -> Flags:
    return np.asarray(values.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.bool_)
