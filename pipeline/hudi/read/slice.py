"""The rows of a file slice, merged as Hudi merges them under EVENT_TIME_ORDERING.

Two steps, in whole columns. First the log blocks among themselves: per key the greatest ordering value wins, of equal
ones the later; a delete without an ordering value wipes out what came before it. Then the winner against the base
file's row: it wins unless its ordering value is smaller. (Hudi 1.2.0, ``BufferedRecordMergerFactory``: the two steps
differ from one pass only where deletes have no ordering value.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import UnsupportedError
from pipeline.hudi.files.base_file import read_base_file
from pipeline.hudi.files.data_block import decode_data_block
from pipeline.hudi.files.delete_block import decode_deletes
from pipeline.hudi.files.log_file import BlockType, LogBlock, iter_blocks
from pipeline.hudi.schema import META_FIELDS, RECORD_KEY_FIELD
from pipeline.hudi.table import HudiTable
from pipeline.hudi.timeline.timeline import Timeline
from pipeline.hudi.view import FileSlice, LogFile, file_slices
from pipeline.hudi.write import aligned_columns
from pipeline.storage.base import Storage

Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_LEAST = np.iinfo(np.int64).min


@dataclass
class _Events:
    """The log's rows and deletes in the order they were written: n keys, ordering values, and for a row its place in
    ``tables`` laid end to end (-1 for a delete)."""

    tables: list[pa.Table] = field(default_factory=list)
    keys: list[pa.Array] = field(default_factory=list)
    ordering: list[Longs] = field(default_factory=list)
    row: list[Longs] = field(default_factory=list)
    unconditional: list[Flags] = field(default_factory=list)
    rows: int = 0

    def add_rows(self, table: pa.Table, ordering: Longs) -> None:
        """A data block."""
        self.tables.append(table)
        self.keys += table.column(RECORD_KEY_FIELD).chunks
        self.ordering.append(ordering)
        self.row.append(np.arange(self.rows, self.rows + table.num_rows, dtype=np.int64))
        self.unconditional.append(np.zeros(table.num_rows, dtype=np.bool_))
        self.rows += table.num_rows

    def add_deletes(self, deletes: pa.Table, event_time: bool) -> None:
        """A delete block, as ``decode_deletes`` gives it."""
        ordering = deletes.column("ordering")
        unconditional = ordering.is_null().to_numpy() if event_time else np.ones(deletes.num_rows, dtype=np.bool_)
        self.keys += deletes.column(RECORD_KEY_FIELD).chunks
        self.ordering.append(np.where(unconditional, _LEAST, pc.fill_null(ordering, _LEAST).to_numpy()))
        self.row.append(np.full(deletes.num_rows, -1, dtype=np.int64))
        self.unconditional.append(unconditional)


@dataclass(frozen=True)
class SliceReader:
    """Reads file slices of one table at one moment.

    Args:
        storage: the table's root.
        schema: the columns to give, meta fields included, in the types to give them.
        ordering_field: the table's ordering column; "" where the later commit always wins.
        timeline: loaded; decides which log blocks count.
        as_of: only blocks of commits requested at or before this instant.
    """

    storage: Storage
    schema: pa.Schema
    ordering_field: str
    timeline: Timeline
    as_of: str | None = None

    def read(self, file_slice: FileSlice) -> pa.Table:
        """The live rows, in no promised order. Raises CorruptDataError, UnsupportedError, StorageNotFoundError."""
        events = _Events()
        for log_file in file_slice.log_files:
            self._take_log_file(events, log_file)
        if file_slice.base_file is None:
            base = self._working_schema().empty_table()
        else:
            path = file_slice.base_file.path
            base = self._align(read_base_file(self.storage, path, self._working_schema().names))
        merged = self._merge(base, events) if events.keys else base
        return merged.select(self.schema.names)

    def _take_log_file(self, events: _Events, log_file: LogFile) -> None:
        for block in iter_blocks(self.storage.read(log_file.path), log_file.path):
            if not self._counts(block):
                continue
            if block.block_type is BlockType.DELETE:
                events.add_deletes(decode_deletes(block.content, log_file.path), bool(self.ordering_field))
            else:
                table = self._align(decode_data_block(block, self._working_schema().names, log_file.path))
                events.add_rows(table, self._ordering(table))

    def _counts(self, block: LogBlock) -> bool:
        """A block without an instant, or of one that is not completed, is passed over, as both readers do."""
        instant = block.instant
        if instant is None or (self.as_of is not None and instant > self.as_of):
            return False
        return self.timeline.is_completed(instant)

    def _working_schema(self) -> pa.Schema:
        """The columns asked for, plus the key and the ordering column for the merge."""
        extra = [pa.field(RECORD_KEY_FIELD, pa.string())]
        if self.ordering_field and self.ordering_field not in self.schema.names:
            extra.append(pa.field(self.ordering_field, pa.int64()))
        return pa.schema([f for f in extra if f.name not in self.schema.names] + list(self.schema))

    def _align(self, table: pa.Table) -> pa.Table:
        schema = self._working_schema()
        return pa.Table.from_arrays(aligned_columns(table, schema), schema=schema)

    def _ordering(self, table: pa.Table) -> Longs:
        if not self.ordering_field:
            return np.zeros(table.num_rows, dtype=np.int64)
        column = table.column(self.ordering_field)
        if not (pa.types.is_signed_integer(column.type) or pa.types.is_temporal(column.type)):
            raise UnsupportedError(f"rows are ordered by a column of type {column.type}", do_next="read with Hudi")
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        return np.asarray(pc.fill_null(column.cast(pa.int64()), _LEAST).to_numpy(), dtype=np.int64)

    def _merge(self, base: pa.Table, events: _Events) -> pa.Table:
        keys = pa.chunked_array([*base.column(RECORD_KEY_FIELD).chunks, *events.keys], pa.string())
        codes = _codes(keys)
        base_codes, log_codes = codes[: base.num_rows], codes[base.num_rows :]
        unconditional = np.concatenate(events.unconditional)
        ordering = np.concatenate(events.ordering)
        winners = _log_winners(log_codes, ordering, unconditional)
        base_at = np.full(int(codes.max()) + 1 if len(codes) else 0, -1, dtype=np.int64)
        base_at[base_codes] = np.arange(base.num_rows)
        against = base_at[log_codes[winners]]
        loses = np.zeros(len(winners), dtype=np.bool_)
        met = against >= 0
        base_ordering = self._ordering(base)
        loses[met] = (ordering[winners[met]] < base_ordering[against[met]]) & ~unconditional[winners[met]]
        kept = np.ones(base.num_rows, dtype=np.bool_)
        kept[against[met & ~loses]] = False
        rows = np.concatenate(events.row)[winners[~loses]]
        parts = [base.filter(pa.array(kept))]
        if events.tables:
            parts.append(pa.concat_tables(events.tables).take(pa.array(rows[rows >= 0])))
        return pa.concat_tables(parts)


def read_file_slice(
    table: HudiTable, file_slice: FileSlice, columns: Sequence[str] | None = None, as_of: str | None = None
) -> pa.Table:
    """The live rows of one file slice.

    Args:
        table: open.
        file_slice: from ``view.file_slices``, built with the same ``as_of``.
        columns: names to give, meta fields among them if wanted; None gives the meta fields and every table column.
        as_of: time travel to this instant, under the schema of that time.

    Raises CorruptDataError, UnsupportedError.
    """
    return _reader(table, columns, as_of).read(file_slice)


def read_table(storage: Storage, columns: Sequence[str] | None = None, as_of: str | None = None) -> Iterator[pa.Table]:
    """The live rows of a table, one Arrow table for each file slice. Arguments and errors as ``read_file_slice``."""
    table = HudiTable.open(storage)
    reader = _reader(table, columns, as_of)
    for file_slice in file_slices(storage, table.timeline, as_of):
        yield reader.read(file_slice)


def _reader(table: HudiTable, columns: Sequence[str] | None, as_of: str | None) -> SliceReader:
    own = table.schema if as_of is None else table.schema_as_of(as_of)
    schema = pa.schema([pa.field(name, pa.string()) for name in META_FIELDS] + list(own))
    if columns is not None:
        if unknown := [name for name in columns if name not in schema.names]:
            raise UnsupportedError(f"the table has no columns {unknown}", table=table.config.name)
        schema = pa.schema([schema.field(name) for name in columns])
    return SliceReader(table.storage, schema, table.config.ordering_field, table.timeline, as_of)


def _codes(keys: pa.ChunkedArray) -> Longs:
    """One number for each distinct key, int64 array of n."""
    encoded = keys.combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(), dtype=np.int64)


def _log_winners(codes: Longs, ordering: Longs, unconditional: Flags) -> Longs:
    """Of the log's n events the index of each key's winner, in no promised order."""
    events = np.arange(len(codes), dtype=np.int64)
    if unconditional.any():
        wiped_until = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
        np.maximum.at(wiped_until, codes[unconditional], events[unconditional])
        events = events[events >= wiped_until[codes]]
    by_key = events[np.lexsort((ordering[events], codes[events]))]
    last = np.ones(len(by_key), dtype=np.bool_)
    last[:-1] = codes[by_key[1:]] != codes[by_key[:-1]]
    return by_key[last]
