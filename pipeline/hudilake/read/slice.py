"""The rows of a file slice, merged as Hudi merges them under EVENT_TIME_ORDERING (``log_merge``)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.format.definition.kind import TableKind
from hudilake.format.definition.schema import META_FIELDS, RECORD_KEY_FIELD
from hudilake.format.files.append import rows_never_merge
from hudilake.format.files.base_file import read_base_file
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.log_events import LogEvents
from hudilake.format.files.log_file import BlockType, Header, LogBlock, iter_blocks
from hudilake.format.files.log_merge import MergedLog
from hudilake.format.files.stored_rows import aligned
from hudilake.format.files.view import FileSlice, LogFile, file_slices
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.filters.expressions import TRUE, Filter, columns_of
from hudilake.read.inside.base_rows import wanted_rows
from hudilake.read.inside.contested import NOT_HELD_BACK, ContestedRows, contested
from hudilake.read.inside.tally import ReadTally
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class SliceReader:
    """Reads file slices of one table at one moment.

    Args:
        storage: the table's root.
        schema: the returned columns, meta fields included, in their returned types.
        ordering_field: the table's ordering column; "" where the later commit always wins.
        timeline: loaded; decides which log blocks are visible.
        as_of: only blocks of commits requested at or before this instant.
        kind: of the table; rows of an append table are not merged.
        keyed: whether files have the meta fields, so that rows can be merged by their keys.
        ordering_type: in which the ordering column is read where it is not returned. Files may have other units.
    """

    storage: Storage
    schema: pa.Schema
    ordering_field: str
    timeline: Timeline
    as_of: str | None = None
    kind: TableKind = field(default_factory=TableKind)
    keyed: bool = True
    ordering_type: pa.DataType = field(default_factory=pa.int64)

    def read(self, file_slice: FileSlice, condition: Filter = TRUE, tally: ReadTally | None = None) -> pa.Table:
        """The live rows, in no promised order.

        Args:
            file_slice: of the table.
            condition: normalised, over columns of ``schema``: rows of the base file that fail it may be left out, as
                far as whole row groups and pages fail it.
            tally: counts what is read of the base file if there is a condition.

        Raises CorruptDataError, UnsupportedError, StorageNotFoundError.
        """
        if not self.keyed:
            return self._unmerged(file_slice, condition, tally)
        if rows_never_merge(self.kind, (str(log.name) for log in file_slice.log_files)):
            return self._joined(file_slice, condition, tally)
        events = LogEvents(self.working_schema(), self.ordering_field)
        for log_file in file_slice.log_files:
            self.take_log_file(events, log_file)
        log = events.merged()
        held_back = contested(log, condition, self.ordering_field)
        base = self._base_rows(file_slice, self.working_schema(), condition, held_back, tally)
        return (self._merge(base, log) if len(log.winners.keys) else base).select(self.schema.names)

    def _unmerged(self, file_slice: FileSlice, condition: Filter, tally: ReadTally | None) -> pa.Table:
        """The rows of the base file, which are all there are."""
        if file_slice.log_files:
            raise UnsupportedError(
                "a log file has rows without meta fields, so without the keys by which rows are merged",
                do_next="compact the table with Hudi, then read it",
                path=file_slice.log_files[0].path,
            )
        return self._base_rows(file_slice, self.schema, condition, NOT_HELD_BACK, tally)

    def _joined(self, file_slice: FileSlice, condition: Filter, tally: ReadTally | None) -> pa.Table:
        """All rows of the slice's files, one file after the other, but rows of the base file that fail."""
        parts = [self._base_rows(file_slice, self.schema, condition, NOT_HELD_BACK, tally)]
        for log in file_slice.log_files:
            blocks = filter(self._counts, iter_blocks(self.storage.read(log.path), log.path))
            parts += [aligned(decode_data_block(block, self.schema.names, log.path), self.schema) for block in blocks]
        return pa.concat_tables(parts)

    def base_rows(self, file_slice: FileSlice) -> pa.Table:
        """The rows of the slice's base file with the columns of the merge. Errors as ``read``."""
        return self._base_rows(file_slice, self.working_schema())

    def _base_rows(
        self,
        file_slice: FileSlice,
        schema: pa.Schema,
        condition: Filter = TRUE,
        held_back: ContestedRows | None = None,
        tally: ReadTally | None = None,
    ) -> pa.Table:
        base = file_slice.base_file
        if base is None:
            return schema.empty_table()
        if columns_of(condition):
            return aligned(wanted_rows(self.storage, base, schema, condition, held_back, tally), schema)
        return aligned(read_base_file(self.storage, base.path, schema.names, base.size), schema)

    def merged(self, base: pa.Table, events: LogEvents) -> pa.Table:
        """The live rows after the events of the log."""
        merged = self._merge(base, events.merged()) if events.keys else base
        return merged.select(self.schema.names)

    def read_further(
        self, log_files: Iterable[LogFile], known: Callable[[pa.Array], pa.Table]
    ) -> tuple[pa.Table, pa.Array]:
        """The rows that further log files of a slice change, and the keys that they delete.

        Args:
            log_files: in merge order.
            known: gives the live rows of some keys as they are without these log files, with the columns of ``schema``,
                the key and the ordering column among them.

        Returns (rows, keys of rows that do not live). Raises as ``read``.
        """
        events = LogEvents(self.working_schema(), self.ordering_field)
        for log_file in log_files:
            self.take_log_file(events, log_file)
        log = events.merged()
        rows = self._merge(aligned(known(log.winners.keys), self.working_schema()), log)
        return rows.select(self.schema.names), log.winners.keys.filter(pa.array(log.winners.row < 0))

    def deletes(self, file_slice: FileSlice) -> pa.Table:
        """The deletes of the slice's log files that win over every other event of their key in the log."""
        schema = self.working_schema()
        events = LogEvents(schema, self.ordering_field)
        for log_file in file_slice.log_files:
            self.take_log_file(events, log_file)
        winners = events.merged().winners
        mine = winners.take(np.flatnonzero((winners.row < 0) & ~winners.unconditional))
        return pa.table({RECORD_KEY_FIELD: mine.keys, self.ordering_field: pa.array(mine.ordering, pa.int64())})

    def take_log_file(self, events: LogEvents, log_file: LogFile) -> None:
        """Add the visible blocks of a log file. Errors as ``read``."""
        for block in iter_blocks(self.storage.read(log_file.path), log_file.path):
            if block.block_type is BlockType.COMMAND:
                self._check_rollback(block, log_file.path)
            elif self._counts(block):
                events.add(block, log_file.path)

    def _check_rollback(self, block: LogBlock, path: str) -> None:
        """A rollback in a table of version 6 appends a block that takes back those of an instant. The timeline has no
        such instant any more, unless the whole of it is later."""
        target = block.header.get(Header.TARGET_INSTANT_TIME)
        if target is None or self.timeline.is_completed(target):
            raise UnsupportedError(
                f"a log block takes back instant {target}, which the timeline does not show as taken back",
                do_next="compact the table with Hudi, then read it",
                path=path,
                offset=block.offset,
            )

    def _counts(self, block: LogBlock) -> bool:
        """A block without an instant, or of an instant that is not completed, is skipped, as both readers do."""
        instant = block.instant
        if instant is None or (self.as_of is not None and instant > self.as_of):
            return False
        return self.timeline.is_completed(instant)

    def working_schema(self) -> pa.Schema:
        """The columns that are read: the requested ones, plus the key and the ordering column for the merge."""
        extra = [pa.field(RECORD_KEY_FIELD, pa.string())]
        if self.ordering_field and self.ordering_field not in self.schema.names:
            extra.append(pa.field(self.ordering_field, self.ordering_type))
        return pa.schema([f for f in extra if f.name not in self.schema.names] + list(self.schema))

    def _merge(self, base: pa.Table, log: MergedLog) -> pa.Table:
        met, wins = log.winners.against(base, self.ordering_field)
        hit = np.flatnonzero(wins)
        alone = np.ones(len(log.winners.keys), dtype=np.bool_)
        alone[met[met >= 0]] = False
        changed, fresh = log.winners.row[met[hit]], log.winners.row[alone]
        fresh = fresh[fresh >= 0]
        if not log.rows.given:
            rows = np.concatenate((changed[changed >= 0], fresh))
            return pa.concat_tables([base.filter(pa.array(~wins)), log.rows.table.take(pa.array(rows))])
        source = np.arange(base.num_rows, dtype=np.int64)
        source[hit] = np.where(changed >= 0, base.num_rows + changed, -1)
        owner = np.flatnonzero(source >= 0)
        source = np.concatenate((source[owner], base.num_rows + fresh))
        return log.rows.with_base(base, source, np.concatenate((owner, np.full(len(fresh), -1))))


