"""Logs as files of any storage whose exclusive create lets one writer through: local disk, object stores, HDFS.

``<log>/<version>.entry`` and ``<log>/<version>.snapshot``, versions with 20 digits.

Entries are forgotten from the oldest on, the newest one never. So a writer whose entry has no entry before it, once it
is written, was overtaken by a trim while it wrote (or by a delete): then, and only then, a free name says nothing.
A log is deleted from the newest entry back: what a crash leaves is an older state of the log.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from hudilake.storage import (
    AlreadyExistsError,
    OutcomeUnknownError,
    Storage,
    StorageNotFoundError,
    check_exclusive_create,
)
from hudilake.storage.local import LocalStorage
from hudilake.storage.objects import ObjectStorage
from lakemetastore.log.stores.base import Entry, check_name, trimmed
from lakemetastore.log.stores.turns import file_turn

_FILE: Final = re.compile(r"(?P<version>[0-9]{20})\.(?P<kind>entry|snapshot)")
_READERS: Final = 8
_LOOKS: Final = 3
_SNAPSHOTS: Final = 2
_TURNS: Final = ".turns"


@dataclass(frozen=True, slots=True)
class _LogFiles:
    """The versions of a log's entries and snapshots, each ascending."""

    entries: list[int]
    snapshots: list[int]

    def run_after(self, version: int) -> list[int] | None:
        """The entries after a version if there is no gap between, and behind the version, and among them."""
        versions = [each for each in self.entries if each > version]
        if versions != list(range(version + 1, version + 1 + len(versions))):
            return None
        reaches = version in self.entries or version in (0, *self.snapshots)
        return versions if versions or (reaches and (version or not self.snapshots)) else None


