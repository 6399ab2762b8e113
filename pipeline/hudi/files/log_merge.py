"""The merge rule of EVENT_TIME_ORDERING, in whole columns, for readers and compactions.

The rule has two steps. First the log blocks are merged: per key the greatest ordering value wins, of equal ones the
later; a delete without an ordering value removes everything before it. Then the winner is compared with the base file's
row: it wins unless its ordering value is smaller. (Hudi 1.2.0, ``BufferedRecordMergerFactory``: the two steps differ
from one pass only where deletes have no ordering value.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import UnsupportedError
from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.files.data_block import decode_data_block
from pipeline.hudi.files.delete_block import decode_deletes
from pipeline.hudi.files.file_group_write import aligned_columns
from pipeline.hudi.files.log_file import BlockType, LogBlock

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_LEAST = np.iinfo(np.int64).min


@dataclass
class LogEvents:
    """The log's rows and deletes in the order they were written: n keys, each with its ordering value, the number of
    its block, and for a row its index in the concatenated ``tables`` (-1 for a delete).

    Args:
        schema: the columns of the rows, the record key and the ordering column among them.
        ordering_field: the table's ordering column; "" where the later commit always wins.
    """

    schema: pa.Schema
    ordering_field: str
    tables: list[pa.Table] = field(default_factory=list)
    instants: list[str] = field(default_factory=list)
    keys: list[pa.Array] = field(default_factory=list)
    ordering: list[Longs] = field(default_factory=list)
    block: list[Longs] = field(default_factory=list)
    row: list[Longs] = field(default_factory=list)
    unconditional: list[Flags] = field(default_factory=list)
    rows: int = 0

    def add(self, block: LogBlock, path: str) -> None:
        """Add a block of the log file at ``path``. Raises CorruptDataError, UnsupportedError."""
        if block.block_type is BlockType.DELETE:
            self._add_deletes(decode_deletes(block.content, path))
        else:
            self._add_rows(aligned(decode_data_block(block, self.schema.names, path), self.schema))
        self.instants.append(block.instant or "")

    def _add_rows(self, table: pa.Table) -> None:
        count = table.num_rows
        self.tables.append(table)
        self._note(table.column(RECORD_KEY_FIELD), ordering_values(table, self.ordering_field))
        self.row.append(np.arange(self.rows, self.rows + count, dtype=np.int64))
        self.unconditional.append(np.zeros(count, dtype=np.bool_))
        self.rows += count

    def _add_deletes(self, deletes: pa.Table) -> None:
        ordering, count = deletes.column("ordering"), deletes.num_rows
        unconditional = ordering.is_null().to_numpy() if self.ordering_field else np.ones(count, dtype=np.bool_)
        values = np.where(unconditional, _LEAST, pc.fill_null(ordering, _LEAST).to_numpy())
        self._note(deletes.column(RECORD_KEY_FIELD), values)
        self.row.append(np.full(count, -1, dtype=np.int64))
        self.unconditional.append(unconditional)

    def _note(self, keys: pa.ChunkedArray, ordering: Longs) -> None:
        self.keys += keys.chunks
        self.ordering.append(ordering)
        self.block.append(np.full(len(keys), len(self.instants), dtype=np.int64))

    def winners(self) -> LogWinners:
        """Step one."""
        if not self.keys:
            none = np.empty(0, dtype=np.int64)
            return LogWinners(pa.array([], pa.string()), none, none.astype(np.bool_), none, none)
        keys = pa.chunked_array(self.keys, pa.string()).combine_chunks()
        if isinstance(keys, pa.ChunkedArray):  # more than 2 GB of keys
            raise UnsupportedError(
                "the record keys of a file group's log files exceed 2 GB",
                do_next="rebuild the table with more buckets under a new path",
            )
        codes = np.asarray(keys.dictionary_encode().indices.to_numpy(), dtype=np.int64)
        ordering, unconditional = np.concatenate(self.ordering), np.concatenate(self.unconditional)
        chosen = _winners(codes, ordering, unconditional)
        return LogWinners(
            keys.take(pa.array(chosen)),
            ordering[chosen],
            unconditional[chosen],
            np.concatenate(self.row)[chosen],
            np.concatenate(self.block)[chosen],
        )


@dataclass(frozen=True)
class LogWinners:
    """The winner of each of the log's n keys, in no promised order: key, ordering value, whether it is a delete without
    an ordering value, index of its row (-1 for a delete), number of its block."""

    keys: pa.Array
    ordering: Longs
    unconditional: Flags
    row: Longs
    block: Longs

    def take(self, places: Longs) -> LogWinners:
        """The winners at these indexes, in that order."""
        return LogWinners(
            self.keys.take(pa.array(places)),
            self.ordering[places],
            self.unconditional[places],
            self.row[places],
            self.block[places],
        )

    def slice(self, low: int, high: int) -> LogWinners:
        """The winners from ``low`` to ``high`` (exclusive)."""
        return LogWinners(
            self.keys.slice(low, high - low),
            self.ordering[low:high],
            self.unconditional[low:high],
            self.row[low:high],
            self.block[low:high],
        )

    def against(self, base: pa.Table, ordering_field: str) -> tuple[Longs, Flags]:
        """Step two, for some rows of the base file.

        Args:
            base: m rows with the record key and the ordering column.
            ordering_field: as the events' own.

        Returns (for each base row the index of the winner of its key, or -1; whether that winner wins).
        """
        indexes = pc.index_in(base.column(RECORD_KEY_FIELD), value_set=self.keys)
        met = np.asarray(pc.fill_null(indexes, -1).to_numpy(), dtype=np.int64)
        wins = met >= 0
        rows = np.flatnonzero(wins)
        if ordering_field and len(rows):
            base_ordering = ordering_values(base.select([ordering_field]).take(pa.array(rows)), ordering_field)
            wins[rows] = (self.ordering[met[rows]] >= base_ordering) | self.unconditional[met[rows]]
        return met, wins


def ordering_values(table: pa.Table, ordering_field: str) -> Longs:
    """The ordering value of each row as a long, null as the least; zeros where the later commit always wins."""
    if not ordering_field:
        return np.zeros(table.num_rows, dtype=np.int64)
    column = table.column(ordering_field)
    if not (pa.types.is_signed_integer(column.type) or pa.types.is_temporal(column.type)):
        raise UnsupportedError(
            f"rows are ordered by a column of type {column.type}", do_next="read the table with Hudi"
        )
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return np.asarray(pc.fill_null(column.cast(pa.int64()), _LEAST).to_numpy(), dtype=np.int64)


def aligned(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table in the schema's columns, order and types. Raises UnsupportedError for values that do not fit."""
    return pa.Table.from_arrays(aligned_columns(table, schema), schema=schema)


def _winners(codes: Longs, ordering: Longs, unconditional: Flags) -> Longs:
    """Of n events the index of each key's winner, in no promised order."""
    events = np.arange(len(codes), dtype=np.int64)
    if unconditional.any():
        wiped_until = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
        np.maximum.at(wiped_until, codes[unconditional], events[unconditional])
        events = events[events >= wiped_until[codes]]
    by_key = events[np.lexsort((ordering[events], codes[events]))]
    last = np.ones(len(by_key), dtype=np.bool_)
    last[:-1] = codes[by_key[1:]] != codes[by_key[:-1]]
    return by_key[last]
