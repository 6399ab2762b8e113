"""Ownership of a table at a moment (its lock) and of a pending instant (its heartbeat)."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass

from hudilake.locking.choose import LockConfig, table_lock
from hudilake.locking.heartbeat import Heartbeats
from hudilake.locking.process_lock import ProcessLock
from hudilake.storage.base import Storage, StorageError


@dataclass(frozen=True)
class Locking:
    """The settings by which a writer shares a table with others.

    Args:
        config: the lock and its times.
        owner: the writer's name, for users and for its next run.
        one_run: no two runs of that name ever run at once, so pending instants of an earlier run are dead.
    """

    config: LockConfig
    owner: str
    one_run: bool = False


class Ownership:
    """A writer's lock on a table, and the heartbeats of its pending instants.

    Args:
        storage: the table's root.
        locking: None for the only writer of the table. It has no heartbeats, and treats every pending instant as
            left by a dead run.
    """

    def __init__(self, storage: Storage, locking: Locking | None) -> None:
        #: The settings by which the table is shared; None for its only writer.
        self.locking = locking
        self._predecessor = locking.owner if locking is not None and locking.one_run else None
        self._beats: Heartbeats | None = None
        self.lock = ProcessLock(storage.uri) if locking is None else table_lock(storage, locking.config)
        if locking is not None and self.lock.shared:
            self._beats = Heartbeats(storage, locking.owner, locking.config.heartbeat_timeout_s)

    def begin(self, instant: str) -> None:
        """Start the heartbeat of a new instant. Raises AlreadyExistsError if another writer uses this time."""
        if self._beats is not None:
            self._beats.start(instant)

    def claim(self, instant: str) -> None:
        """Ensure that an instant has our heartbeat, also if another object of this writer began it.

        Call it under the lock. Raises LostOwnershipError if other writers may have taken it over, StorageError.
        """
        if self._beats is None or self._beats.beats(instant):
            return
        if not self.is_abandoned(instant):
            self._beats.check(instant)
        self.take_over(instant)

    def take_over(self, instant: str) -> None:
        """Start our heartbeat of an abandoned instant. Call it under the lock. Raises StorageError."""
        if self._beats is not None and not self._beats.beats(instant):
            self._beats.discard(instant)
            self._beats.start(instant)

    def check(self, instant: str) -> None:
        """Raise LostOwnershipError if other writers may treat our instant as abandoned."""
        if self._beats is not None:
            self._beats.check(instant)

    def end(self, instant: str) -> None:
        """Stop the heartbeat of an instant that has completed or was removed."""
        if self._beats is not None:
            self._beats.stop(instant)

    def is_abandoned(self, instant: str) -> bool:
        """Whether no live writer works on a pending instant: it has no heartbeat or an expired one, or the heartbeat of
        an ended process, or of an earlier run of a writer with one run at a time. Raises StorageError."""
        if self._beats is None:
            return True
        if self._beats.beats(instant):
            return False
        heartbeat = self._beats.find(instant)
        return heartbeat is None or heartbeat.owner == self._predecessor or self._beats.is_dead(heartbeat)

    def sweep(self, pending: Collection[str]) -> None:
        """Delete the heartbeats of dead writers: those of instants that are not pending and that no live writer is
        about to begin. Call it under the lock."""
        if self._beats is None:
            return
        with contextlib.suppress(StorageError):
            for instant in self._beats.instants():
                if instant not in pending and self.is_abandoned(instant):
                    self._beats.discard(instant)
