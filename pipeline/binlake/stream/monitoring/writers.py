"""Who works on a stream or a table: the holders of leases and locks, and the writers of instants.

A writer on this machine is looked at itself, so that one that was killed is seen at once; one on another machine is
known by its signs alone, so it counts as alive until it has been silent for too long. A lock of Hudi's own on disk
names no process. Nothing here takes a lock or breaks one: who looks from outside changes nothing.

::

    for writer in heartbeats(table.storage, timeout_s=60.0):
        print(writer.owner, writer.instant, writer.alive)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from hudilake.clock import now_ms
from hudilake.locking import file_lock, storage_lock
from hudilake.locking.heartbeat import Heartbeat, Heartbeats
from hudilake.storage import Storage, StorageNotFoundError


@dataclass(frozen=True)
class Writer:
    """A writer: its owner, its host and process id, and the age of its last heartbeat in seconds.

    ``instant``: the instant that it works on; empty for a stream's run or a lock. ``suspended``: whether a signal has
    suspended its process on this machine.
    """

    owner: str
    host: str | None
    pid: int | None
    silent_s: float
    alive: bool
    instant: str = ""
    suspended: bool = False


def heartbeats(storage: Storage, timeout_s: float) -> list[Writer]:
    """The writers with a heartbeat for an instant of a table, dead ones included, by instant."""
    beats = Heartbeats(storage, "", timeout_s)
    look = partial(writer_of, timeout_s=timeout_s)
    return [look(beat, instant=name) for name in beats.instants() if (beat := beats.find(name)) is not None]


def lock_holder(storage: Storage) -> Writer | None:
    """The holder of a table's lock: the file lock of a disk or HDFS, or that of an object store. None if it is free."""
    try:
        data = storage_lock.LockData.from_bytes(storage.read(storage_lock.LOCK_PATH), storage_lock.LOCK_PATH)
    except StorageNotFoundError:
        return _file_lock_holder(storage)
    if data.is_free or data.has_expired():
        return None
    host, pid = (data.process.host, data.process.pid) if data.process is not None else (None, None)
    return Writer(data.owner, host, pid, 0.0, alive=True)


def _file_lock_holder(storage: Storage) -> Writer | None:
    held = file_lock.find_lock(storage)
    if held is None:
        return None
    silent_s = (now_ms() - held.modified_ms) / 1000
    alive = not (held.is_abandoned or held.has_expired(foreign_expiry_s=0))
    host, pid = (held.process.host, held.process.pid) if held.process is not None else (None, None)
    return Writer(held.owner or "Hudi's own", host, pid, silent_s, alive)


def writer_of(beat: Heartbeat, timeout_s: float, instant: str = "") -> Writer:
    """The writer of a heartbeat; after ``timeout_s`` without a sign it is dead."""
    now = now_ms()
    return Writer(
        beat.owner or "another writer",
        beat.host,
        beat.pid,
        max(0.0, (now - beat.modified_ms) / 1000),
        beat.alive(now, timeout_s),
        instant,
        beat.process is not None and beat.process.is_suspended(),
    )
