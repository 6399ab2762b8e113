"""Which process of a service does a task that one of them should do at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from hudilake.clock import new_uuid, now_ms
from lakemetastore.log.fold import StructFold, VersionedChange
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.versioned import VersionedLog


class LeaseHolder(msgspec.Struct, frozen=True, tag="held"):
    """Who does the task, until when in ms since the epoch. ``until`` 0: nobody."""

    owner: str = ""
    until: int = 0


def _newest(state: LeaseHolder, changes: Sequence[VersionedChange[LeaseHolder]]) -> LeaseHolder:
    return changes[-1].change if changes else state


_FOLD: Final = StructFold[LeaseHolder, LeaseHolder](LeaseHolder, LeaseHolder, LeaseHolder, _newest)


class Lease:
    """The right to do a task for some time. A process that dies loses it when the time is over.

    It only spares work: clocks may differ, so two processes may hold it, and the task must bear that.

    Args:
        store: that all processes share.
        task: its name.
        seconds: how long it is held after each ``take``.
    """

    def __init__(self, store: LogStore, task: str, seconds: float) -> None:
        self._log = VersionedLog(store, f"leases/{task}", _FOLD, LogPolicy(snapshot_every=20, background=False))
        self._seconds, self._owner = seconds, new_uuid()

    def take(self) -> bool:
        """Take it, or keep it for longer; False if another process has it. Raises StorageError."""
        now = now_ms()
        mine = LeaseHolder(self._owner, now + int(self._seconds * 1000))
        log_state = self._log.commit(lambda state: mine if state.owner == self._owner or state.until <= now else None)
        return log_state.state.owner == self._owner

    def give_back(self) -> None:
        """Let another process have it at once. Raises StorageError."""
        self._log.commit(lambda state: LeaseHolder() if state.owner == self._owner else None)
