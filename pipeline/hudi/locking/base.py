"""The one lock of a table: what a lock is to those who use it."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from pipeline.errors import LostOwnershipError, TransientError


class LockHeldError(TransientError):
    """Somebody else kept the table's lock for longer than we wait. Safe to start again as is."""


class LostLockError(LostOwnershipError):
    """The lock was ours and is no longer, or may no longer be: nothing may be completed under it."""


class TableLock(Protocol):
    """Held over every change of state of a table's instants, never over the writing of data files.

    ``with lock:`` waits for it. Reentrant: the thread that holds it may enter again.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes may hold it."""
        ...

    @property
    def others_held(self) -> bool:
        """While it is held: whether somebody else may have held it since this object last did, so that what is known of
        the table must be refreshed."""
        ...

    def __enter__(self) -> TableLock:
        """Take it. Raises LockHeldError (by whom, until when) after the time to wait, StorageError."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back; never raises: a lock that cannot be given back ends with its validity."""
        ...

    def check(self) -> None:
        """To be asked immediately before a completing write. Raises LostLockError unless held and valid,
        StorageError if the store does not say."""
        ...
