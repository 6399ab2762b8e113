"""The rows that a log gives to a file slice. A partial row without a whole row before it in the log needs the base
file's row of its key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.errors import CorruptDataError
from hudilake.format.definition.schema import RECORD_KEY_FIELD

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LogRows:
    """n rows in one schema. ``given``: for each column that some rows lack, which rows have it; the others are null."""

    table: pa.Table
    given: Mapping[str, Flags] = field(default_factory=dict)

    def take(self, places: Longs) -> LogRows:
        """The rows at these indexes, in that order."""
        return LogRows(self.table.take(pa.array(places)), self._given(places))

    def between(self, first: int, last: int) -> LogRows:
        """The rows from ``first`` to ``last`` (exclusive)."""
        return LogRows(self.table.slice(first, last - first), self._given(slice(first, last)))

    def _given(self, places: Longs | slice) -> dict[str, Flags]:
        """``given`` of some rows. Columns that come from the same tables share their array."""
        taken = {id(flags): flags[places] for flags in self.given.values()}
        return {name: taken[id(flags)] for name, flags in self.given.items()}

    def combined(self) -> LogRows:
        """The same in one chunk a column."""
        return LogRows(self.table.combine_chunks(), self.given)

    def with_base(self, base: pa.Table, source: Longs, owner: Longs) -> pa.Table:
        """Rows of a base file and of the log.

        Args:
            base: m rows in the same schema.
            source: for each returned row its index among the m rows of ``base`` and then the n rows here.
            owner: for each returned row the index of the row of ``base`` with its key, or -1. A row here has the
                columns that it lacks from there.

        Raises CorruptDataError for a row that lacks columns and has no owner.
        """
        m, columns = base.num_rows, list[pa.ChunkedArray]()
        places = dict[int, tuple[pa.Array, bool]]()
        for item in base.schema:
            flags = self.given.get(item.name)
            if id(flags) not in places:
                chosen = source if flags is None else self._completed(source, owner, flags, m)
                places[id(flags)] = pa.array(chosen), len(chosen) == m and bool((chosen == np.arange(m)).all())
            taken, all_base = places[id(flags)]
            column, other = base.column(item.name), self.table.column(item.name)
            if not all_base:
                column = pa.chunked_array([*column.chunks, *other.chunks], item.type).take(taken)
            columns.append(column)
        return pa.Table.from_arrays(columns, schema=base.schema)

    def _completed(self, source: Longs, owner: Longs, flags: Flags, m: int) -> Longs:
        lacks = np.zeros(len(source), dtype=np.bool_)
        ours = np.flatnonzero(source >= m)
        lacks[ours] = ~flags[source[ours] - m]
        if len(stray := np.flatnonzero(lacks & (owner < 0))):
            raise without_row(self.table.column(RECORD_KEY_FIELD)[int(source[stray[0]]) - m].as_py())
        return np.where(lacks, owner, source)

    def check_whole(self, places: Longs) -> None:
        """Raise CorruptDataError if one of the rows at these indexes lacks a column."""
        for flags in self.given.values():
            if len(incomplete_rows := np.flatnonzero(~flags[places])):
                raise without_row(self.table.column(RECORD_KEY_FIELD)[int(places[incomplete_rows[0]])].as_py())


def without_row(key: str) -> CorruptDataError:
    """The error for a partial row whose key has no row: readers would make different rows of it (measured)."""
    return CorruptDataError(
        f"a log file has a partial row of record key {key!r}, which has no row",
        do_next="load the table again from its source: the other columns of the row are not stored",
    )


@dataclass(frozen=True)
class Changes:
    """What the log does to n keys that it does not delete: a whole row, partial rows, or both.

    ``first``: for each key the index of its whole row among ``rows`` whole rows, or -1. The other arrays list the
    partial rows after it, in the order they were written: the key's number, the number of the table, the row's index
    in it.
    """

    first: Longs
    rows: int
    key: Longs
    table: Longs
    row: Longs

    def places(self, tables: Sequence[int], sizes: Sequence[int]) -> Longs:
        """For each key the index of its newest row, among the whole rows and then those of some tables of partial rows,
        one table after the other; -1 where there is none.

        Args:
            tables: their numbers, ascending.
            sizes: their numbers of rows.
        """
        places = self.first.copy()
        if not tables:
            return places
        starts = np.full(max(tables) + 1, -1, dtype=np.int64)
        starts[list(tables)] = self.rows + np.cumsum([0, *sizes[:-1]])
        in_range = np.flatnonzero(self.table <= max(tables))
        chosen = in_range[starts[self.table[in_range]] >= 0]
        newest = np.full(len(places), -1, dtype=np.int64)
        np.maximum.at(newest, self.key[chosen], chosen)
        newest = newest[newest >= 0]
        places[self.key[newest]] = starts[self.table[newest]] + self.row[newest]
        return places


def fold(whole: Sequence[pa.Table], partials: Sequence[pa.Table], schema: pa.Schema, changes: Changes) -> LogRows:
    """The rows of the keys of ``changes``: each column from the last event that has it.

    Args:
        whole: the tables of whole rows, in the schema.
        partials: the tables of partial rows, each in a part of the schema.
        schema: the columns.
        changes: the events of each key.
    """
    columns, given = [], dict[str, Flags]()
    indexes = dict[tuple[int, ...], tuple[pa.Array, Flags]]()
    for item in schema:
        having = tuple(i for i, table in enumerate(partials) if item.name in table.schema.names)
        if having not in indexes:
            places = changes.places(having, [partials[i].num_rows for i in having])
            indexes[having] = pa.array(places, mask=places < 0), places >= 0
        places_or_null, flags = indexes[having]
        chunks = [c for part in (*whole, *(partials[i] for i in having)) for c in part.column(item.name).chunks]
        columns.append(pa.chunked_array(chunks, item.type).take(places_or_null))
        if not flags.all():
            given[item.name] = flags
    return LogRows(pa.Table.from_arrays(columns, schema=schema), given)
