"""The rows of a table's file groups as they were when a commit completed."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.view import FileSlice, partition_paths
from hudilake.format.timeline.timeline import Timeline
from hudilake.query.samples.completeness import Completeness
from hudilake.query.samples.position import Place, Shard
from hudilake.query.samples.steps import GroupName, Step, expired
from hudilake.read.listing import slices_for
from hudilake.read.query import Incremental
from hudilake.read.slice import GrowingSlice, SliceReader
from hudilake.read.window import COMMIT_TIME_FIELD, CommitWindow, timeline_until
from hudilake.storage.base import FileInfo
from hudilake.table.table import HudiTable

#: The most bytes of rows of file slices that stay in memory between two steps.
KEPT_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class GroupRows:
    """The new samples of one file group in one step: n rows of the asked columns by record key, and their keys."""

    group: GroupName
    keys: pa.Array
    rows: pa.Table


@dataclass(frozen=True)
class _Moment:
    """The table when a commit completed: its timeline, and the file slices of some partitions."""

    timeline: Timeline
    slices: dict[GroupName, FileSlice]


@dataclass
class States:
    """Reads what a step made complete. One file slice is in memory, and up to KEPT_BYTES of others that may grow.

    Args:
        table: open, refreshed by the caller.
        schema: the asked columns.
        rule: which rows are complete.
        changes: whether complete rows that the step wrote are given again.
        shard: the file groups to read.
    """

    table: HudiTable
    schema: pa.Schema
    rule: Completeness
    changes: bool
    shard: Shard
    _files: dict[str, list[FileInfo]] = field(default_factory=dict)
    _kept: OrderedDict[GroupName, GrowingSlice] = field(default_factory=OrderedDict)

    @property
    def rule_number(self) -> int:
        """A number that tells which rows are samples: another one for another rule."""
        return zlib.crc32(repr((self.rule, self.changes)).encode())

    def refreshed(self) -> None:
        """Forget the listings: the table was refreshed."""
        self._files.clear()

    def completed_in(self, step: Step, after: Place | None) -> Iterator[GroupRows]:
        """The rows that are complete at the step's end and were not at its begin, by file group and record key.

        ``after``: leave out rows up to this one. Raises PositionExpiredError if files of that time may be deleted,
        StorageNotFoundError if one was deleted meanwhile, CorruptDataError, UnsupportedError, StorageError.
        """
        groups = self._groups(step)
        paths = sorted({path for path, _ in groups} if groups is not None else partition_paths(self.table.storage))
        end = self._at(step.end, paths, step)
        begin = self._at(step.begin, paths, step) if step.begin else None
        window = CommitWindow(end.timeline, step.begin, step.end)
        for group in sorted(end.slices if groups is None else groups & end.slices.keys()):
            if self.shard.holds(*group) and (after is None or group >= (after.partition_path, after.file_id)):
                yield self._new_rows(group, begin, end, window, after)

    def _groups(self, step: Step) -> frozenset[GroupName] | None:
        return None if step.groups is None else frozenset(g for g in step.groups if self.shard.holds(*g))

    def _new_rows(
        self, group: GroupName, begin: _Moment | None, end: _Moment, window: CommitWindow, after: Place | None
    ) -> GroupRows:
        given = None  # read before the rows of the end: the slice only grows
        if begin is not None and not self.changes and group in begin.slices:
            given = self._complete_rows(begin, group).column(RECORD_KEY_FIELD).combine_chunks()
        rows = self._complete_rows(end, group)
        if begin is not None:
            rows = rows.filter(pa.array(window.matches(rows)))
        if given is not None:
            rows = rows.filter(pc.invert(pc.is_in(rows.column(RECORD_KEY_FIELD), value_set=given)))
        if after is not None and group == (after.partition_path, after.file_id):
            rows = rows.filter(pc.greater(rows.column(RECORD_KEY_FIELD), after.record_key))
        rows = rows.take(pc.sort_indices(rows.column(RECORD_KEY_FIELD)))
        return GroupRows(group, rows.column(RECORD_KEY_FIELD).combine_chunks(), rows.select(self.schema.names))

    def _complete_rows(self, moment: _Moment, group: GroupName) -> pa.Table:
        types = pa.schema([*self.schema, *(f for f in self.table.schema if f.name not in self.schema.names)])
        names = dict.fromkeys([*self.schema.names, RECORD_KEY_FIELD, COMMIT_TIME_FIELD, *self.rule.columns])
        schema = pa.schema([types.field(n) if n in types.names else pa.field(n, pa.string()) for n in names])
        reader = SliceReader(self.table.storage, schema, self.table.config.ordering_field, moment.timeline)
        kept = self._kept.pop(group, None) or GrowingSlice()
        rows = kept.read(reader, moment.slices[group])
        self._keep(group, kept)
        passing = self.rule.holds(rows)
        return rows if np.all(passing) else rows.filter(pa.array(passing))

    def _keep(self, group: GroupName, piece: GrowingSlice) -> None:
        """Keep a slice for the next step; those that were not read for the longest time make room."""
        self._kept[group] = piece
        while len(self._kept) > 1 and sum(one.nbytes for one in self._kept.values()) > KEPT_BYTES:
            self._kept.popitem(last=False)

    def _at(self, time: str, paths: Sequence[str], step: Step) -> _Moment:
        table = self.table
        files = {path: self._listed(path) for path in paths}
        try:
            timeline = timeline_until(table.storage, table.timeline, time)
            slices = slices_for(Incremental("", time), files, table.timeline, timeline, table.storage)
        except UnsupportedError as error:
            if error.where.get("instant") != time:
                raise
            raise expired(step.begin, step.end, error.what) from error
        return _Moment(timeline, {(one.partition_path, one.file_id): one for one in slices})

    def _listed(self, path: str) -> list[FileInfo]:
        if path not in self._files:
            self._files[path] = self.table.storage.list(path)
        return self._files[path]
