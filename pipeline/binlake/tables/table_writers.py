"""How the commits of an open table are written: their columns, the writers of its kind, what makes rows of events."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from binlake.rows.merging.engines.heights import NOTHING_COUNTED, FactHeights
from binlake.rows.merging.mergers import CopyMerger, PlainMerger, merger_of
from binlake.rows.merging.plain_deletes import keep_plain_deletes
from binlake.rows.merging.row_states import SliceRowStates
from binlake.rows.merging.state_cache import StateCache
from binlake.rows.merging.states import Merger
from binlake.rows.merging.stitch import Partial
from binlake.rows.upsert.kind_rules import first_bucketing
from binlake.settings import TableRules
from binlake.tables.definition import base_file_form
from binlake.tables.merging_check import joined_merging
from hudilake.commit.intent import Intent
from hudilake.errors import BinlakeError, CommitUnknownError, LostOwnershipError
from hudilake.format.definition.bucketing import Bucketing
from hudilake.format.definition.merging import Merging
from hudilake.format.files.append import open_groups
from hudilake.format.files.file_group_write import WriteContext
from hudilake.index.base import KeyIndex
from hudilake.index.open import open_index
from hudilake.storage import Storage
from hudilake.table.table import HudiTable
from hudilake.write.append import AppendWriter
from hudilake.write.group_writer import BaseWriter, GroupWriter, LogWriter

_log = logging.getLogger(__name__)


@dataclass
class WritableTable:
    """A table that is open for writing, and what writes it, by its kind and its rules.

    ``base_from_rows``: as in ``WriteContext``. ``heights``: how far its facts are counted.
    """

    storage: Storage
    table: HudiTable
    rules: TableRules
    base_from_rows: int | None = None
    heights: FactHeights = NOTHING_COUNTED
    _states: StateCache = field(default_factory=StateCache)
    _index: KeyIndex | None = None

    def begin(self, schema: pa.Schema, intent: Intent | None = None) -> WriteContext:
        """Start an instant whose files have the columns of ``schema`` (see
        ``LakeTable.schema_with``). ``intent`` and errors as
        ``HudiTable.begin``."""
        return self.context(self.table.begin(intent), schema)

    def context(self, instant: str, schema: pa.Schema) -> WriteContext:
        """The write context of an instant, for files with the columns of ``schema``, and the order columns of groups
        that are new."""
        hidden = [name for name in self.merging.hidden_fields if name not in schema.names]
        if hidden:
            schema = pa.schema([*schema, *(pa.field(name, pa.int64()) for name in hidden)])
        level = self.rules.compression_level if self.rules.compression == "zstd" else None
        context = self.table.write_context(instant, schema, self.rules.compression, level)
        keeps_keys = self.table.config.kind.keeps_keys
        return dataclasses.replace(context, base_from_rows=self.base_from_rows, keeps_keys=keeps_keys)

    @contextlib.contextmanager
    def undone_on_error(self, instant: str) -> Iterator[None]:
        """Roll an instant back before an error goes on, unless its outcome is unknown or another writer owns it."""
        try:
            yield
        except (CommitUnknownError, LostOwnershipError):
            raise
        except BinlakeError:
            try:
                self.table.abort(instant)
            except BinlakeError as error:
                fields = {"event": "not_rolled_back", "table": self.rules.path, "instant": instant}
                text = "%s: %s was not rolled back; the next start does it: %s"
                _log.warning(text, self.rules.path, instant, error, extra=fields)
            raise

    @property
    def own_bucketing(self) -> Bucketing | None:
        """Its buckets, if they are not those of the settings: they count for new tables."""
        known = self.table.config.bucketing
        if self.table.config.kind.looks_up:
            return None
        return known if known != first_bucketing(self.rules) else None

    def append_writer(self, context: WriteContext) -> AppendWriter | None:
        """What adds rows to an append table, on its file groups of now; None for any other table. Raises
        CorruptDataError, StorageError."""
        kind, sizes = self.table.config.kind, self.rules.files
        if not kind.appends:
            return None
        groups = open_groups(self.table.slices_to_fill(), sizes)
        return AppendWriter(context, sizes, groups, kind.copies, base_file_form(self.rules))

    @property
    def key_index(self) -> KeyIndex:
        """The index that finds its rows, opened once; only of a table that looks keys up."""
        if self._index is None:
            self._index = open_index(self.table, self.rules.index)
        return self._index

    @property
    def merging(self) -> Merging:
        """How the table's writer merges. Raises CorruptDataError."""
        return Merging.of(self.table.config)

    def become(self, wanted: Merging) -> None:
        """Take in the groups of ``wanted``, for all writers from their next instant on (``merging_check``). The next
        commit brings their order columns. Raises ConfigError if the table cannot have them, StorageError."""
        if joined_merging(self.table.config, wanted, self.rules.path) == self.merging:
            return
        with self.table.exclusively():
            merging = joined_merging(self.table.config, wanted, self.rules.path)
            if merging.groups and not self.merging.by_writer:
                keep_plain_deletes(self.table, merging.groups[0])
            self.table.adopt(merging.on(self.table.config))

    def merger(self, schema: pa.Schema, heights: FactHeights | None = None) -> Merger:
        """What makes rows of events, on the table's state of now, for files with the columns of ``schema``. Raises
        CorruptDataError, UnsupportedError, StorageError.

        ``heights``: how far facts are counted; None for the table's own.
        """
        merging = self.merging
        if not merging.by_writer:
            forgets = self.table.config.kind.copies and self.table.config.kind.computed
            return CopyMerger(self.storage, self.table.timeline) if forgets else PlainMerger()
        partial: Partial = "always" if self.rules.conflicts == "column" else "by_width"
        known = self.heights if heights is None else heights
        return merger_of(merging, self.table.config, schema, self.row_states(schema), partial, known)

    def row_states(self, schema: pa.Schema) -> SliceRowStates:
        """What rows are now, for a table merged by its writer. ``schema``: the columns, also those to come. Raises
        CorruptDataError, StorageError."""
        slices = {piece.file_id: piece for piece in self.table.file_slices()}
        return SliceRowStates(self.storage, self.table.timeline, schema, self.merging, slices, self._states)

    def group_writer(self, context: WriteContext) -> GroupWriter:
        """How an instant writes file groups, upon the table's state of now. Raises CorruptDataError, StorageError."""
        if not self.table.config.kind.copies:
            firsts = context.base_from_rows is not None
            existing = {(s.partition_path, s.file_id) for s in self.table.file_slices()} if firsts else set()
            return LogWriter(context, frozenset(existing), form=base_file_form(self.rules))
        return self.base_writer(context)

    def base_writer(self, context: WriteContext) -> BaseWriter:
        """How an instant rewrites base files, upon the table's state of now. Raises CorruptDataError, StorageError."""
        kind, rules = self.table.config.kind, self.rules
        bases = {s.file_id: s.base_file for s in self.table.file_slices() if s.base_file is not None}
        sizes = None if kind.computed else rules.files
        keeps_deletes = kind.computed and not self.merging.by_writer
        return BaseWriter(context, bases, sizes, keeps_deletes, base_file_form(rules))
