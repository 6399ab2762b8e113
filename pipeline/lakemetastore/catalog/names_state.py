"""The databases and the names of all tables: the state of the log ``catalog``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from lakemetastore.catalog.entries import DatabaseDrop, DatabasePut, ListedTable, NameChange
from lakemetastore.errors import NoSuchObjectError
from lakemetastore.log.fold import StructFold, VersionedChange
from lakemetastore.model import Database

LOG = "catalog"


class CatalogNames(msgspec.Struct, frozen=True):
    """Databases by name, and of each database its tables by name. Nothing in it is changed in place."""

    databases: Mapping[str, Database] = {}
    tables: Mapping[str, Mapping[str, ListedTable]] = {}

    def database(self, name: str) -> Database:
        """A database. Raises NoSuchObjectError."""
        database = self.databases.get(name.strip().lower())
        if database is None:
            raise NoSuchObjectError(name)
        return database

    def table(self, database: str, name: str) -> ListedTable | None:
        """What is known of a table by its name, None if there is none."""
        return self.tables.get(database, {}).get(name)


def apply(state: CatalogNames, changes: Sequence[VersionedChange[NameChange]]) -> CatalogNames:
    """The names after some changes."""
    databases = dict(state.databases)
    tables: dict[str, Mapping[str, ListedTable]] = dict(state.tables)
    own: dict[str, dict[str, ListedTable]] = {}
    for versioned in changes:
        change = versioned.change
        if isinstance(change, DatabasePut):
            databases[change.database.name] = change.database
            continue
        if isinstance(change, DatabaseDrop):
            databases.pop(change.name, None)
            tables.pop(change.name, None)
            own.pop(change.name, None)
            continue
        for database in {d for d, _ in change.gone} | {d for d, _, _ in change.named}:
            if database not in own:
                tables[database] = own[database] = dict(tables.get(database, {}))
        for database, name in change.gone:
            own[database].pop(name, None)
        for database, name, table in change.named:
            own[database][name] = table
    return CatalogNames(databases, tables)


FOLD: StructFold[CatalogNames, NameChange] = StructFold(NameChange, CatalogNames, CatalogNames, apply)
