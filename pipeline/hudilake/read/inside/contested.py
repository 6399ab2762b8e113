"""The rule that says which rows of a base file may be skipped although log files change some of its rows.

A row of the base file that fails the condition is never part of the result itself. Reading it matters for one thing
only: it may keep a row of the log from being returned, for a row of the log wins over the base file's row of its key
unless its ordering value is smaller (``log_merge``). Without the base file's row, an older row of the log would be
returned as if it were new. So a base row that fails the condition may be skipped, unless the winner of the log for its
key

* is a whole row that passes the condition (or of which that is not known), and
* has a smaller ordering value than the base file's row.

A delete of the log returns no row whether it wins or not. Where the later commit always wins (no ordering column), no
base row keeps a log row back. Partial rows of the log make a row of both: whether that passes the condition depends on
columns of the base file's row, which may itself fail; so with partial rows in the log nothing is skipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.log_merge import MergedLog, ordering_values
from hudilake.format.files.log_rows import Longs
from hudilake.read.filters.bounds import ColumnBounds, span
from hudilake.read.filters.evaluate import Flags, matches
from hudilake.read.filters.expressions import Filter


@dataclass(frozen=True)
class ContestedRows:
    """n rows of the log that pass the condition, and that newer rows of the base file would keep back.

    Args:
        keys: their record keys, ascending.
        ordering: their ordering values.
        ordering_field: the table's ordering column.
    """

    keys: pa.Array
    ordering: Longs
    ordering_field: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose bounds say where newer rows of these keys may be."""
        return (RECORD_KEY_FIELD, self.ordering_field) if len(self.keys) else ()

    def may_be_in(self, bounds: dict[str, ColumnBounds], count: int) -> Flags:
        """The pieces of a base file that may hold a newer row of one of the keys, bool array of ``count``.

        Args:
            bounds: over the pieces, of ``columns``.
            count: the number of pieces.
        """
        if not len(self.keys):
            return np.zeros(count, dtype=np.bool_)
        first, last = span(bounds[RECORD_KEY_FIELD], self.keys)
        newest = bounds[self.ordering_field].high
        known = np.asarray(newest.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        newest_of = ordering_values(pa.table({self.ordering_field: newest}), self.ordering_field)
        oldest = [self.ordering[a:b].min() if a < b else 0 for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        newer: Flags = ~known | (newest_of > np.array(oldest, dtype=np.int64))
        return (first < last) & newer


#: No row of the log is kept back by rows of the base file.
NOT_HELD_BACK = ContestedRows(pa.nulls(0, pa.string()), np.zeros(0, dtype=np.int64), "")


def contested(log: MergedLog, condition: Filter, ordering_field: str) -> ContestedRows | None:
    """The rows of the log that base rows may keep back; None if no base row may be skipped.

    Args:
        log: merged, with the columns of the condition.
        condition: normalised.
        ordering_field: the table's ordering column; "" where the later commit always wins.

    Raises as ``matches``.
    """
    if log.rows.given:
        return None
    winners = log.winners
    returned = np.flatnonzero(winners.row >= 0) if ordering_field else np.zeros(0, dtype=np.int64)
    if len(returned):
        returned = returned[matches(condition, log.rows.table)[winners.row[returned]]]
    keys = winners.keys.take(pa.array(returned))
    order = pc.array_sort_indices(keys)
    return ContestedRows(keys.take(order), winners.ordering[returned][order.to_numpy()], ordering_field)
