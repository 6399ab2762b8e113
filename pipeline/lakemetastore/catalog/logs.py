"""The logs of a catalog in one store: one for all names, and one for each table."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

import msgspec

from hudilake.storage.base import StorageError
from lakemetastore.catalog.entries import NameChange, NamedTable, TableChange
from lakemetastore.catalog.names import folded, qualified
from lakemetastore.catalog.names_state import FOLD, LOG, Names
from lakemetastore.catalog.partitions import Partitions
from lakemetastore.catalog.table_state import Statistics, TableFold, TableState
from lakemetastore.errors import NoSuchObjectError
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.base import LogStore
from lakemetastore.log.token import Token
from lakemetastore.log.versioned import At, VersionedLog
from lakemetastore.model import Table

_TABLES = TableFold()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table at one version of its log. Nothing in it changes.

    ``table`` has the names that the table has today. ``token`` gives its readers at least this version.
    """

    id: str
    version: int
    table: Table
    partitions: Partitions
    statistics: Statistics

    @property
    def token(self) -> Token:
        """The token of this version."""
        return Token(table_log(self.id), self.version)


def table_log(table_id: str) -> str:
    """The name of a table's log."""
    return f"tables/{table_id}"


class CatalogLogs:
    """Opens the logs of a store, each once in a process. Threads may share it."""

    def __init__(self, store: LogStore, policy: LogPolicy) -> None:
        self.store = store
        self.policy = policy
        self.names: VersionedLog[Names, NameChange] = VersionedLog(store, LOG, FOLD, policy)
        self._tables: dict[str, VersionedLog[TableState, TableChange]] = {}
        self._lock = threading.Lock()

    def table(self, table_id: str) -> VersionedLog[TableState, TableChange]:
        """The log of a table."""
        with self._lock:
            if table_id not in self._tables:
                self._tables[table_id] = VersionedLog(self.store, table_log(table_id), _TABLES, self.policy)
            return self._tables[table_id]

    def delete(self, table_id: str) -> None:
        """Delete the log of a table that no name leads to. If the store fails, the log is left as an orphan."""
        try:
            self.table(table_id).delete()
        except StorageError as error:
            _log.warning("the log of a dropped table is left behind: %s", error, extra={"table_id": table_id})
        with self._lock:
            self._tables.pop(table_id, None)

    def find(self, database: str, name: str, at_least: Token | None = None) -> TableEntry:
        """A table by its names, in any case.

        Raises NoSuchObjectError.
        """
        known = self.names.state(at_least if at_least and at_least.log == LOG else None).state
        entry = self._entry(known, database, name, at_least)
        if entry is None and self.policy.check_after_ms:
            newest = self.names.state(Token(LOG, self.store.last(LOG))).state
            entry = self._entry(newest, database, name, at_least)
        if entry is None:
            raise NoSuchObjectError(f"{qualified(database, name)} table not found")
        return entry

    def _entry(self, known: Names, database: str, name: str, at_least: Token | None) -> TableEntry | None:
        named = known.table(folded(database), folded(name))
        if named is None:
            return None
        wanted = at_least if at_least and at_least.log == table_log(named.id) else None
        return entry_of(named, self.table(named.id).state(wanted), folded(database), folded(name))


def entry_of(named: NamedTable, at: At[TableState], database: str, name: str) -> TableEntry | None:
    """A table's state under its names of today; None if its log is gone."""
    table = at.state.table
    if table is None:
        return None
    if (table.database, table.name) != (database, name):
        table = msgspec.structs.replace(table, database=database, name=name)
    return TableEntry(named.id, at.version, table, at.state.partitions, at.state.statistics)
