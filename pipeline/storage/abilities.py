"""What only some stores can do, and who asks for it must look first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pipeline.storage.base import Storage, StorageError


class ReplacedError(StorageError):
    """A conditional replace found another version than the one it was told of, or none, or one where none should be."""


@dataclass(frozen=True, slots=True)
class Version:
    """What a store calls one content of an object: an ETag, a generation, or both."""

    e_tag: str | None
    version: str | None

    def conditions(self) -> dict[str, str]:
        """The names that the store gave."""
        known = {"e_tag": self.e_tag, "version": self.version}
        return {name: value for name, value in known.items() if value is not None}


@runtime_checkable
class ConditionalStore(Protocol):
    """A store that replaces an object only if it is still the one that was read. It has no rename."""

    def read_versioned(self, path: str) -> tuple[bytes, Version]:
        """An object and its version. Raises StorageNotFoundError."""
        ...

    def replace_if(self, path: str, data: bytes, version: Version | None) -> Version:
        """Write an object on condition that it has that version; None: that there is none. Returns the new version.

        Raises ReplacedError if not; also if it was done, but the answer was lost and the client tried again: only
        reading tells. Raises OutcomeUnknownError if no answer came."""
        ...

    def within(self, seconds: float) -> ConditionalStore:
        """The same store, each call of which is given up after so long."""
        ...


@runtime_checkable
class Touchable(Protocol):
    """A store whose files' times of change can be set without writing them."""

    def touch(self, path: str) -> bool:
        """Say that a file has changed now; False if there is none."""
        ...


@runtime_checkable
class Syncing(Protocol):
    """A store that takes time to make what it writes durable."""

    def unsynced(self) -> Storage:
        """The same store without that: what it writes is whole or absent for others, but may be lost in a power cut."""
        ...


def unsynced(storage: Storage) -> Storage:
    """A storage for what means nothing after a power cut: locks and heartbeats."""
    return storage.unsynced() if isinstance(storage, Syncing) else storage
