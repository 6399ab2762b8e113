"""The rows of a table's file groups as they were when a commit completed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import UnsupportedError
from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.files.view import FileSlice, partition_paths
from pipeline.hudi.read.listing import slices_for
from pipeline.hudi.read.query import Incremental
from pipeline.hudi.read.slice import SliceReader
from pipeline.hudi.read.window import COMMIT_TIME_FIELD, CommitWindow, timeline_until
from pipeline.hudi.table.table import HudiTable
from pipeline.hudi.timeline.timeline import Timeline
from pipeline.samples.completeness import Completeness
from pipeline.samples.position import Place, Shard
from pipeline.samples.steps import GroupName, Step, expired
from pipeline.storage.base import FileInfo


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
    """Reads what a step made complete. No more than one file slice is in memory.

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
        rows = self._complete_rows(end, group, [*self.schema.names, COMMIT_TIME_FIELD])
        if begin is not None:
            rows = rows.filter(pa.array(window.matches(rows)))
        if after is not None and group == (after.partition_path, after.file_id):
            rows = rows.filter(pc.greater(rows.column(RECORD_KEY_FIELD), after.record_key))
        if begin is not None and not self.changes and rows.num_rows and group in begin.slices:
            given = self._complete_rows(begin, group, []).column(RECORD_KEY_FIELD)
            rows = rows.filter(pc.invert(pc.is_in(rows.column(RECORD_KEY_FIELD), value_set=given.combine_chunks())))
        rows = rows.take(pc.sort_indices(rows.column(RECORD_KEY_FIELD)))
        return GroupRows(group, rows.column(RECORD_KEY_FIELD).combine_chunks(), rows.select(self.schema.names))

    def _complete_rows(self, moment: _Moment, group: GroupName, columns: Sequence[str]) -> pa.Table:
        types = pa.schema([*self.schema, *(f for f in self.table.schema if f.name not in self.schema.names)])
        names = dict.fromkeys([*columns, RECORD_KEY_FIELD, *self.rule.columns])
        schema = pa.schema([types.field(n) if n in types.names else pa.field(n, pa.string()) for n in names])
        reader = SliceReader(self.table.storage, schema, self.table.config.ordering_field, moment.timeline)
        rows = reader.read(moment.slices[group])
        passing = self.rule.holds(rows)
        return rows if np.all(passing) else rows.filter(pa.array(passing))

    def _at(self, time: str, paths: Sequence[str], step: Step) -> _Moment:
        table = self.table
        files = {path: self._listed(path) for path in paths}
        try:
            timeline = timeline_until(table.storage, table.timeline, time)
            slices = slices_for(Incremental("", time), files, table.timeline, timeline, table.storage)
        except UnsupportedError as error:
            if error.where.get("instant") != time:
                raise
            raise expired(step.begin, table.config.name, error.what) from error
        return _Moment(timeline, {(one.partition_path, one.file_id): one for one in slices})

    def _listed(self, path: str) -> list[FileInfo]:
        if path not in self._files:
            self._files[path] = self.table.storage.list(path)
        return self._files[path]
