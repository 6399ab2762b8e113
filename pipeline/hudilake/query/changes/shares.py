"""The changes between two positions, planned as shares that other processes read side by side.

A share has whole file groups, each with all its commits, so that a process reads the states of a file group one after
the other. Where a commit of the range replaced file groups of a partition, the partition is one share. The shares of a
range depend on the table's commits alone, and hold each of its changes once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudilake.errors import ConfigError
from hudilake.format.timeline.instant import Instant
from hudilake.query.changes.commit_changes import CommitChanges
from hudilake.query.changes.position import ChangePosition, position_at
from hudilake.query.samples.moments import refuse_changed
from hudilake.query.samples.steps import (
    GroupName,
    SampleStep,
    expired,
    last_completion,
    next_step,
    refuse_archived,
)
from hudilake.read.query import EARLIEST, instant_of
from hudilake.table.table import HudiTable


@dataclass(frozen=True, slots=True)
class CommitPart:
    """Some units of one commit.

    Args:
        begin, end: completion times of the commit before it ("" for none) and of itself.
        commit: its requested time.
        units: the units by name, with the file groups of each.
    """

    begin: str
    end: str
    commit: str
    units: tuple[tuple[GroupName, tuple[GroupName, ...]], ...]


@dataclass(frozen=True, slots=True)
class ChangeShare:
    """Parts of commits, in the order in which these completed. It can be pickled."""

    parts: tuple[CommitPart, ...]

    def read(self, table: HudiTable, columns: Sequence[str], batch_rows: int = 8192) -> Iterator[pa.RecordBatch]:
        """The changes, in batches as ``ChangeFeed`` gives them.

        ``table``: opened or refreshed after the share was planned.

        Raises PositionExpiredError if the table does not keep one of the commits or its files any more, TransientError
        if a file was cleaned meanwhile, CorruptDataError, UnsupportedError, StorageError.
        """
        changes = CommitChanges(table, columns)
        for part in self.parts:
            write = table.timeline.find(part.commit)
            if write is None or write.completion_time != part.end:
                raise expired(part.begin, part.end, f"commit {part.commit} was archived or taken back")
            step = SampleStep(part.begin, part.end, frozenset())
            for _, differences in changes.compared(step, dict(part.units)):
                yield from (batch for batch, _ in changes.batches(differences, write, batch_rows))


class ChangePlanner:
    """Finds positions and shares of one table. Positions that it gives stand between two commits.

    Args:
        table: open; the planner refreshes it.
        columns: the compared and returned columns; None for all but hidden ones.
    """

    def __init__(self, table: HudiTable, columns: Sequence[str] | None = None) -> None:
        """Raises UnsupportedError for a table whose rows have no keys and for columns that it lacks."""
        self._table = table
        self._changes = CommitChanges(table, columns)
        self._seen_whole = False

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch."""
        return self._changes.schema

    @property
    def columns(self) -> list[str]:
        """The compared and returned columns."""
        return list(self._changes.values.names)

    def begin(self, since: str) -> ChangePosition:
        """The position of a text: of ``ChangePosition.to_json``, a moment, or ``earliest``. Raises ConfigError for any
        other text and for a position within a commit, and as ``refresh``."""
        if not since.lstrip().startswith("{"):
            return self._kept(position_at(self._table, "" if since == EARLIEST else instant_of(since)))
        position = ChangePosition.from_json(since)
        if position.step is not None:
            raise ConfigError(
                "the position stands within a commit, and a plan begins between two",
                do_next="read the commit's changes to their end with Table.changes, and take the position behind it",
                table=self._table.config.name,
                commit=position.step,
            )
        return self._kept(position)

    def latest(self, start: ChangePosition | None, most: int | None = None, until: str | None = None) -> ChangePosition:
        """The position behind the newest commit that may have changed rows.

        Args:
            start: not before this one, which is checked; None if it is not known.
            most: behind at most so many commits after ``start``.
            until: no commit that completed later.

        Raises UnsupportedError if the table's columns have changed, and as ``begin``.
        """
        self.refresh()
        timeline = self._table.timeline
        end = start if start is None else self._kept(start)
        last = last_completion(timeline, until)
        if end is None or most is None:
            writes = [one for one in timeline.completed() if self._may_change(one, last)]
            newest = max(writes, key=lambda one: one.completion_time or "", default=None)
            known = ChangePosition() if newest is None else ChangePosition.behind(newest)
            return known if end is None else max(end, known, key=lambda one: one.completed)
        for _ in range(most):
            step = next_step(timeline, end.completed, None, last, 1)
            if step is None:
                break
            end = ChangePosition.behind(self._changes.write_of(step))
        return end

    def shares(self, start: ChangePosition, end: ChangePosition, most: int) -> list[ChangeShare]:
        """At most ``most`` shares of the changes from ``start`` to ``end``; none if there are no commits between.

        Raises PositionExpiredError if the table does not keep them, and as ``refresh``.
        """
        self.refresh()
        self._kept(start)
        self._kept(end)
        timeline = self._table.timeline
        parts: list[CommitPart] = []
        while start.completed < end.completed:
            step = next_step(timeline, start.completed, None, end.completed, 1)
            if step is None:
                break
            write = self._changes.write_of(step)
            units = ((name, tuple(sorted(groups))) for name, groups in self._changes.units(step, write).items())
            parts.append(CommitPart(step.begin, step.end, write.requested_time, tuple(sorted(units))))
            start = ChangePosition.behind(write)
        return _packed(parts, most)

    def refresh(self) -> None:
        """Take in new commits. Raises UnsupportedError if the columns have changed, CorruptDataError, StorageError."""
        if self._table.refresh():
            self._changes.moments.refreshed()
            refuse_changed(self._table, self._changes.values, "feed")

    def _kept(self, position: ChangePosition) -> ChangePosition:
        """The position. Raises PositionExpiredError if the commits after it are not kept, or its own was taken back."""
        position.check_kept(self._table.timeline)
        refuse_archived(self._table.timeline, position.completed, whole=not self._seen_whole)
        self._seen_whole = True
        return position

    def _may_change(self, write: Instant, last: str) -> bool:
        timeline = self._table.timeline
        copies = timeline.is_compaction(write) or timeline.is_clustering(write)
        return (write.completion_time or "") <= last and not copies


def _packed(parts: Sequence[CommitPart], most: int) -> list[ChangeShare]:
    """Shares of whole file groups, or whole partitions where groups were replaced, those of most commits apart."""
    whole = {path for part in parts for (path, group), _ in part.units if not group}
    weights: dict[GroupName, int] = {}
    for part in parts:
        for (path, group), _ in part.units:
            place = (path, "" if path in whole else group)
            weights[place] = weights.get(place, 0) + 1
    heaviest = sorted(weights, key=lambda place: (-weights[place], place))
    holder = {place: number % most for number, place in enumerate(heaviest)}
    shares: list[list[CommitPart]] = [[] for _ in range(most)]
    for part in parts:
        units: dict[int, list[tuple[GroupName, tuple[GroupName, ...]]]] = {}
        for (path, group), groups in part.units:
            number = holder[path, "" if path in whole else group]
            units.setdefault(number, []).append(((path, group), groups))
        for number, mine in units.items():
            shares[number].append(CommitPart(part.begin, part.end, part.commit, tuple(mine)))
    return [ChangeShare(tuple(share)) for share in shares if share]
