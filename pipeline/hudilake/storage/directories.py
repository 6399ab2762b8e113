"""Directories as things of their own: made, moved, looked for. Object stores have none: what is in them is moved."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

from hudilake.errors import UnsupportedError
from hudilake.storage.base import Storage


@runtime_checkable
class Directories(Protocol):
    """A store whose directories exist without files. All calls are about the storage's root."""

    def make(self) -> bool:
        """Make the directory and those above it; False if it is there. Raises StorageError if a file is."""
        ...

    def is_there(self) -> bool:
        """Whether there is a directory or a file."""
        ...

    def move_to(self, target: Self) -> None:
        """Move the directory in one step to a place where nothing is. Raises StorageError."""
        ...

    def remove_empty(self) -> bool:
        """Remove the directory if nothing is in it; whether it was removed."""
        ...


@runtime_checkable
class FileMoves(Protocol):
    """A store that moves files one by one."""

    def move_files(self, target: Self) -> None:
        """Move all files below the root; a failure may leave some at both places, and none at neither."""
        ...


@runtime_checkable
class SymbolicLinks(Protocol):
    """A store that has symbolic links."""

    def followed(self) -> Storage:
        """The same place without links on the way to it."""
        ...


def make(place: Storage) -> bool:
    """Make a directory with those above it; whether it was made. Where there are no directories nothing is."""
    return isinstance(place, Directories) and place.make()


def is_there(place: Storage) -> bool:
    """Whether a directory exists; in an object store, whether a file is in it."""
    if isinstance(place, Directories):
        return place.is_there()
    return next(iter(place.walk("")), None) is not None


def move(place: Storage, target: Storage) -> None:
    """Move a directory to a place where nothing is, in the same store.

    Raises UnsupportedError between two stores, StorageError.
    """
    if isinstance(place, Directories) and isinstance(target, type(place)):
        place.move_to(target)
    elif isinstance(place, FileMoves) and isinstance(target, type(place)):
        place.move_files(target)
    else:
        raise UnsupportedError(
            f"files cannot be moved from {place.uri} to {target.uri}: they are different stores",
            do_next="copy the files with a tool of the stores",
        )


def remove_empty(place: Storage) -> bool:
    """Remove a directory if nothing is in it; whether it was removed."""
    return isinstance(place, Directories) and place.remove_empty()


def followed(place: Storage) -> Storage:
    """The same place without symbolic links on the way to it."""
    return place.followed() if isinstance(place, SymbolicLinks) else place