class FileStore:
    """Logs in a storage (see ``base.LogStore``).

    Args:
        storage: its root is the store's.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._checked = False

    @property
    def uri(self) -> str:
        """Returns the URI of the storage's root."""
        return self._storage.uri

    def append(self, log: str, version: int, data: bytes) -> bool:
        """As ``LogStore.append``. Raises UnsupportedError for a store that lets two writers create one object."""
        if not self._checked and isinstance(self._storage, ObjectStorage):
            check_exclusive_create(self._storage)
        self._checked = True
        try:
            self._storage.create(_entry(log, version), data)
        except AlreadyExistsError:
            return False
        if version > 1 and self._storage.stat(_entry(log, version - 1)) is not None:
            return True
        listing = self._list(log)
        if listing.snapshots and listing.snapshots[-1] >= version:
            if listing.entries[-1] > version:
                # Whosever it is: the snapshot covers it, and no reader shall meet it.
                self._storage.delete(_entry(log, version))
            raise OutcomeUnknownError(
                "the log was trimmed past the entry while it was written",
                do_next="read the log's state: it shows whether the change was made",
                log=log,
                version=version,
            )
        if version == 1 or version - 1 in (*listing.entries, *listing.snapshots):
            return True
        self._storage.delete(_entry(log, version))
        return False

    def read(self, log: str, after: int, limit: int | None = None) -> list[Entry]:
        """Reads the entries after a version, ascending, at most ``limit``. Errors as ``LogStore.read``."""
        if self._is_last(log, after):
            return []
        versions = None
        for _ in range(_LOOKS):
            # A listing of a directory that changes may lack an entry and have the one behind it.
            versions = self._list(log, after).run_after(after)
            if versions is not None:
                break
        if versions is None:
            raise trimmed(log, after)
        try:
            return self._read(log, versions[:limit])
        except StorageNotFoundError:
            raise trimmed(log, after) from None

    def last(self, log: str) -> int:
        """Returns the newest version that has an entry or a snapshot; 0 for an unknown log."""
        listing = self._list(log)
        return max((*listing.entries, *listing.snapshots), default=0)

    def write_snapshot(self, log: str, version: int, data: bytes) -> None:
        """Writes the snapshot of a version and deletes old ones; all of them if the log was deleted meanwhile."""
        self._storage.write(_snapshot(log, version), data)
        listing = self._list(log)
        # The newest entry stays for as long as the log: without one it was deleted meanwhile.
        for old in listing.snapshots[:-_SNAPSHOTS] if listing.entries else listing.snapshots:
            self._storage.delete(_snapshot(log, old))

    def snapshot(self, log: str, before: int | None = None) -> Entry | None:
        """Returns the newest snapshot, of a version less than ``before``; None if there is none."""
        for _ in range(_LOOKS):
            versions = [each for each in self._list(log).snapshots if before is None or each < before]
            if not versions:
                break
            with contextlib.suppress(StorageNotFoundError):
                return Entry(versions[-1], self._storage.read(_snapshot(log, versions[-1])))
        return None

    def trim(self, log: str, version: int) -> None:
        """Deletes entries up to a version that a snapshot covers; the newest entry stays."""
        listing = self._list(log)
        if listing.snapshots and listing.snapshots[-1] >= version:
            for each in listing.entries[:-1]:
                if each <= version:
                    self._storage.delete(_entry(log, each))

    def logs(self, prefix: str = "") -> Iterator[str]:
        """Gives the names of all logs that begin with ``prefix``, sorted; walks their directory."""
        within = prefix.rpartition("/")[0]
        paths = (info.path.rpartition("/") for info in self._storage.walk(within))
        yield from sorted({log for log, _, name in paths if log.startswith(prefix) and _FILE.fullmatch(name)})

    def delete(self, log: str) -> None:
        """Deletes all entries and snapshots of a log, and its queue; nothing if there is none."""
        listing = self._list(log)
        while listing.entries or listing.snapshots:
            for version in reversed(listing.entries):
                self._storage.delete(_entry(log, version))
            for version in reversed(listing.snapshots):
                self._storage.delete(_snapshot(log, version))
            listing = self._list(log)
        if isinstance(self._storage, LocalStorage):
            self._storage.delete_tree(f"{log}/{_TURNS}")

    def turn(self, log: str, timeout_s: float) -> AbstractContextManager[bool]:
        """Waits for the turn in a queue on local disk; gives False after ``timeout_s``, elsewhere at once."""
        if isinstance(self._storage, LocalStorage):
            return file_turn(self._storage.root / check_name(log) / _TURNS, timeout_s)
        return contextlib.nullcontext(False)

    def close(self) -> None:
        """Does nothing: the storage belongs to the caller."""

    def _is_last(self, log: str, version: int) -> bool:
        """Whether it is known without a listing that there is nothing behind a version. An object store lists as fast
        as it looks for one object."""
        if version == 0 or isinstance(self._storage, ObjectStorage):
            return False
        if self._storage.stat(_entry(log, version + 1)) is not None:
            return False
        # Entries go from the oldest on: if this one is there, the next one was not yet trimmed.
        return self._storage.stat(_entry(log, version)) is not None

    def _list(self, log: str, first: int = 0) -> _LogFiles:
        """The files of a log from a version on; its snapshots are listed behind its entries."""
        start_after = f"{first - 1:020d}.snapshot" if first else None
        infos = self._storage.list(check_name(log), start_after)
        names = (_FILE.fullmatch(info.path.rpartition("/")[2]) for info in infos)
        kinds_and_versions = [(match["kind"], int(match["version"])) for match in names if match]
        entries = [version for kind, version in kinds_and_versions if kind == "entry"]
        return _LogFiles(sorted(entries), sorted(version for kind, version in kinds_and_versions if kind == "snapshot"))

    def _read(self, log: str, versions: list[int]) -> list[Entry]:
        def read(version: int) -> Entry:
            return Entry(version, self._storage.read(_entry(log, version)))

        if len(versions) < _READERS or isinstance(self._storage, LocalStorage):
            return [read(version) for version in versions]
        with ThreadPoolExecutor(_READERS) as readers:
            return list(readers.map(read, versions))


def _entry(log: str, version: int) -> str:
    return f"{check_name(log)}/{version:020d}.entry"


def _snapshot(log: str, version: int) -> str:
    return f"{check_name(log)}/{version:020d}.snapshot"
