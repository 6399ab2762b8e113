"""Logs in LMDB: a file on this machine that all its processes share. It has one writer at a time, across processes.

A process that is killed while it writes leaves nothing: its transaction has no effect, and LMDB's lock is given on.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import lmdb

from hudilake.storage.base import StorageError
from lakemetastore.log.stores.base import Entry, check_name, trimmed
from lakemetastore.log.stores.turns import file_turn

#: The file takes the space that its entries need; this is the most that it may take.
_MAP_BYTES: Final = 1 << 38
_READERS: Final = 1024
_SNAPSHOTS: Final = 2
_VERSION: Final = struct.Struct(">Q")
_END: Final = b"\x00"


@dataclass(frozen=True)
class _Environment:
    """An environment, and its databases: last versions by log; entries and snapshots by log and version."""

    process: int
    environment: Any
    heads: Any
    entries: Any
    snapshots: Any


#: LMDB must not be opened twice by one process, and not be used after a fork (its documentation).
_opened: dict[str, _Environment] = {}
_guard: Final = threading.Lock()


class LmdbLogStore:
    """Logs in a directory of LMDB (see ``base.LogStore``).

    Args:
        path: the directory, made when the store is first used.
    """

    def __init__(self, path: str) -> None:
        self._path = os.path.abspath(path)  # noqa: PTH100 - resolve() would follow links

    @property
    def uri(self) -> str:
        """Returns ``lmdb:`` and the path of the directory."""
        return f"lmdb:{self._path}"

    def append(self, log: str, version: int, data: bytes) -> bool:
        """Writes the entry in one transaction; returns False if the log's last version is not the one before."""
        with self._transaction(write=True) as (it, opened):
            if _last(it, opened, check_name(log)) != version - 1:
                return False
            it.put(log.encode(), _VERSION.pack(version), db=opened.heads)
            it.put(_key(log, version), data, db=opened.entries, append=False)
        return True

    def read(self, log: str, after: int, limit: int | None = None) -> list[Entry]:
        """Reads the entries after a version, ascending, at most ``limit``. Errors as ``LogStore.read``."""
        with self._transaction() as (it, opened):
            last = _last(it, opened, check_name(log))
            if last == after:
                return []
            until = last if limit is None else min(last, after + limit)
            keys = [_key(log, version) for version in range(after + 1, until + 1)]
            log_entries = [Entry(_version(key), bytes(data)) for key, data in _each(it, opened.entries, keys)]
        if last < after or len(log_entries) != len(keys):
            raise trimmed(log, after)
        return log_entries

    def last(self, log: str) -> int:
        """Returns the version of the newest entry; 0 for an unknown log."""
        with self._transaction() as (it, opened):
            return _last(it, opened, check_name(log))

    def write_snapshot(self, log: str, version: int, data: bytes) -> None:
        """Writes the snapshot of a version and deletes old ones; does nothing to a log that was deleted."""
        with self._transaction(write=True) as (it, opened):
            if _last(it, opened, check_name(log)) < version:
                return
            it.put(_key(log, version), data, db=opened.snapshots)
            for old in _keys(it, opened.snapshots, log)[:-_SNAPSHOTS]:
                it.delete(old, db=opened.snapshots)

    def snapshot(self, log: str, before: int | None = None) -> Entry | None:
        """Returns the newest snapshot, of a version less than ``before``; None if there is none."""
        with self._transaction() as (it, opened):
            keys = _keys(it, opened.snapshots, check_name(log))
            keys = [key for key in keys if before is None or _version(key) < before]
            return Entry(_version(keys[-1]), bytes(it.get(keys[-1], db=opened.snapshots))) if keys else None

    def trim(self, log: str, version: int) -> None:
        """Deletes all entries up to a version if a snapshot covers it."""
        with self._transaction(write=True) as (it, opened):
            covered = [_version(key) for key in _keys(it, opened.snapshots, check_name(log))]
            if covered and version <= covered[-1]:
                for key in _keys(it, opened.entries, log, version):
                    it.delete(key, db=opened.entries)

    def logs(self, prefix: str = "") -> Iterator[str]:
        """Gives the names of all logs that begin with ``prefix``, sorted."""
        with self._transaction() as (it, opened), it.cursor(db=opened.heads) as cursor:
            names = [bytes(key).decode() for key in cursor.iternext(values=False)] if cursor.first() else []
        yield from (name for name in names if name.startswith(prefix))

    def delete(self, log: str) -> None:
        """Deletes a log and its snapshots in one transaction; nothing if there is none."""
        with self._transaction(write=True) as (it, opened):
            it.delete(check_name(log).encode(), db=opened.heads)
            for database in (opened.entries, opened.snapshots):
                for key in _keys(it, database, log):
                    it.delete(key, db=database)

    def turn(self, log: str, timeout_s: float) -> AbstractContextManager[bool]:
        """Waits for the turn in a queue beside the file; gives False after ``timeout_s``."""
        return file_turn(Path(self._path) / "turns" / check_name(log).replace("/", "+"), timeout_s)

    def close(self) -> None:
        """Does nothing: other stores of this process may use the environment."""

    @contextmanager
    def _transaction(self, *, write: bool = False) -> Iterator[tuple[Any, _Environment]]:
        try:
            opened = self._environment()
            with opened.environment.begin(write=write) as transaction:
                yield transaction, opened
        except (lmdb.Error, OSError) as error:
            raise StorageError(
                f"LMDB cannot {'write' if write else 'read'}: {error}",
                do_next="look at the disk and at the rights of this user; the directory must be on a local disk",
                path=self._path,
            ) from error

    def _environment(self) -> _Environment:
        with _guard:
            opened = _opened.get(self._path)
            if opened is None or opened.process != os.getpid():
                Path(self._path).mkdir(parents=True, exist_ok=True)
                made = lmdb.open(self._path, map_size=_MAP_BYTES, max_readers=_READERS, max_dbs=3)
                # Killed readers keep the space of what they read.
                made.reader_check()
                databases = [made.open_db(name) for name in (b"heads", b"entries", b"snapshots")]
                opened = _opened[self._path] = _Environment(os.getpid(), made, *databases)
            return opened


def _key(log: str, version: int) -> bytes:
    return log.encode() + _END + _VERSION.pack(version)


def _version(key: bytes) -> int:
    return int(_VERSION.unpack(bytes(key)[-_VERSION.size :])[0])


def _last(transaction: Any, opened: _Environment, log: str) -> int:  # noqa: ANN401 - LMDB has no types
    head = transaction.get(log.encode(), db=opened.heads)
    return int(_VERSION.unpack(head)[0]) if head else 0


def _each(transaction: Any, database: Any, keys: list[bytes]) -> list[tuple[bytes, bytes]]:  # noqa: ANN401
    with transaction.cursor(db=database) as cursor:
        return list(cursor.getmulti(keys))


def _keys(transaction: Any, database: Any, log: str, until: int | None = None) -> list[bytes]:  # noqa: ANN401
    """The keys of a log, ascending, up to a version."""
    keys = []
    with transaction.cursor(db=database) as cursor:
        if cursor.set_range(_key(log, 0)):
            for key in cursor.iternext(values=False):
                if not bytes(key).startswith(log.encode() + _END) or (until is not None and _version(key) > until):
                    break
                keys.append(bytes(key))
    return keys
