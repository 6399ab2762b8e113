"""Which locks there are, and which of them are held. A lock waits for every earlier one that it conflicts with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

SHARED_READ, SHARED_WRITE, EXCLUSIVE = 1, 2, 3
"""The types of HMS; EXCL_WRITE (4) is treated as EXCLUSIVE against everything but readers."""
_EXCLUSIVE_WRITE = 4


class LockPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is locked: a database, a table of it, or a partition of that. ``kind`` is HMS's LockType."""

    kind: int
    level: int
    database: str
    table: str | None = None
    partition: str | None = None


class Lock(msgspec.Struct, frozen=True, omit_defaults=True):
    """A lock as it was asked for. Times are milliseconds since the epoch."""

    id: int
    parts: tuple[LockPart, ...]
    taken: int
    heartbeat: int
    user: str = ""
    host: str = ""


class LockTaken(msgspec.Struct, frozen=True, tag="lock"):
    """A client asked for a lock."""

    lock: Lock


class LocksReleased(msgspec.Struct, frozen=True, tag="unlock"):
    """Locks are gone."""

    ids: tuple[int, ...]


class LockAlive(msgspec.Struct, frozen=True, tag="alive"):
    """The client of a lock was heard of at a time."""

    id: int
    at: int


LockChange = LockTaken | LocksReleased | LockAlive


class LockState(msgspec.Struct, frozen=True):
    """The locks by number, ascending, and the last number given."""

    locks: dict[int, Lock] = {}
    last: int = 0

    def waits_for(self, lock: Lock, expired_before: int) -> Lock | None:
        """The first earlier lock that conflicts and whose client was heard of since a time; None: the lock is held."""
        for other in self.locks.values():
            if other.id < lock.id and other.heartbeat >= expired_before and _conflict(lock, other):
                return other
        return None

    def expired(self, expired_before: int) -> tuple[int, ...]:
        """The locks whose clients were not heard of since a time."""
        return tuple(lock.id for lock in self.locks.values() if lock.heartbeat < expired_before)


def apply(state: LockState, changes: Sequence[LockChange]) -> LockState:
    """The state after some changes."""
    locks, last = dict(state.locks), state.last
    for change in changes:
        if isinstance(change, LockTaken):
            locks[change.lock.id] = change.lock
            last = max(last, change.lock.id)
        elif isinstance(change, LockAlive):
            _alive(locks, change)
        else:
            for gone in change.ids:
                locks.pop(gone, None)
    return LockState(locks, last)


def _alive(locks: dict[int, Lock], change: LockAlive) -> None:
    lock = locks.get(change.id)
    if lock is not None:
        locks[change.id] = msgspec.structs.replace(lock, heartbeat=max(lock.heartbeat, change.at))


def _conflict(one: Lock, other: Lock) -> bool:
    return any(_exclude(a.kind, b.kind) and _overlap(a, b) for a in one.parts for b in other.parts)


_EXCLUDES: Mapping[int, frozenset[int]] = {
    SHARED_READ: frozenset({EXCLUSIVE}),
    SHARED_WRITE: frozenset({SHARED_WRITE, EXCLUSIVE, _EXCLUSIVE_WRITE}),
    _EXCLUSIVE_WRITE: frozenset({SHARED_WRITE, EXCLUSIVE, _EXCLUSIVE_WRITE}),
}


def _exclude(one: int, other: int) -> bool:
    """Whether two types exclude each other; an unknown type excludes all (HMS 3.1.3: two SHARED_WRITE, too)."""
    return other in _EXCLUDES[one] if one in _EXCLUDES and other in (*_EXCLUDES, EXCLUSIVE) else True


def _overlap(one: LockPart, other: LockPart) -> bool:
    if one.database != other.database:
        return False
    if one.table is None or other.table is None:
        return True
    if one.table != other.table:
        return False
    return one.partition is None or other.partition is None or one.partition == other.partition
