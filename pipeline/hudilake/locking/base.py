"""The interface of a table's lock."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from hudilake.errors import LostOwnershipError, TransientError


class LockHeldError(TransientError):
    """Another holder kept the table's lock for longer than the time to wait. It is safe to start again unchanged.

    Example:
        >>> issubclass(hudilake.LockHeldError, hudilake.TransientError)  # start again unchanged
        True
    """


class LostLockError(LostOwnershipError):
    """This process has lost the lock, or may have lost it: nothing may be completed under it."""


class TableLock(Protocol):
    """A lock that is held during every change of state of a table's instants, and never while data files are written.

    ``with lock:`` waits for it. Reentrant: the thread that holds it may enter again.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes may hold it."""
        ...

    @property
    def others_held(self) -> bool:
        """While it is held: whether another object may have held it since this one last did. Then the table must be
        refreshed."""
        ...

    def __enter__(self) -> TableLock:
        """Acquire it. Raises LockHeldError (with holder and expiry) after the time to wait, StorageError."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release it; never raises: a lock that cannot be released ends with its validity."""
        ...

    def check(self) -> None:
        """Call it immediately before a completing write. Raises LostLockError unless the lock is held and valid,
        StorageError if the store does not answer."""
        ...
