"""Whose a table is at the moment (its lock), and whose a pending instant is (its heartbeat)."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass

from pipeline.clock import now_ms
from pipeline.hudi.locking.choose import LockConfig, table_lock
from pipeline.hudi.locking.heartbeat import Heartbeats
from pipeline.hudi.locking.process_lock import ProcessLock
from pipeline.storage.base import Storage, StorageError


@dataclass(frozen=True)
class Locking:
    """How a writer shares a table with others.

    Args:
        config: which lock, and how long.
        owner: the writer's name, for people and for its next run.
        one_run: no two runs of that name are ever at work at once, so what an earlier one left pending is dead.
    """

    config: LockConfig
    owner: str
    one_run: bool = False


class Ownership:
    """A writer's lock on a table, and the heartbeats of its pending instants.

    Args:
        storage: the table's root.
        locking: None for a writer that is known to be the only one. It has no heartbeats, and takes every pending
            instant for one that a dead run left.
    """

    def __init__(self, storage: Storage, locking: Locking | None) -> None:
        self._predecessor = locking.owner if locking is not None and locking.one_run else None
        self._beats: Heartbeats | None = None
        self.lock = ProcessLock(storage.uri) if locking is None else table_lock(storage, locking.config)
        if locking is not None and self.lock.shared:
            self._timeout_s = locking.config.heartbeat_timeout_s
            self._beats = Heartbeats(storage, locking.owner, self._timeout_s)

    def begin(self, instant: str) -> None:
        """Let an instant beat that is about to begin. Raises AlreadyExistsError if somebody else uses this time."""
        if self._beats is not None:
            self._beats.start(instant)

    def claim(self, instant: str) -> None:
        """Make sure that an instant beats as ours, one that an object of this writer's began before as well.

        To be called under the lock. Raises LostOwnershipError if others may have taken it, StorageError.
        """
        if self._beats is None or self._beats.beats(instant):
            return
        if not self.is_abandoned(instant):
            self._beats.check(instant)
        self.take_over(instant)

    def take_over(self, instant: str) -> None:
        """Let an abandoned instant beat as ours. To be called under the lock; raises StorageError."""
        if self._beats is not None and not self._beats.beats(instant):
            self._beats.discard(instant)
            self._beats.start(instant)

    def check(self, instant: str) -> None:
        """Raise LostOwnershipError if others may have taken our instant for abandoned."""
        if self._beats is not None:
            self._beats.check(instant)

    def end(self, instant: str) -> None:
        """The instant is completed or gone."""
        if self._beats is not None:
            self._beats.stop(instant)

    def is_abandoned(self, instant: str) -> bool:
        """Whether nobody alive works on a pending instant: it has no heartbeat or an old one, or that of a process that
        is gone, or of an earlier run of a writer that has one at a time. Raises StorageError."""
        if self._beats is None:
            return True
        if self._beats.beats(instant):
            return False
        found = self._beats.find(instant)
        return found is None or found.owner == self._predecessor or not found.alive(now_ms(), self._timeout_s)

    def sweep(self, pending: Collection[str]) -> None:
        """Delete the heartbeats that the dead left: of instants that are not pending and that nobody alive is about to
        begin. To be called under the lock."""
        if self._beats is None:
            return
        with contextlib.suppress(StorageError):
            for instant in self._beats.instants():
                if instant not in pending and self.is_abandoned(instant):
                    self._beats.discard(instant)
