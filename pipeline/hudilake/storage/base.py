"""The storage interface: a few byte-level calls with exclusive create at the heart.

Every path is relative to the storage's root, with forward slashes and no leading slash. A storage can be pickled to a
task, which opens its own connection on first use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from hudilake.errors import TransientError


class StorageError(TransientError):
    """A call to the store failed for a reason that may pass.

    Example:
        >>> issubclass(hudilake.StorageError, hudilake.TransientError)
        True
    """


class StorageNotFoundError(StorageError):
    """No file at that path.

    Example:
        >>> hudilake.open_storage(uri).read("no/such/file")
        Traceback (most recent call last):
        hudilake.storage.base.StorageNotFoundError: ...
    """


class AlreadyExistsError(StorageError):
    """Exclusive create found a file at the path: another writer was first.

    Example:
        >>> hudilake.create_table(orders.uri, orders.schema)
        Traceback (most recent call last):
        hudilake.storage.base.AlreadyExistsError: ...
    """


class OutcomeUnknownError(StorageError):
    """A write may or may not have happened, and reading it back gave no answer. It may even appear later."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file: path relative to the root, size in bytes, time of the last change in ms since the epoch.

    Example:
        >>> hudilake.open_storage(orders.uri).stat(".hoodie/hoodie.properties").size > 0
        True
    """

    path: str
    size: int
    modified_ms: int


# Inside a class with a method called ``list`` the builtin has no name of its own.
Files: TypeAlias = list[FileInfo]
Names: TypeAlias = list[str]


class Storage(Protocol):
    """The calls that every store has. Implementations are safe to use from several threads.

    Example:
        >>> storage = hudilake.open_storage(orders.uri)
        >>> b"hoodie.table.name=orders" in storage.read(".hoodie/hoodie.properties")
        True
    """

    @property
    def uri(self) -> str:
        """The root as an absolute URI without a trailing slash (``file:///lake``, ``s3://bucket/lake``, ``hdfs://...``)."""
        ...

    def read(self, path: str) -> bytes:
        """The whole file. Raises StorageNotFoundError."""
        ...

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start`` (fewer at the end of the file). Raises StorageNotFoundError."""
        ...

    def create(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet, whole or not at all, durable on return. Of several callers exactly one
        succeeds. Raises AlreadyExistsError, and OutcomeUnknownError where the store gave no answer."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file, whole or not at all, durable on return. Two tasks may write the same bytes at once.

        A large file may come as an ``mmap`` in place of bytes: implementations slice it or hand its buffer on."""
        ...

    def delete(self, path: str) -> bool:
        """Delete one file; False if there was none."""
        ...

    def delete_tree(self, prefix: str) -> None:
        """Delete a directory and everything below it; nothing if there is none."""
        ...

    def stat(self, path: str) -> FileInfo | None:
        """The file, or None."""
        ...

    def list(self, prefix: str, start_after: str | None = None) -> Files:
        """The files directly in a directory, by name; only names greater than ``start_after`` (a bare name) if given.
        Empty if there is no such directory."""
        ...

    def list_dirs(self, prefix: str) -> Names:
        """The bare names of the directories directly in a directory, sorted."""
        ...

    def walk(self, prefix: str) -> Iterator[FileInfo]:
        """All files at or below a directory, in no promised order."""
        ...

    def sub(self, path: str) -> Storage:
        """The same store with its root further down."""
        ...


@runtime_checkable
class UnfinishedWrites(Protocol):
    """A store where a writer that is killed leaves a half-written file under a name that no listing shows."""

    def unfinished(self, prefix: str) -> Iterator[FileInfo]:
        """Those files at or below a directory. ``Storage.delete`` takes their paths."""
        ...


def every_file(storage: Storage, prefix: str = "") -> Iterator[FileInfo]:
    """All files at or below a directory, half-written ones among them. Raises StorageError."""
    yield from storage.walk(prefix)
    if isinstance(storage, UnfinishedWrites):
        yield from storage.unfinished(prefix)
