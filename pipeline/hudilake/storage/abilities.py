"""Abilities that only some stores have. A caller checks for an ability before it uses it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, cast, runtime_checkable

from hudilake.storage.base import Names, Storage, StorageError


class ReplacedError(StorageError):
    """A conditional replace found another version, no object, or an unexpected object."""


@dataclass(frozen=True, slots=True)
class Version:
    """The store's identifier of one content of an object: an ETag, a generation, or both."""

    e_tag: str | None
    version: str | None

    def conditions(self) -> dict[str, str]:
        """The names that the store gave."""
        identifiers = {"e_tag": self.e_tag, "version": self.version}
        return {name: value for name, value in identifiers.items() if value is not None}


@runtime_checkable
class ConditionalStore(Protocol):
    """A store that replaces an object only if it is still the one that was read. It has no rename."""

    def read_versioned(self, path: str) -> tuple[bytes, Version]:
        """An object and its version. Raises StorageNotFoundError."""
        ...

    def replace_if(self, path: str, data: bytes, version: Version | None) -> Version:
        """Write an object if it still has that version; None: if there is no object. Returns the new version.

        Raises ReplacedError if not. It is also raised after a write that was done, if its answer was lost and the
        client tried again: only a read shows which. Raises OutcomeUnknownError if no answer came."""
        ...

    def within(self, seconds: float) -> ConditionalStore:
        """The same store with a time limit for each call."""
        ...


@runtime_checkable
class Touchable(Protocol):
    """A store whose files' times of change can be set without writing them."""

    def touch(self, path: str) -> bool:
        """Set the file's time of change to now; False if there is no file."""
        ...


@runtime_checkable
class NameLists(Protocol):
    """A store that lists names with less work than files with their sizes and times."""

    def list_names(self, prefix: str, start_after: str | None = None) -> Names:
        """The bare names of what ``Storage.list`` gives, in its order."""
        ...


@lru_cache(maxsize=256)  # a commit asks for names several times, and to look at a protocol takes longer than a listing
def _lists_names(kind: type) -> bool:
    return issubclass(kind, NameLists)


def list_names(storage: Storage, prefix: str, start_after: str | None = None) -> Names:
    """The bare names of the files directly in a directory, sorted; only those greater than ``start_after`` if given."""
    if _lists_names(type(storage)):
        return cast(NameLists, storage).list_names(prefix, start_after)
    return [info.path.rpartition("/")[2] for info in storage.list(prefix, start_after)]


@runtime_checkable
class DurableWrites(Protocol):
    """A store that takes time to make what it writes durable."""

    def unsynced(self) -> Storage:
        """The same store without syncing: a file is whole or absent for others, but a power cut may lose it."""
        ...


def unsynced(storage: Storage) -> Storage:
    """A storage for files that have no meaning after a power cut: locks and heartbeats."""
    return storage.unsynced() if isinstance(storage, DurableWrites) else storage
