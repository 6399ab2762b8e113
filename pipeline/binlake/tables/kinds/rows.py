"""What all kinds of lake tables share: the object that answers how rows of an open table are placed and written.

``of_kind.rows_of`` makes the object of a table's kind. A new kind is a subclass of ``TableRows`` named there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np
import pyarrow as pa

from binlake.rows.merging.engines.heights import FactHeights
from binlake.rows.merging.mergers import MergedState, PlainMerger, merger_of
from binlake.rows.merging.row_states import SliceRowStates
from binlake.rows.merging.state_cache import ORDERS_BYTES, ROWS, KeptOrders, StateCache
from binlake.rows.merging.states import Merger
from binlake.rows.merging.stitch import Partial
from binlake.rows.tasks.plan import TableWriter, WrittenFile
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.target import ORDER_FIELD, first_bucketing
from binlake.settings import TableRules
from binlake.tables.definition import base_file_form
from hudilake.commit.intent import Intent
from hudilake.format.definition.bucketing import Bucketing, GroupNames
from hudilake.format.definition.merging import Merging
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.format.files.view import FileSlice
from hudilake.policies import FileSizePolicy
from hudilake.storage import Storage
from hudilake.table.group_names import group_names, place_of
from hudilake.table.table import HudiTable
from hudilake.write.group_writer import BaseWriter, GroupWriter, LogWriter


@dataclass(frozen=True, slots=True)
class Wrote:
    """What ``TableRows.write`` wrote, and the times of stages of its own in milliseconds by name."""

    done: Sequence[WrittenFile]
    stage_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass
class TableRows(ABC):
    """Where the rows of an open table go and how its commits write them, on the table's state of now.

    Args:
        storage: the table's root.
        table: open.
        rules: of the table.
    """

    storage: Storage
    table: HudiTable
    rules: TableRules
    _names: GroupNames | None = field(init=False)
    _owner: object = field(default_factory=object)
    _orders: StateCache[KeptOrders] = field(default_factory=partial(StateCache[KeptOrders], ORDERS_BYTES))

    def __post_init__(self) -> None:
        self._names = GroupNames(self.table.config.name, self.table.config.bucketing)

    @property
    def names(self) -> GroupNames:
        """The ids of the file groups. Errors as ``group_names``."""
        if self._names is None:
            self.load()
        return cast(GroupNames, self._names)

    def forget(self) -> None:
        """Learn the ids of the file groups on their next use: a table that is in no batch needs none."""
        self._names = None

    def load(self) -> None:
        """Learn the ids of the file groups. Errors as ``group_names``."""
        self._names = group_names(self.table, self.rules.path)

    @property
    def merging(self) -> Merging:
        """How the table's writer merges. Raises CorruptDataError."""
        return self.table.config.merging

    # -- what each kind answers ---------------------------------------------------------------------------------------

    @abstractmethod
    def intent(self, places: Sequence[Place], columns: pa.Schema) -> Intent:
        """What a commit will write.

        Args:
            places: of the rows, sorted.
            columns: of the rows, lake names.
        """

    @abstractmethod
    def write(
        self,
        groups: Mapping[Place, pa.Table],
        context: WriteContext,
        pool: Executor,
        heights: FactHeights,
    ) -> Wrote:
        """Write the rows that the driver holds.

        Args:
            groups: rows as parcels hold them, by place.
            context: of the commit.
            pool: file groups are read and written side by side.
            heights: how far facts are counted.

        Raises CorruptDataError, UnsupportedError, StorageError.
        """

    def written_by_tasks(self, *, shuffled: bool) -> bool:
        """Whether tasks can write rows, as the rows come or ``shuffled`` to the tasks of their file groups."""
        return shuffled

    def place_of(self, piece: FileSlice) -> Place:
        """The partition path and the bucket of a file slice. Raises ConfigError for a file group of no bucket."""
        return place_of(self.table, piece, self.rules.path)

    @property
    def own_bucketing(self) -> Bucketing | None:
        """The table's buckets, if they are not those of the settings: they count for new tables."""
        known = self.table.config.bucketing
        return known if known != first_bucketing(self.rules) else None

    def routed_by(self, bucketing: Bucketing) -> bool:
        """Whether rows that were routed by these buckets are at their places."""
        return True

    def keep_keys(self, instant: str, results: Sequence[WriteResult]) -> None:
        """Tell the index which keys come and go with an instant that has not completed. Errors as ``KeyIndex.keep``."""
        return  # the file groups are the index

    def keep_removed(self, instant: str, removed: Sequence[tuple[str, pa.Table]]) -> None:
        """Keep the deletes of an instant that no event made, so that older rows that come late do not return.
        ``removed``: partition paths, each with rows of KEY and ORDER_FIELD. Raises StorageError."""
        return  # the deletes are in the file groups of their keys

    def changeable(self) -> list[FileSlice]:
        """The newest slices, whose rows a statement may change. Raises CorruptDataError, StorageError."""
        return self.table.file_slices()

    def task_writer(self, context: WriteContext, heights: FactHeights) -> TableWriter:
        """What tasks need to write the table. Raises CorruptDataError, UnsupportedError, StorageError."""
        merger = self.merger(context, heights)
        return TableWriter(self.group_writer(context), self.names, merger, len(self.merging.groups))

    def _plain_merger(self) -> Merger:
        """What makes rows of events where readers merge."""
        return PlainMerger()

    @property
    def _base_sizes(self) -> FileSizePolicy | None:
        """How large base files become that commits rewrite; None where they are as large as their buckets."""
        return self.rules.files

    @property
    def _bases_keep_deletes(self) -> bool:
        """Whether commits that rewrite base files keep the deletes, which base files forget."""
        return False

    # -- the same for all kinds ---------------------------------------------------------------------------------------

    def merger(self, context: WriteContext, heights: FactHeights) -> Merger:
        """What makes rows of events, on the table's state of now, for the files of a commit. Raises CorruptDataError,
        UnsupportedError, StorageError.

        ``heights``: how far facts are counted.
        """
        merging = self.merging
        if not merging.by_writer:
            return self._plain_merger()
        partial: Partial = "always" if self.rules.conflicts == "column" else "by_width"
        schema = context.arrow_schema
        config, states = self.table.config, self.row_states(schema)
        shared = (*config.record_key_fields, *config.partition_fields)
        return merger_of(MergedState(merging, schema, states, shared, context.instant, partial, heights, states))

    def with_orders(self, stored: pa.Table) -> pa.Table:
        """Stored rows with orders to compare with that of a TRUNCATE: rows that the writer merged are from before every
        TRUNCATE that is taken (``truncation.check_truncates``), as their own order does not say."""
        if not self.merging.by_writer:
            return stored
        number = stored.column_names.index(ORDER_FIELD)
        return stored.set_column(number, ORDER_FIELD, pa.array(np.zeros(len(stored), dtype=np.int64)))

    def row_states(self, schema: pa.Schema) -> SliceRowStates:
        """What rows are now, for a table merged by its writer. ``schema``: the columns, also those to come. Raises
        CorruptDataError, StorageError."""
        slices = {piece.file_id: piece for piece in self.table.file_slices()}
        of_now = (self.storage, self.table.timeline, schema, self.merging, slices)
        return SliceRowStates(*of_now, self._orders, ROWS, self._owner)

    def group_writer(self, context: WriteContext) -> GroupWriter:
        """How an instant writes file groups, upon the table's state of now. Raises CorruptDataError, StorageError."""
        if not self.table.config.kind.copies:
            firsts = context.base_from_rows is not None
            existing = {(s.partition_path, s.file_id) for s in self.table.file_slices()} if firsts else set()
            return LogWriter(context, frozenset(existing), form=base_file_form(self.rules))
        return self.base_writer(context)

    def base_writer(self, context: WriteContext) -> BaseWriter:
        """How an instant rewrites base files, upon the table's state of now. Raises CorruptDataError, StorageError."""
        bases = {s.file_id: s.base_file for s in self.table.file_slices() if s.base_file is not None}
        return BaseWriter(context, bases, self._base_sizes, self._bases_keep_deletes, base_file_form(self.rules))
