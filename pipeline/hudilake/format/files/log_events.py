"""The rows and deletes of a log, collected block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.delete_block import decode_deletes
from hudilake.format.files.log_file import BlockType, LogBlock
from hudilake.format.files.log_merge import LEAST, Events, MergedLog, ordering_values
from hudilake.format.files.log_rows import Flags, LogRows, Longs, fold
from hudilake.format.files.stored_rows import aligned


@dataclass
class LogEvents:
    """The events of a log in the order they were written, as ``log_merge.Events`` has them, in pieces.

    Args:
        schema: the columns of the rows, the record key and the ordering column among them.
        ordering_field: the table's ordering column; "" where the later commit always wins.
    """

    schema: pa.Schema
    ordering_field: str
    tables: list[pa.Table] = field(default_factory=list)
    partial_tables: list[pa.Table] = field(default_factory=list)
    instants: list[str] = field(default_factory=list)
    keys: list[pa.Array] = field(default_factory=list)
    ordering: list[Longs] = field(default_factory=list)
    block: list[Longs] = field(default_factory=list)
    row: list[Longs] = field(default_factory=list)
    partial: list[Longs] = field(default_factory=list)
    unconditional: list[Flags] = field(default_factory=list)
    rows: int = 0

    def add(self, block: LogBlock, path: str) -> None:
        """Add a block of the log file at ``path``. Raises CorruptDataError, UnsupportedError."""
        if block.block_type is BlockType.DELETE:
            self._add_deletes(decode_deletes(block.content, path))
        elif block.is_partial:
            self._add_partials(decode_data_block(block, self.schema.names, path), path)
        else:
            self._add_rows(aligned(decode_data_block(block, self.schema.names, path), self.schema))
        self.instants.append(block.instant or "")

    def add_write(
        self, instant: str, whole: Sequence[pa.Table], partials: Sequence[pa.Table], deletes: pa.Table | None
    ) -> None:
        """Add what a commit writes to a file group, as if it were a log file.

        Args:
            instant: of the commit.
            whole: tables of whole rows, meta fields among their columns.
            partials: tables of partial rows, likewise.
            deletes: the record key and the ordering column; None for none.
        """
        for rows in whole:
            self._add_rows(aligned(rows, self.schema))
            self.instants.append(instant)
        for rows in partials:
            self._add_partials(rows, instant)
            self.instants.append(instant)
        if deletes is not None and deletes.num_rows:
            values = {RECORD_KEY_FIELD: deletes.column(RECORD_KEY_FIELD)}
            self._add_deletes(pa.table({**values, "ordering": deletes.column(self.ordering_field)}))
            self.instants.append(instant)

    @property
    def nbytes(self) -> int:
        """The bytes of the rows."""
        return sum(table.nbytes for table in (*self.tables, *self.partial_tables))

    def merged(self) -> MergedLog:
        """Step one of the merge rule. The rows are moved out. Raises CorruptDataError, UnsupportedError."""
        tables, partials = self.tables or [self.schema.empty_table()], self.partial_tables
        self.tables, self.partial_tables = [], []
        events = self._events()
        if not partials:
            return MergedLog(events.winners(), LogRows(pa.concat_tables(tables)))
        winners, changes = events.changed_winners(self.rows)
        return MergedLog(winners, fold(tables, partials, self.schema, changes))

    def _add_rows(self, table: pa.Table) -> None:
        self.tables.append(table)
        self._note(table, np.arange(self.rows, self.rows + table.num_rows, dtype=np.int64))
        self.rows += table.num_rows

    def _add_partials(self, table: pa.Table, path: str) -> None:
        needed = {RECORD_KEY_FIELD, self.ordering_field} - {""}
        if lacking := needed - set(table.column_names):
            raise UnsupportedError(
                f"a block of partial rows lacks {', '.join(sorted(lacking))}",
                do_next="compact the table with Hudi, then read it",
                path=path,
            )
        table = aligned(table, pa.schema([item for item in self.schema if item.name in table.column_names]))
        self._note(table, np.arange(table.num_rows, dtype=np.int64), len(self.partial_tables))
        self.partial_tables.append(table)

    def _note(self, table: pa.Table, row: Longs, partial: int = -1) -> None:
        self._note_keys(table.column(RECORD_KEY_FIELD), partial)
        self.ordering.append(ordering_values(table, self.ordering_field))
        self.row.append(row)
        self.unconditional.append(np.zeros(table.num_rows, dtype=np.bool_))

    def _add_deletes(self, deletes: pa.Table) -> None:
        ordering, count = deletes.column("ordering"), deletes.num_rows
        unconditional = ordering.is_null().to_numpy() if self.ordering_field else np.ones(count, dtype=np.bool_)
        self._note_keys(deletes.column(RECORD_KEY_FIELD))
        self.ordering.append(np.where(unconditional, LEAST, pc.fill_null(ordering, LEAST).to_numpy()))
        self.row.append(np.full(count, -1, dtype=np.int64))
        self.unconditional.append(unconditional)

    def _note_keys(self, keys: pa.ChunkedArray, partial: int = -1) -> None:
        self.keys += keys.chunks
        self.block.append(np.full(len(keys), len(self.instants), dtype=np.int64))
        self.partial.append(np.full(len(keys), partial, dtype=np.int64))

    def _events(self) -> Events:
        keys = pa.chunked_array(self.keys, pa.string()).combine_chunks()
        if isinstance(keys, pa.ChunkedArray):  # more than 2 GB of keys
            raise UnsupportedError(
                "the record keys of a file group's log files exceed 2 GB",
                do_next="rebuild the table with more buckets under a new path",
            )
        return Events(
            keys,
            np.asarray(keys.dictionary_encode().indices.to_numpy(), dtype=np.int64),
            _longs(self.ordering),
            np.concatenate([np.empty(0, dtype=np.bool_), *self.unconditional]),
            _longs(self.row),
            _longs(self.partial),
            _longs(self.block),
        )


def _longs(parts: list[Longs]) -> Longs:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])
