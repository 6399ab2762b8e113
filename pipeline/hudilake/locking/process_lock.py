"""The lock of a table among the threads of this process: sufficient if no other process writes the table."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import TracebackType

from hudilake.locking.base import LockHeldError, LostLockError


@dataclass(slots=True)
class _LockState:
    """The state of one table's lock in this process. Only the thread that holds ``gate`` changes it."""

    gate: threading.RLock = field(default_factory=threading.RLock)
    holder: int | None = None
    holder_name: str = ""
    depth: int = 0
    held: object = None
    before: object = None


_entries: dict[str, _LockState] = {}
_entries_lock = threading.Lock()


class ProcessLock:
    """One lock per table for all objects of this process. Reentrant.

    Args:
        uri: the table's root.
        wait_s: how long to wait for another thread.
    """

    shared = False

    def __init__(self, uri: str, wait_s: float = 60.0) -> None:
        self._uri = uri
        self._wait_s = wait_s
        self._token = object()
        self._others_held = True
        with _entries_lock:
            self._entry = _entries.setdefault(uri, _LockState())

    def __enter__(self) -> ProcessLock:
        """Acquire it. Raises LockHeldError after the time to wait."""
        entry = self._entry
        if not entry.gate.acquire(timeout=self._wait_s):
            raise LockHeldError(
                f"the table's lock is held by the thread {entry.holder_name!r} of this process",
                do_next="wait until that thread has finished its job on the table, then start again",
                table=self._uri,
            )
        entry.holder, entry.holder_name = threading.get_ident(), threading.current_thread().name
        entry.depth += 1
        if entry.depth == 1:
            self._others_held = entry.before is not self._token
            entry.before = self._token
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release it."""
        entry = self._entry
        entry.depth -= 1
        if not entry.depth:
            entry.holder = entry.held = None
        entry.gate.release()

    @property
    def others_held(self) -> bool:
        """Whether another object of this process may have held it since this one last did."""
        return self._others_held

    def check(self) -> None:
        """Raises LostLockError unless the calling thread holds it."""
        if self._entry.holder != threading.get_ident():
            raise LostLockError(
                "the table's lock is not held by this thread",
                do_next="report this as a bug: the code completes an instant outside of the table's lock",
                table=self._uri,
            )

    @property
    def depth(self) -> int:
        """The number of times the holding thread has entered."""
        return self._entry.depth

    @property
    def held(self) -> object:
        """The value that the holder keeps for its thread's further entries, through any object."""
        return self._entry.held

    @held.setter
    def held(self, value: object) -> None:
        self._entry.held = value