class GrowingSlice:
    """The rows of one file group at one moment after another. What was read of its file slice stays in memory, so that
    each log file is read once while the slice grows.
    """

    def __init__(self) -> None:
        self._base_path: str | None = ""
        self._base = pa.table({})
        self._events = LogEvents(pa.schema([]), "")
        self._taken: list[str] = []
        #: The bytes of the rows in memory.
        self.nbytes = 0

    def read(self, reader: SliceReader, file_slice: FileSlice) -> pa.Table:
        """The live rows, as ``SliceReader.read``.

        Args:
            reader: of the moment. Its schema and table are the same at each call.
            file_slice: of the moment and the file group.
        """
        path = file_slice.base_file.path if file_slice.base_file is not None else None
        logs = {log.path: log for log in file_slice.log_files}
        grown = path != self._base_path or self._taken != list(logs)
        if path != self._base_path or self._taken != list(logs)[: len(self._taken)]:
            self._base_path, self._base, self._taken = path, reader.base_rows(file_slice), []
            self._events = LogEvents(self._base.schema, reader.ordering_field)
        for log in list(logs.values())[len(self._taken) :]:
            reader.take_log_file(self._events, log)
            self._taken.append(log.path)
        if grown:
            self.nbytes = int(self._base.nbytes) + self._events.nbytes
        return reader.merged(self._base, copy.copy(self._events))  # a merge may move rows out of the events


