"""What the statements about one source table make of its rows: some are refused, some wait, some are gone.

The fate of a row is decided by its place among the statements alone, so all rows are judged at once, by masks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import ChangeBatch
from binlake.schema.rules.restatement import Restatement, deleted, differing, restate_batch
from binlake.schema.rules.row_places import RowPlaces

#: Why rows after a refused statement are in quarantine.
DDL_REFUSED = "ddl_refused"
#: Why rows are in quarantine that come after their table has lost its key: what they change cannot be found any more.
LATE_ROW = "late_row"
_LATE = "the table has lost its key since, so the row that it changes cannot be found"
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows after a refused statement are refused, up to the statement that undoes it, if there is one.

    ``since``, ``until``: ordering values of the statements. ``seconds``, ``until_seconds``: their times, as in
    ``RowPlaces.before``.
    """

    since: int
    until: int | None
    why: str
    seconds: int | None = None
    until_seconds: int | None = None

    def of(self, places: RowPlaces) -> _Mask:
        """A mask of the rows that are refused."""
        earlier, unsure = places.before(self.since, self.seconds)
        mask = ~earlier & ~unsure
        if self.until is not None:
            mask &= places.before(self.until, self.until_seconds)[0]
        return mask


@dataclass(frozen=True, slots=True)
class RowFates:
    """What the statements make of n rows: disjoint masks, bool of n.

    Args:
        moments: where the n rows stand among the statements.
        left: the rows that go on.
        refused: (mask, reason, detail) of the rows whose records go to the quarantine.
        dropped: rows that were removed with a dropped table.
        waiting: rows that wait until all rows before a statement are applied.
    """

    moments: RowPlaces
    left: _Mask
    refused: tuple[tuple[_Mask, str, str], ...]
    dropped: _Mask
    waiting: _Mask


@dataclass(frozen=True, slots=True)
class RestatedRows:
    """Rows as they are after the statements.

    ``removed``: bool of n, rows that a statement about their partition has removed; they stay in the batch. ``doubt``:
    where the source sent another value for a computed column than binlake computes; None if it nowhere did.
    """

    batch: ChangeBatch
    removed: _Mask
    doubt: str | None


@dataclass(frozen=True, slots=True)
class SourceDdl:
    """The DDL for the rows of one source table.

    ``texts``: its integer columns that the lake stores as text. ``key``: the key columns (lake names) that a
    statement gave the lake table; None if none did. ``held``: ordering value and time of a statement; rows after it
    wait until all rows before it are applied. ``keyless_since``: those of the statement that took the key from the lake
    table, which is without one now.
    """

    restatements: tuple[Restatement, ...] = ()
    texts: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    key: tuple[str, ...] | None = None
    held: tuple[int, int | None] | None = None
    keyless_since: tuple[int, int | None] | None = None

    def fates(self, rows: pa.Table, fresh: _Mask) -> RowFates:
        """What the statements make of n rows with META_FIELDS.

        A row has the first fate that applies: refused, dropped (its columns and its key are another table's), waiting,
        late. A row that is ``fresh`` no more does not wait: the table has applied it. Rows from before the statement
        that took the table's key are late: all of them were applied when it was carried out, so they came again.
        """
        places = RowPlaces.incoming(rows)
        left, waiting = np.ones(len(fresh), dtype=bool), np.zeros(len(fresh), dtype=bool)
        refused: list[tuple[_Mask, str, str]] = []
        for refusal in self.refusals:
            refused.append((refusal.of(places) & left, DDL_REFUSED, refusal.why))
            left = left & ~refused[-1][0]
        dropped = deleted(places, self.restatements) & left
        left = left & ~dropped
        if self.held is not None:
            earlier, unsure = places.before(*self.held)
            waiting = left & ~earlier & ~unsure & fresh
            left = left & (earlier | unsure)
        if self.keyless_since is not None:
            refused.append((places.before(*self.keyless_since)[0] & left, LATE_ROW, _LATE))
            left = left & ~refused[-1][0]
        return RowFates(places, left, tuple(refused), dropped, waiting)

    def restated(self, batch: ChangeBatch, places: RowPlaces) -> RestatedRows:
        """The batch with the statements applied to its rows from before them.

        Args:
            batch: n rows as decoded.
            places: of the rows.

        Raises UnsupportedError where a value cannot be computed.
        """
        doubt = differing(batch.rows, places, self.restatements)
        return RestatedRows(*restate_batch(batch, places, self.restatements, self.texts), doubt)


NO_DDL = SourceDdl()
