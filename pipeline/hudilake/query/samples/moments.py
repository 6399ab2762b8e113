"""The table as it was when a commit completed: its timeline, the file slices of some partitions, and their rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.timeline import Timeline
from hudilake.query.samples.steps import GroupName, SampleStep, expired
from hudilake.read.listing import slices_for
from hudilake.read.query import Incremental
from hudilake.read.slice import GrowingSlice, reader_of
from hudilake.read.window import timeline_until
from hudilake.storage.base import FileInfo
from hudilake.table.table import HudiTable

#: The most bytes of rows of file slices that stay in memory between two steps.
KEPT_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class TableMoment:
    """The table when a commit completed: its timeline, and the file slices of some partitions."""

    timeline: Timeline
    slices: dict[GroupName, FileSlice]


@dataclass
class Moments:
    """Finds and reads the file slices of one table at the ends of steps. Listings are kept until ``refreshed``, and up
    to KEPT_BYTES of the rows of slices that may grow."""

    table: HudiTable
    _files: dict[str, list[FileInfo]] = field(default_factory=dict)
    _kept: OrderedDict[GroupName, GrowingSlice] = field(default_factory=OrderedDict)

    def refreshed(self) -> None:
        """Forget the listings: the table was refreshed."""
        self._files.clear()

    def at(self, time: str, paths: Sequence[str], step: SampleStep) -> TableMoment:
        """The partitions ``paths`` as of the completion time ``time`` of a step. Raises PositionExpiredError if files
        of that time may be deleted, CorruptDataError, StorageError."""
        table = self.table
        files = {path: self._listed(path) for path in paths}
        try:
            timeline = timeline_until(table.storage, table.timeline, time)
            slices = slices_for(Incremental("", time), files, table.timeline, timeline, table.storage)
        except UnsupportedError as error:
            if error.where.get("instant") != time:
                raise
            raise expired(step.begin, step.end, error.what) from error
        return TableMoment(timeline, {(one.partition_path, one.file_id): one for one in slices})

    def rows(self, moment: TableMoment, group: GroupName, schema: pa.Schema) -> pa.Table:
        """The live rows of a file group at a moment. ``schema``: the same at each call; errors as
        ``SliceReader.read``."""
        piece = self._kept.pop(group, None) or GrowingSlice()
        rows = piece.read(reader_of(self.table, schema, moment.timeline, None), moment.slices[group])
        self._kept[group] = piece
        while len(self._kept) > 1 and sum(one.nbytes for one in self._kept.values()) > KEPT_BYTES:
            self._kept.popitem(last=False)
        return rows

    def _listed(self, path: str) -> list[FileInfo]:
        if path not in self._files:
            self._files[path] = self.table.storage.list(path)
        return self._files[path]


def value_schema(table: HudiTable, columns: Sequence[str] | None) -> pa.Schema:
    """The asked columns with their types; None for all but hidden ones. Raises UnsupportedError for columns that the
    table lacks."""
    hidden = {table.config.ordering_field, *table.config.merging.hidden_fields}
    names = [n for n in table.schema.names if n not in hidden] if columns is None else list(columns)
    if unknown := [name for name in names if name not in table.schema.names]:
        raise UnsupportedError(
            f"the table has no columns {unknown}", do_next="correct the column names", table=table.config.name
        )
    return pa.schema([table.schema.field(name) for name in names])


def refuse_changed(table: HudiTable, values: pa.Schema, whose: str) -> None:
    """Raise UnsupportedError if the table lacks one of the columns ``values`` now, or has it in another type.

    ``whose``: what is read, for the error.
    """
    present = {one.name: one.type for one in table.schema}
    if gone := [one.name for one in values if present.get(one.name) != one.type]:
        raise UnsupportedError(
            f"columns of the {whose} are gone or have other types: {gone}",
            do_next=f"open the {whose} anew at the last position, with the columns of now",
            table=table.config.name,
        )
