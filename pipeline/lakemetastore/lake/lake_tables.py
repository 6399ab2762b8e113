"""The states of Hudi tables in a store of logs: one log a table, by the place where the table is.

Hive's tables of a Hudi table (``t``, ``t_ro``, ``t_rt``) share it, and a rename does not touch it.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from hudilake.storage import Storage
from lakemetastore.lake.differences import differences
from lakemetastore.lake.entries import LakeEntry, RegisteredName
from lakemetastore.lake.fresh import renewed
from lakemetastore.lake.opened import OpenedTable
from lakemetastore.lake.state import LakeState, apply
from lakemetastore.lake.taking_in import next_entry
from lakemetastore.log.fold import StructFold, VersionedChange
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.token import Token
from lakemetastore.log.versioned import At, VersionedLog

PREFIX: Final = "lakes/"
_FOLD: Final = StructFold[LakeState, LakeEntry](LakeEntry, LakeState, LakeState, apply)
LakeLog: TypeAlias = VersionedLog[LakeState, LakeEntry]


def log_name(uri: str) -> str:
    """The log of the table at a root."""
    return PREFIX + hashlib.blake2b(uri.rstrip("/").encode(), digest_size=16).hexdigest()


@dataclass
class LakeTables:
    """The states of all Hudi tables that a store knows. Safe to use from several threads.

    Args:
        store: of the logs.
        policy: how the logs are kept.
    """

    store: LogStore
    policy: LogPolicy = field(default_factory=LogPolicy)
    _logs: dict[str, LakeLog] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def state(self, uri: str, at_least: Token | None = None) -> At[LakeState]:
        """The state of the table at a root, version 0 for an unknown one. Arguments and errors as
        ``VersionedLog.state``."""
        return self._log(log_name(uri)).state(at_least)

    def take_in(self, storage: Storage) -> At[LakeState]:
        """Bring the state of a table up to its timeline; returns it. Writes nothing if nothing is new.

        Any number of processes may do it at once and in any order: what is new is worked out from a listing that is
        younger than the state that it is added to.

        Args:
            storage: the table's root.

        Raises:
            ConfigError: there is no table.
            CorruptDataError, StorageError: the table or the store cannot be read; nothing was written.
        """
        log = self._log(log_name(storage.uri))
        return log.commit(lambda state: next_entry(state, OpenedTable.open(storage)))

    def rebuild(self, storage: Storage) -> list[str]:
        """Read the state of a table anew, and write it if it is another one; returns what differed. Errors as
        ``take_in``."""
        discrepancies: list[str] = []

        def propose(state: LakeState) -> LakeEntry | None:
            entry = renewed(OpenedTable.open(storage))
            discrepancies[:] = differences(state, after(LakeState(), entry))
            return entry if discrepancies else None

        self._log(log_name(storage.uri)).commit(propose)
        return discrepancies

    def name(self, uri: str, database: str, name: str) -> None:
        """Note the name by which the catalog has a table. Raises StorageError."""
        named = RegisteredName(database, name)
        self._log(log_name(uri)).commit(lambda state: named if state.named != (database, name) else None)

    def changes(self, uri: str, after_version: int, limit: int | None = None) -> list[VersionedChange[LakeEntry]]:
        """The entries of a table's log after a version. Raises TrimmedError if they are gone."""
        return self._log(log_name(uri)).changes(after_version, limit)

    def tables(self) -> Iterator[LakeState]:
        """The states of all tables, by the names of their logs. Raises as ``state``."""
        for name in sorted(self.store.logs(PREFIX)):
            yield self._log(name).state().state

    def forget(self, uri: str) -> None:
        """Delete the log of a table that is no more. Raises StorageError."""
        with self._lock:
            log = self._logs.pop(log_name(uri), None)
        (log or self._log(log_name(uri))).delete()
        with self._lock:
            self._logs.pop(log_name(uri), None)

    def close(self) -> None:
        """Wait for snapshots that are being written."""
        with self._lock:
            logs = list(self._logs.values())
        for log in logs:
            log.close()

    def _log(self, name: str) -> LakeLog:
        with self._lock:
            if name not in self._logs:
                self._logs[name] = VersionedLog(self.store, name, _FOLD, self.policy)
            return self._logs[name]


def after(state: LakeState, entry: LakeEntry) -> LakeState:
    """The state after one entry."""
    return apply(state, [VersionedChange(0, entry)])
