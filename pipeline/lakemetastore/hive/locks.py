"""Taking, asking for, keeping and releasing locks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudilake.clock import now_ms
from lakemetastore.errors import NoSuchLockError
from lakemetastore.hive.lock_state import (
    Lock,
    LockAlive,
    LockChange,
    LockGrant,
    LockPart,
    LockRelease,
    LockState,
    apply,
)
from lakemetastore.log.fold import StructFold, VersionedChange
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.versioned import VersionedLog

LOG = "locks"
TIMEOUT_MS = 300_000
"""How long a lock lives without word from its client (hive.txn.timeout of HMS)."""


@dataclass(frozen=True, slots=True)
class LockWait:
    """A lock, and the one that it waits for; None: it is held."""

    lock: Lock
    waits_for: Lock | None


class Locks:
    """The locks of a store, the same for all processes on it. Thread safe; one a process and store.

    Args:
        store: where the log of locks is.
        timeout_ms: how long a lock lives without word from its client. The clocks of the processes may differ by less.
    """

    def __init__(self, store: LogStore, timeout_ms: int = TIMEOUT_MS) -> None:
        fold: StructFold[LockState, LockChange] = StructFold(LockChange, LockState, LockState, _apply)
        self._log: VersionedLog[LockState, LockChange] = VersionedLog(store, LOG, fold, LogPolicy(snapshot_every=100))
        self._timeout_ms = timeout_ms

    def take(self, parts: Sequence[LockPart], user: str, host: str) -> LockWait:
        """Ask for a lock. It is held, or waits in the order of asking."""
        now = now_ms()
        self._forget_expired(now)
        taken: list[Lock] = []

        def propose(state: LockState) -> LockChange:
            taken[:] = [Lock(state.last + 1, tuple(parts), now, now, user, host)]
            return LockGrant(taken[0])

        log_state = self._log.commit(propose)
        return self._asked(log_state.state, taken[0], now)

    def check(self, number: int) -> LockWait:
        """Whether a lock is held by now; its client counts as heard of. Raises NoSuchLockError."""
        now = now_ms()
        state = self._log.state().state
        lock = self._known(state, number, now)
        if now - lock.heartbeat > self._timeout_ms // 4:
            state = self._log.commit(lambda newest: LockAlive(self._known(newest, number, now).id, now)).state
        return self._asked(state, lock, now)

    def heartbeat(self, number: int) -> None:
        """The client of a lock was heard of. Raises NoSuchLockError."""
        now = now_ms()
        self._log.commit(lambda state: LockAlive(self._known(state, number, now).id, now))

    def release(self, number: int) -> None:
        """Release a lock, held or not. Raises NoSuchLockError."""
        now = now_ms()
        self._log.commit(lambda state: LockRelease((self._known(state, number, now).id,)))

    def all(self) -> list[LockWait]:
        """All locks."""
        now = now_ms()
        state = self._log.state().state
        alive = (lock for lock in state.locks.values() if lock.heartbeat >= now - self._timeout_ms)
        return [self._asked(state, lock, now) for lock in alive]

    def _asked(self, state: LockState, lock: Lock, now: int) -> LockWait:
        return LockWait(lock, state.waits_for(lock, now - self._timeout_ms))

    def _known(self, state: LockState, number: int, now: int) -> Lock:
        lock = state.locks.get(number)
        if lock is None or lock.heartbeat < now - self._timeout_ms:
            raise NoSuchLockError(
                f"No such lock lockid:{number}",
                do_next=f"take a new one; a lock ends {self._timeout_ms // 1000} s after the last word of its client",
                lock=number,
            )
        return lock

    def _forget_expired(self, now: int) -> None:
        if not self._log.state().state.expired(now - self._timeout_ms):
            return

        def propose(state: LockState) -> LockChange | None:
            gone = state.expired(now - self._timeout_ms)
            return LockRelease(gone) if gone else None

        self._log.commit(propose)


def _apply(state: LockState, changes: Sequence[VersionedChange[LockChange]]) -> LockState:
    return apply(state, [versioned.change for versioned in changes])
