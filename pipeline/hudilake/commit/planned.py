"""Pending clusterings: which file groups they will replace, and who planned them.

A clustering changes no row, and it may stay planned for long, so commits go on beside it:

- A plan of binlake gives way. A commit may write a planned file group; when the clustering completes, under the table's
  lock, it leaves out what has changed since.
- A plan of Hudi need not give way. So no commit may write its file groups (Hudi's own writers refuse that, too).
- New rows go to other file groups in both cases, so that a clustering is seldom in vain.

On a table whose rows have a bucket a clustering is a resize: it changes where rows go. One of binlake takes in what
others commit; one of Hudi excludes all other writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hudilake.commit.announced import pending_intent
from hudilake.commit.intent import GroupIntent, Intent
from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.timeline.clustering_plan import read_clustering_plan
from hudilake.format.timeline.instant import CLUSTERING, Instant, State
from hudilake.format.timeline.timeline import FileGroupId, Timeline
from hudilake.storage.base import Storage, StorageNotFoundError


@dataclass(frozen=True, slots=True)
class PendingClustering:
    """A pending clustering.

    Args:
        instant: requested or inflight.
        groups: the file groups that it will replace; None if its plan cannot be read.
        ours: whether binlake planned it, or is executing it.
        takes_in: whether it takes in what others commit until it completes.
    """

    instant: Instant
    groups: frozenset[FileGroupId] | None
    ours: bool = False
    takes_in: bool = False

    @property
    def may_go(self) -> bool:
        """Whether it is rolled back once its writer is dead. A plan that nobody has begun to execute stays."""
        return self.takes_in or (self.ours and self.instant.state is State.INFLIGHT)


def planned_intent(groups: Iterable[FileGroupId]) -> Intent:
    """What the clustering of some file groups announces."""
    return Intent.of_groups(GroupIntent(*group) for group in groups)


def read_planned(storage: Storage, pending: Instant) -> PendingClustering | None:
    """What a pending clustering will do; None if it has ended. Raises StorageError."""
    try:
        said = pending_intent(storage, pending)
        ours, takes_in = said is not None and bool(said.whole or said.groups), said is not None and said.whole
        return PendingClustering(pending, read_clustering_plan(storage, pending).planned, ours, takes_in)
    except StorageNotFoundError:
        return None
    except (CorruptDataError, UnsupportedError):
        return PendingClustering(pending, None)


class PlannedClusterings:
    """The pending clusterings of a table, the plan of each read once.

    Args:
        storage: the table's root.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[Instant, PendingClustering] = {}

    def of(self, timeline: Timeline) -> list[PendingClustering]:
        """The pending ones of a timeline, oldest first. Raises StorageError."""
        pending = [instant for instant in timeline.pending() if instant.action == CLUSTERING]
        read = {one: self._known.get(one) or read_planned(self._storage, one) for one in pending}
        self._known = {one: planned for one, planned in read.items() if planned is not None}
        return [*self._known.values()]


def groups_of(clusterings: Collection[PendingClustering]) -> frozenset[FileGroupId]:
    """The file groups that clusterings will replace."""
    return frozenset(group for one in clusterings for group in one.groups or ())
