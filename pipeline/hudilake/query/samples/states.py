"""The rows of a table's file groups as they were when a commit completed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.view import partition_paths
from hudilake.query.samples.completeness import Completeness
from hudilake.query.samples.moments import Moments, TableMoment
from hudilake.query.samples.position import LastRow, Shard
from hudilake.query.samples.steps import GroupName, SampleStep
from hudilake.read.window import COMMIT_TIME_FIELD, CommitWindow
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class GroupRows:
    """The new samples of one file group in one step: n rows of the asked columns by record key, and their keys."""

    group: GroupName
    keys: pa.Array
    rows: pa.Table


@dataclass
class States:
    """Reads what a step made complete.

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
    moments: Moments = field(init=False)

    def __post_init__(self) -> None:
        self.moments = Moments(self.table)

    @property
    def rule_number(self) -> int:
        """A number that tells which rows are samples: another one for another rule."""
        return zlib.crc32(repr((self.rule, self.changes)).encode())

    def completed_in(self, step: SampleStep, after: LastRow | None) -> Iterator[GroupRows]:
        """The rows that are complete at the step's end and were not at its begin, by file group and record key.

        ``after``: leave out rows up to this one. Raises PositionExpiredError if files of that time may be deleted,
        StorageNotFoundError if one was deleted meanwhile, CorruptDataError, UnsupportedError, StorageError.
        """
        groups = self._groups(step)
        paths = sorted({path for path, _ in groups} if groups is not None else partition_paths(self.table.storage))
        end = self.moments.at(step.end, paths, step)
        begin = self.moments.at(step.begin, paths, step) if step.begin else None
        window = CommitWindow(end.timeline, step.begin, step.end)
        for group in sorted(end.slices if groups is None else groups & end.slices.keys()):
            if self.shard.holds(*group) and (after is None or group >= (after.partition_path, after.file_id)):
                yield self._new_rows(group, begin, end, window, after)

    def _groups(self, step: SampleStep) -> frozenset[GroupName] | None:
        return None if step.groups is None else frozenset(g for g in step.groups if self.shard.holds(*g))

    def _new_rows(
        self, group: GroupName, begin: TableMoment | None, end: TableMoment, window: CommitWindow, after: LastRow | None
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

    def _complete_rows(self, moment: TableMoment, group: GroupName) -> pa.Table:
        types = pa.schema([*self.schema, *(f for f in self.table.schema if f.name not in self.schema.names)])
        names = dict.fromkeys([*self.schema.names, RECORD_KEY_FIELD, COMMIT_TIME_FIELD, *self.rule.columns])
        schema = pa.schema([types.field(n) if n in types.names else pa.field(n, pa.string()) for n in names])
        rows = self.moments.rows(moment, group, schema)
        passing = self.rule.holds(rows)
        return rows if np.all(passing) else rows.filter(pa.array(passing))
