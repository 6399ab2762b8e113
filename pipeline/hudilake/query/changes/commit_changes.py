"""What single commits changed: the states of their file groups before and afterwards, compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudilake.errors import TransientError, UnsupportedError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.timeline.instant import REPLACE_COMMIT, Instant
from hudilake.query.changes.differences import Differences, differences
from hudilake.query.samples.moments import Moments, TableMoment, value_schema
from hudilake.query.samples.steps import GroupName, SampleStep
from hudilake.storage.base import StorageNotFoundError
from hudilake.table.table import HudiTable

#: Columns of a batch before ``before`` and ``after``.
HEAD_FIELDS = (pa.field("op", pa.string()), pa.field("commit", pa.string()), pa.field("completed", pa.string()))

#: Units of a commit by name: the file groups of each are compared together.
Units = Mapping[GroupName, Collection[GroupName]]


@dataclass
class CommitChanges:
    """Reads the changes of commits of one table.

    Args:
        table: open.
        columns: the compared and returned columns; None for all but hidden ones.
    """

    table: HudiTable
    columns: Sequence[str] | None
    moments: Moments = field(init=False)
    values: pa.Schema = field(init=False)
    schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        """Raises UnsupportedError for a table whose rows have no keys and for columns that it lacks."""
        config = self.table.config
        config.refuse_older("a feed of changes")
        if not config.has_meta_fields:
            raise UnsupportedError(
                "the rows of a table without meta fields have no record keys to compare them by",
                do_next="read it with scan(since=...)",
                table=config.name,
            )
        self.moments = Moments(self.table)
        self.values = value_schema(self.table, self.columns)
        sides = pa.struct(list(self.values))
        self.schema = pa.schema([*HEAD_FIELDS, pa.field("before", sides), pa.field("after", sides)])

    def write_of(self, step: SampleStep) -> Instant:
        """The commit of a step of one commit."""
        return next(one for one in reversed(self.table.timeline.completed()) if one.completion_time == step.end)

    def units(self, step: SampleStep, write: Instant) -> Units:
        """The units of a commit: each file group alone, but all of a partition where a write has replaced some, since
        their rows may be in others now. Raises CorruptDataError, StorageError."""
        groups = set(step.groups) if step.groups is not None else self._all_groups(step)
        if write.action != REPLACE_COMMIT:
            return {group: [group] for group in groups}
        replaced = self.table.timeline.replaced()
        groups |= {group for group, instant in replaced.items() if instant == write.requested_time}
        return {(path, ""): [group for group in sorted(groups) if group[0] == path] for path, _ in groups}

    def compared(self, step: SampleStep, units: Units) -> Iterator[tuple[GroupName, Differences]]:
        """The changes of some units of a commit, by their names.

        Raises TransientError if a file was cleaned meanwhile, PositionExpiredError if the table does not keep the
        states, CorruptDataError, UnsupportedError, StorageError.
        """
        paths = sorted({path for path, _ in units})
        end = self.moments.at(step.end, paths, step)
        begin = self.moments.at(step.begin, paths, step) if step.begin else None
        for name, groups in sorted(units.items()):
            try:
                old, new = self._rows(begin, groups), self._rows(end, groups)  # in this order: slices only grow
            except StorageNotFoundError as error:
                raise TransientError(
                    "the table was cleaned while its changes were read",
                    do_next="go on from the last position; raise the cleaner's retention if it happens often",
                    table=self.table.config.name,
                    path=str(error),
                ) from error
            yield name, differences(old, new, self.values, "/".join(name))

    def batches(self, changes: Differences, write: Instant, rows: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Batches of at most ``rows`` changes of a commit, each with the number of the change behind it."""
        for begin in range(0, len(changes), rows):
            end = min(begin + rows, len(changes))
            parts = [part.slice(begin, end - begin) for part in (changes.ops, changes.before, changes.after)]
            times = [pa.repeat(pa.scalar(text), end - begin) for text in (write.requested_time, write.completion_time)]
            yield pa.RecordBatch.from_arrays([parts[0], *times, *parts[1:]], schema=self.schema), end

    def _all_groups(self, step: SampleStep) -> set[GroupName]:
        stats = (
            stat
            for write in self.table.timeline.completed()
            if (write.completion_time or "") <= step.end
            for stat in self.table.timeline.commit_metadata(write).stats
        )
        return {(stat.partition_path, stat.file_id) for stat in stats}

    def _rows(self, moment: TableMoment | None, groups: Collection[GroupName]) -> pa.Table:
        key = pa.field(RECORD_KEY_FIELD, pa.string())
        schema = pa.schema([key, *(one for one in self.values if one.name != RECORD_KEY_FIELD)])
        present = [group for group in groups if moment is not None and group in moment.slices]
        if moment is None or not present:
            return schema.empty_table()
        return pa.concat_tables([self.moments.rows(moment, group, schema) for group in present])
