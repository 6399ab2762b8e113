"""Rows of a table as samples: the complete ones, each once, in the order of the commits that made them complete.

::

    samples = Samples("s3://lake/features/impressions", columns=["age", "price", "clicked"])
    for batch in samples:
        train(batch)
        keep(samples.position.to_json())

The iteration goes in steps. A step gives the rows that are complete when its last commit completed and were not when
its first one began, in their state of then. The first step without a position is the table as it is now; after it
each commit is a step. So nothing must be remembered of the given rows but the position: whether a row was given
follows from the table as it was at the position. A row that is complete, then is not (its label was deleted), and is
again, is given again.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hudilake.errors import ConfigError, TransientError
from hudilake.query.samples.batches import Batches, GroupSamples, SampleBatch
from hudilake.query.samples.completeness import Completeness
from hudilake.query.samples.moments import refuse_changed, value_schema
from hudilake.query.samples.position import LastRow, SamplePosition, Shard, ShuffleState
from hudilake.query.samples.shuffle import ShuffleBuffer
from hudilake.query.samples.states import States
from hudilake.query.samples.steps import SampleStep, expired, last_completion, next_step, refuse_archived
from hudilake.read.query import instant_of
from hudilake.storage import Storage, StorageNotFoundError, open_storage
from hudilake.table.table import HudiTable

_READ_ATTEMPTS = 3


@dataclass
class Samples:
    """An iterable over Arrow record batches of samples. Not for use from several threads at once.

    Args:
        source: path or URI of the table, or a storage at its root.
        columns: the returned columns; None for all but hidden and meta ones.
        complete: True for rows that every column group of a stitched table knows, of a plain table rows without nulls
            in ``columns``; names of column groups for rows that these know; False for all rows.
        since: where to go on. None begins with the table as it is; ``SamplePosition()`` with its first commit.
        until: no commits that completed later (a moment as ``binlake query`` takes it); None for no limit.
        changes: whether a complete row is given again whenever a commit has written it.
        follow: whether the iteration waits for new commits instead of ending.
        poll_s: seconds between two looks at the table while it waits.
        batch_rows: the largest number of rows of a batch.
        shuffle_rows: rows that are mixed with each other; 0 keeps their order.
        seed: of the random order.
        shard: the part of the file groups to read, as (index, count).
        step_commits: commits of one step. More than one is faster far behind the table; a row is then given in its
            state after the last of them.
        options: options of the store.
        stop: ends an iteration that follows the table.

    Example:
        >>> samples = hudilake.Samples(orders.uri, columns=["id", "qty"], since=hudilake.SamplePosition(), batch_rows=2)
        >>> [batch.num_rows for batch in samples]
        [2, 1]
    """

    source: str | Storage
    columns: Sequence[str] | None = None
    complete: bool | Collection[str] = True
    since: SamplePosition | None = None
    until: str | None = None
    changes: bool = False
    follow: bool = False
    poll_s: float = 1.0
    batch_rows: int = 8192
    shuffle_rows: int = 0
    seed: int = 0
    shard: tuple[int, int] = (0, 1)
    step_commits: int = 1
    options: Mapping[str, str] | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Opens the table. Raises ConfigError, UnsupportedError for columns or groups that it lacks, and as
        ``HudiTable.open``."""
        if self.follow and self.until is not None:
            raise ConfigError("follow and until exclude each other", do_next="give one of them")
        if min(self.batch_rows, self.step_commits) < 1 or self.shuffle_rows < 0:
            raise ConfigError("batch_rows and step_commits are at least 1, shuffle_rows at least 0", do_next="raise it")
        self._storage = open_storage(self.source, self.options) if isinstance(self.source, str) else self.source
        self._table = HudiTable.open(self._storage)
        self._table.config.refuse_older("a stream of samples")
        self._until = None if self.until is None else instant_of(self.until)
        self._shard = Shard(*self.shard)
        self.schema = value_schema(self._table, self.columns)
        rule = Completeness.of(self._table.config, self.schema.names, self.complete)
        self._states = States(self._table, self.schema, rule, self.changes, self._shard)
        self.position = self._first_position()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The batches; ``position`` is the place after the last one."""
        for batch in self.batches():
            yield batch.rows

    def batches(self) -> Iterator[SampleBatch]:
        """The batches with their positions.

        Raises PositionExpiredError if the table does not keep what was written since the position, UnsupportedError if
        its columns have changed, TransientError, CorruptDataError, StorageError.
        """
        start = replace(self.position, shuffled=None)
        buffer = ShuffleBuffer(
            self.shuffle_rows, self.seed, self.step_commits, self._states.rule_number, self.batch_rows, self.position
        )
        collected = Batches(self.schema, self._most(buffer), self._shard, start)
        for given in self._given(start, self.position.shuffled):
            made = collected.rest() if given is None else collected.add(given)
            for batch in self._mixed(made, collected, buffer, last=given is None) if self.shuffle_rows else made:
                self.position = batch.position
                yield batch
            if given is None:
                self.position = buffer.start = collected.position

    def _mixed(
        self, made: Iterator[SampleBatch], collected: Batches, buffer: ShuffleBuffer, *, last: bool
    ) -> Iterator[SampleBatch]:
        for batch in made:
            yield from buffer.add(batch)
            collected.most = self._most(buffer)  # a batch must not go beyond the end of the buffer
        if last:
            yield from buffer.drain()
            collected.most = self._most(buffer)

    def _most(self, buffer: ShuffleBuffer) -> int:
        return min(self.batch_rows, buffer.room) if self.shuffle_rows else self.batch_rows

    def _first_position(self) -> SamplePosition:
        if self.since is None:
            moment = last_completion(self._table.timeline, self._until)
            return SamplePosition("", moment or None, shard=self._shard)
        if self.since.shard != self._shard:
            raise ConfigError(
                f"the position belongs to shard {self.since.shard.index} of {self.since.shard.count}",
                do_next="give each shard its own position",
                table=self._table.config.name,
            )
        if self.since.shuffled is not None:
            self._refuse_other_buffer(self.since.shuffled)
        if self.since.step is None or self.since.completed:
            refuse_archived(self._table.timeline, self.since.completed, whole=True)
        return self.since

    def _refuse_other_buffer(self, shuffled: ShuffleState) -> None:
        """Raise ConfigError if the buffer of the position cannot be filled with the same rows again."""
        why = ""
        if not self.shuffle_rows:
            why = "and shuffle_rows is 0"
        elif shuffled.rule not in (None, self._states.rule_number):
            why = "of samples that other columns, complete or changes chose"
        elif not shuffled.end and self.step_commits > 1:
            why = "written by a version that did not keep the steps of more than one commit"
        if why:
            raise ConfigError(
                f"the position is inside a shuffle buffer, {why}",
                do_next="go on with the same arguments as before, or from a position between two buffers",
                table=self._table.config.name,
            )

    def _given(self, start: SamplePosition, filled: ShuffleState | None) -> Iterator[GroupSamples | None]:
        """The new rows, step by step; None whenever there are no more for now.

        Args:
            start: where to begin.
            filled: the steps of this shuffle buffer come first.
        """
        position = start
        for step in self._steps_of(start, filled) if filled is not None and filled.end else ():
            yield from self._rows_of(step, position.after)
            position = SamplePosition(step.end, shard=self._shard)
        while True:
            for step in self._steps_now(position):
                yield from self._rows_of(step, position.after)
                position = SamplePosition(step.end, shard=self._shard)
            yield None
            if not self.follow or not self._wait(position):
                return
            refuse_archived(self._table.timeline, position.completed, whole=False)

    def _steps_of(self, start: SamplePosition, filled: ShuffleState) -> Iterator[SampleStep]:
        """The steps by which a shuffle buffer was filled. Raises PositionExpiredError if one of them is gone."""
        completed, end = start.completed, start.step
        while completed < filled.end:
            step = next_step(self._table.timeline, completed, end, filled.end, filled.commits)
            if step is None:
                raise expired(completed, filled.end, "the commits of its steps are archived or were taken back")
            yield step
            completed, end = step.end, None

    def _steps_now(self, start: SamplePosition) -> Iterator[SampleStep]:
        """The steps up to the last commit of now: whoever comes later does not change them."""
        last = last_completion(self._table.timeline, self._until)
        completed, end = start.completed, start.step
        while step := next_step(self._table.timeline, completed, end, last, self.step_commits):
            yield step
            completed, end = step.end, None

    def _rows_of(self, step: SampleStep, after: LastRow | None) -> Iterator[GroupSamples]:
        for attempt in range(1, _READ_ATTEMPTS + 1):
            try:
                for group_rows in self._states.completed_in(step, after):
                    yield GroupSamples(step, group_rows)
                    if len(group_rows.keys):
                        after = LastRow(*group_rows.group, group_rows.keys[-1].as_py())
                break
            except StorageNotFoundError as error:  # cleaned since it was listed
                if attempt == _READ_ATTEMPTS:
                    raise TransientError(
                        "the table was cleaned during each attempt to read samples",
                        do_next="go on from the last position; raise the cleaner's retention if it happens often",
                        table=self._table.config.name,
                        path=str(error),
                    ) from error
                self._refresh()
        yield GroupSamples(step, None)

    def _wait(self, position: SamplePosition) -> bool:
        """Wait for a commit after a position; False if the iteration shall end."""
        if last_completion(self._table.timeline, self._until) > position.completed:
            return True  # it came while rows were read
        while not self.stop.wait(self.poll_s):
            if self._refresh():
                return True
        return False

    def _refresh(self) -> bool:
        changed = self._table.refresh()
        self._states.moments.refreshed()
        refuse_changed(self._table, self.schema, "samples")
        return changed
