"""The changes of a table, commit after commit: ``Table.changes``.

A commit is compared with the state before it, file group by file group, so whatever wrote it, the changes are those
that a reader sees. Compactions and clusterings change no row and are passed over.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudilake.errors import ConfigError, TransientError, UnsupportedError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.timeline.instant import REPLACE_COMMIT, Instant
from hudilake.query.changes.differences import Differences, differences
from hudilake.query.changes.position import ChangePosition
from hudilake.query.samples.moments import Moments, TableMoment, refuse_changed, value_schema
from hudilake.query.samples.position import LastRow
from hudilake.query.samples.steps import GroupName, SampleStep, last_completion, next_step, refuse_archived
from hudilake.storage.base import StorageNotFoundError
from hudilake.table.table import HudiTable

#: Columns of a batch before ``before`` and ``after``.
HEAD_FIELDS = (pa.field("op", pa.string()), pa.field("commit", pa.string()), pa.field("completed", pa.string()))


@dataclass
class ChangeFeed:
    """An iterable over Arrow record batches of changes, in the order in which their commits completed. ``position`` is
    the place behind the last batch. ``Table.changes`` makes it. Not for use from several threads at once.

    A batch has the columns ``op`` (``i``, ``u`` or ``d``), ``commit`` (requested time), ``completed``, ``before`` and
    ``after``: structs of the asked columns, null where there is no row. In a commit the changes are ordered by
    partition, file group and record key. A row that a commit wrote without another value in these columns is no change.
    A row that moves to another partition is deleted in one and inserted in the other.

    Args:
        table: open.
        columns: the compared and returned columns; None for all but hidden ones.
        position: the place to begin at.
        until: no commits that completed later; None for no limit.
        batch_rows: the largest number of changes of a batch.
        follow: whether the iteration waits for new commits instead of ending.
        poll_s: seconds between two looks at the table while it waits.
        stop: ends an iteration that follows the table.

    Example:
        >>> changes = pa.Table.from_batches(orders.changes(since=""))
        >>> changes.column("op").to_pylist(), changes.column("after").to_pylist()[0]["id"]
        (['i', 'i', 'i'], 1)
    """

    table: HudiTable
    columns: Sequence[str] | None
    position: ChangePosition
    until: str | None = None
    batch_rows: int = 8192
    follow: bool = False
    poll_s: float = 1.0
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Raises ConfigError for arguments that exclude each other, UnsupportedError for a table whose rows have no
        keys and for columns that it lacks, PositionExpiredError for a position that is too old, StorageError."""
        config = self.table.config
        config.refuse_older("a feed of changes")
        if self.follow and self.until is not None:
            raise ConfigError("follow and until exclude each other", do_next="give one of them", table=config.name)
        if self.batch_rows < 1:
            raise ConfigError("batch_rows is at least 1", do_next="raise it", table=config.name)
        if not config.has_meta_fields:
            raise UnsupportedError(
                "the rows of a table without meta fields have no record keys to compare them by",
                do_next="read it with scan(since=...)",
                table=config.name,
            )
        self.values = value_schema(self.table, self.columns)
        sides = pa.struct(list(self.values))
        self.schema = pa.schema([*HEAD_FIELDS, pa.field("before", sides), pa.field("after", sides)])
        self._moments = Moments(self.table)
        self.position.check_kept(self.table.timeline)
        refuse_archived(self.table.timeline, self.position.completed, whole=True)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batches. After an error the iteration can begin again: it goes on at ``position``.

        Raises TransientError if a file was cleaned while it was read, PositionExpiredError if the table does not keep
        what was written since the position, UnsupportedError if its columns have changed, CorruptDataError,
        StorageError.
        """
        while True:
            yield from self._until_now()
            if not self.follow or not self._wait():
                return

    def _until_now(self) -> Iterator[pa.RecordBatch]:
        timeline, position = self.table.timeline, self.position
        last = last_completion(timeline, self.until)
        while step := next_step(timeline, position.completed, position.step, last, 1):
            write = next(one for one in reversed(timeline.completed()) if one.completion_time == step.end)
            for changes, group in self._compared(step, write):
                for rows in self._batches(changes, write):
                    after = LastRow(*group, changes.keys[rows[1] - 1].as_py())
                    self.position = ChangePosition(position.completed, position.commit, step.end, after)
                    yield rows[0]
            self.position = position = ChangePosition.behind(write)

    def _batches(self, changes: Differences, write: Instant) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Batches of n changes, each with the number of the change behind it."""
        for begin in range(0, len(changes), self.batch_rows):
            end = min(begin + self.batch_rows, len(changes))
            parts = [part.slice(begin, end - begin) for part in (changes.ops, changes.before, changes.after)]
            times = [pa.repeat(pa.scalar(text), end - begin) for text in (write.requested_time, write.completion_time)]
            yield pa.RecordBatch.from_arrays([parts[0], *times, *parts[1:]], schema=self.schema), end

    def _compared(self, step: SampleStep, write: Instant) -> Iterator[tuple[Differences, GroupName]]:
        """The changes of a commit that are not given yet, with the file group of each part. Errors as ``__iter__``."""
        units = self._units(step, write)
        paths = sorted({path for path, _ in units})
        end = self._moments.at(step.end, paths, step)
        begin = self._moments.at(step.begin, paths, step) if step.begin else None
        given = self.position.after
        for name, groups in sorted(units.items()):
            if given is not None and name < (given.partition_path, given.file_id):
                continue
            try:
                old, new = self._rows(begin, groups), self._rows(end, groups)  # in this order: slices only grow
            except StorageNotFoundError as error:
                raise TransientError(
                    "the table was cleaned while its changes were read",
                    do_next="go on from the last position; raise the cleaner's retention if it happens often",
                    table=self.table.config.name,
                    path=str(error),
                ) from error
            changes = differences(old, new, self.values, "/".join(name))
            if given is not None and name == (given.partition_path, given.file_id):
                changes = changes.later_than(given.record_key)
            yield changes, name

    def _units(self, step: SampleStep, write: Instant) -> Mapping[GroupName, Collection[GroupName]]:
        """The file groups that are compared together: each alone, but all of a partition where a write has replaced
        some, since their rows may be in others now."""
        groups = set(step.groups) if step.groups is not None else self._all_groups(step)
        if write.action != REPLACE_COMMIT:
            return {group: [group] for group in groups}
        replaced = self.table.timeline.replaced()
        groups |= {group for group, instant in replaced.items() if instant == write.requested_time}
        return {(path, ""): [group for group in sorted(groups) if group[0] == path] for path, _ in groups}

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
        return pa.concat_tables([self._moments.rows(moment, group, schema) for group in present])

    def _wait(self) -> bool:
        """Wait for a commit behind the position; False if the iteration shall end."""
        while not self.stop.wait(self.poll_s):
            if not self.table.refresh():
                continue
            self._moments.refreshed()
            refuse_changed(self.table, self.values, "feed")
            self.position.check_kept(self.table.timeline)
            refuse_archived(self.table.timeline, self.position.completed, whole=False)
            return True
        return False
