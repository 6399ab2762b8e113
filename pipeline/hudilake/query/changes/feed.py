"""The changes of a table, commit after commit: ``Table.changes``.

A commit is compared with the state before it, file group by file group, so whatever wrote it, the changes are those
that a reader sees. Compactions and clusterings change no row and are passed over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudilake.errors import ConfigError
from hudilake.format.timeline.instant import Instant
from hudilake.query.changes.commit_changes import CommitChanges
from hudilake.query.changes.differences import Differences
from hudilake.query.changes.position import ChangePosition
from hudilake.query.samples.moments import refuse_changed
from hudilake.query.samples.position import LastRow
from hudilake.query.samples.steps import GroupName, SampleStep, last_completion, next_step, refuse_archived
from hudilake.table.table import HudiTable


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
        name = self.table.config.name
        if self.follow and self.until is not None:
            raise ConfigError("follow and until exclude each other", do_next="give one of them", table=name)
        if self.batch_rows < 1:
            raise ConfigError("batch_rows is at least 1", do_next="raise it", table=name)
        self._commits = CommitChanges(self.table, self.columns)
        self.position.check_kept(self.table.timeline)
        refuse_archived(self.table.timeline, self.position.completed, whole=True)

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch."""
        return self._commits.schema

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
            write = self._commits.write_of(step)
            for changes, group in self._not_given(step, write):
                for batch, end in self._commits.batches(changes, write, self.batch_rows):
                    after = LastRow(*group, changes.keys[end - 1].as_py())
                    self.position = ChangePosition(position.completed, position.commit, step.end, after)
                    yield batch
            self.position = position = ChangePosition.behind(write)

    def _not_given(self, step: SampleStep, write: Instant) -> Iterator[tuple[Differences, GroupName]]:
        """The changes of a commit that are not given yet, with the unit of each part. Errors as ``__iter__``."""
        units, given = self._commits.units(step, write), self.position.after
        if given is not None:
            units = {name: groups for name, groups in units.items() if name >= (given.partition_path, given.file_id)}
        for name, changes in self._commits.compared(step, units):
            if given is not None and name == (given.partition_path, given.file_id):
                changes = changes.later_than(given.record_key)
            yield changes, name

    def _wait(self) -> bool:
        """Wait for a commit behind the position; False if the iteration shall end."""
        while not self.stop.wait(self.poll_s):
            if not self.table.refresh():
                continue
            self._commits.moments.refreshed()
            refuse_changed(self.table, self._commits.values, "feed")
            self.position.check_kept(self.table.timeline)
            refuse_archived(self.table.timeline, self.position.completed, whole=False)
            return True
        return False