def read_file_slice(
    table: HudiTable, file_slice: FileSlice, columns: Sequence[str] | None = None, as_of: str | None = None
) -> pa.Table:
    """The live rows of one file slice.

    Args:
        table: open.
        file_slice: from ``view.file_slices``, built with the same ``as_of``.
        columns: the returned columns, which may include meta fields; None for the meta fields and every table column.
        as_of: time travel to this instant, under the schema of that time.

    Raises CorruptDataError, UnsupportedError.
    """
    return _reader(table, columns, as_of).read(file_slice)


def read_deletes(table: HudiTable, file_slice: FileSlice) -> pa.Table:
    """The deletes in the log files of a slice that no newer row has overruled: record key and ordering value.

    A delete without an ordering value, which Hudi Spark writes, is left out: it removed only older rows of the slice.
    Raises CorruptDataError, UnsupportedError, StorageError.
    """
    field = table.config.ordering_field
    return _reader(table, [RECORD_KEY_FIELD, field], None).deletes(file_slice)


def read_table(storage: Storage, columns: Sequence[str] | None = None, as_of: str | None = None) -> Iterator[pa.Table]:
    """The live rows of a table, one Arrow table for each file slice. Arguments and errors as ``read_file_slice``."""
    table = HudiTable.open(storage)
    reader = _reader(table, columns, as_of)
    for file_slice in file_slices(storage, table.timeline, as_of):
        yield reader.read(file_slice)


def readable_schema(table: HudiTable, as_of: str | None) -> pa.Schema:
    """What can be read of a table as of a requested time, None for now: the meta fields, if it has them, then its
    columns. Raises UnsupportedError, CorruptDataError, StorageError."""
    columns = table.schema if as_of is None else table.schema_as_of(as_of)
    meta = META_FIELDS if table.config.has_meta_fields else ()
    return pa.schema([pa.field(name, pa.string()) for name in meta] + list(columns))


def reader_of(table: HudiTable, schema: pa.Schema, timeline: Timeline, as_of: str | None) -> SliceReader:
    """A reader of a table's file slices. Arguments as those of ``SliceReader``."""
    config = table.config
    columns = table.schema if as_of is None else table.schema_as_of(as_of)
    known = config.ordering_field in columns.names
    ordering = columns.field(config.ordering_field).type if known else pa.int64()
    return SliceReader(
        table.storage, schema, config.ordering_field, timeline, as_of, config.kind, config.has_meta_fields, ordering
    )


def _reader(table: HudiTable, columns: Sequence[str] | None, as_of: str | None) -> SliceReader:
    schema = readable_schema(table, as_of)
    if columns is not None:
        if unknown := [name for name in columns if name not in schema.names]:
            raise UnsupportedError(
                f"the table has no columns {unknown}",
                do_next="correct the column names",
                table=table.config.name,
            )
        schema = pa.schema([schema.field(name) for name in columns])
    return reader_of(table, schema, table.timeline, as_of)
