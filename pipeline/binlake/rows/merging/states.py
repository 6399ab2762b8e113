"""What the rows of a file group are now, by record key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.rows.merging.columns import column_of
from binlake.rows.merging.engines.heights import FactHeights
from binlake.rows.upsert.merge import Place
from hudilake.format.files.file_group_write import FileGroupWrite


@dataclass(frozen=True, slots=True)
class KeyStates:
    """The rows of n record keys.

    Args:
        alive: whether the row lives, bool array of n.
        held: the columns that were asked for; null where the row does not live. The order columns of column groups
            (``ColumnGroup.order_field``) are kept for deleted rows too.
        positions: where the rows are in ``held``, int64 of n, null for none; None where it has just these rows. So
            columns that nobody asks for are not put together.
    """

    alive: npt.NDArray[np.bool_]
    held: pa.Table
    positions: pa.Array | None = None

    @property
    def rows(self) -> pa.Table:
        """All columns of the n rows."""
        return self.held if self.positions is None else self.held.take(self.positions)

    def column(self, field: pa.Field) -> pa.ChunkedArray:
        """A column of the n rows, as ``column_of`` gives it."""
        column = column_of(self.held, field)
        return column if self.positions is None else column.take(self.positions)


class RowStates(Protocol):
    """Answers what rows are now. The answers are those of the table's state on which the writer's instant is based."""

    def of(self, place: Place, file_id: str, keys: pa.Array, columns: Sequence[str]) -> KeyStates:
        """The states of record keys.

        Args:
            place: partition path and bucket.
            file_id: of the file group; it may not exist yet.
            keys: n distinct record keys, string without nulls.
            columns: the columns to give, hidden ones among them.

        Raises CorruptDataError, UnsupportedError, StorageError.
        """
        ...


class GroupStates(RowStates, Protocol):
    """Answers also which rows a whole file group has."""

    def live(self, file_id: str, columns: Sequence[str]) -> pa.Table:
        """The rows of a file group, with the record key and the columns. Errors as ``of``."""
        ...

    def dead(self, file_id: str, columns: Sequence[str]) -> pa.Table:
        """Its tombstones, with the record key and the columns. Errors as ``of``."""
        ...


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What events make of a file group.

    Args:
        write: the rows to write.
        superseded: the number of records that an earlier or later event has overruled.
        tombstones: the record key and the groups' order columns of the rows that the write deletes; None for none.
        heights: how far facts are counted now; None where the engine counts none.
    """

    write: FileGroupWrite
    superseded: int
    tombstones: pa.Table | None = None
    heights: FactHeights | None = None


class Merger(Protocol):
    """Makes the write of a file group from the events of one commit."""

    def merge(self, place: Place, file_id: str, rows: pa.Table) -> MergeResult:
        """The write of n events, n > 0, as parcels hold them (``binlake.rows.upsert.merge.merge``). Errors as
        ``RowStates.of``.
        """
        ...
