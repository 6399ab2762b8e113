"""Databases of a catalog."""

from __future__ import annotations

import msgspec

from hudilake.clock import now_ms
from lakemetastore.catalog.entries import DatabaseDrop, DatabasePut, ListedTable, NameChange
from lakemetastore.catalog.locations import normal_location
from lakemetastore.catalog.logs import CatalogLogs, TableEntry, entry_of
from lakemetastore.catalog.names import DEFAULT_DATABASE, folded, matching
from lakemetastore.catalog.names_state import CatalogNames
from lakemetastore.catalog.stored import default_database, stored_database
from lakemetastore.errors import AlreadyExistsError, InvalidOperationError, MetaError
from lakemetastore.model import Database


class Databases:
    """The calls about databases. See ``Catalog``."""

    def __init__(self, logs: CatalogLogs, warehouse: str) -> None:
        self._logs = logs
        self._warehouse = warehouse
        logs.names.commit(self._with_default)

    def names(self) -> list[str]:
        """The names of all databases, ascending."""
        return sorted(self._logs.names.state().state.databases)

    def like(self, pattern: str) -> list[str]:
        """The names of the databases that match ``a*|b``, ascending."""
        return matching(self._logs.names.state().state.databases, pattern.strip())

    def get(self, name: str) -> Database:
        """A database. Raises NoSuchObjectError."""
        return self._logs.names.state().state.database(name)

    def new(self, database: Database) -> Database:
        """A database as it would be stored, with its location. Raises as ``create``."""
        if folded(database.name) in self._logs.names.state().state.databases:
            raise AlreadyExistsError(f"Database {database.name} already exists")
        return stored_database(database, self._warehouse, now_ms() // 1000)

    def create(self, database: Database) -> Database:
        """Create a database; gives it back as it is stored.

        Raises AlreadyExistsError, and InvalidObjectError for a wrong name.
        """

        def propose(names: CatalogNames) -> NameChange:
            if folded(database.name) in names.databases:
                raise AlreadyExistsError(f"Database {database.name} already exists")
            return DatabasePut(stored_database(database, self._warehouse, now_ms() // 1000))

        return self._logs.names.commit(propose).state.database(database.name)

    def alter(self, name: str, database: Database) -> None:
        """Change the parameters and the owner of a database, and its description and location if they are given.

        Raises NoSuchObjectError.
        """

        def propose(names: CatalogNames) -> NameChange:
            before = names.database(name)
            return DatabasePut(
                msgspec.structs.replace(
                    before,
                    parameters=database.parameters,
                    owner=database.owner,
                    owner_type=database.owner_type or before.owner_type,
                    description=database.description or before.description,
                    location=normal_location(database.location) if database.location else before.location,
                )
            )

        self._logs.names.commit(propose)

    def drop(self, name: str, *, cascade: bool = False) -> list[TableEntry]:
        """Drop a database, with ``cascade`` its tables, too. Gives the dropped tables; their files stay.

        Raises NoSuchObjectError, MetaError for the default database, InvalidOperationError if it has tables.
        """
        if folded(name) == DEFAULT_DATABASE:
            raise MetaError("Can not drop default database in catalog hive")
        dropped: dict[str, ListedTable] = {}

        def propose(names: CatalogNames) -> NameChange:
            dropped_database = names.database(name)
            dropped.clear()
            dropped.update(names.tables.get(dropped_database.name, {}))
            if dropped and not cascade:
                raise InvalidOperationError(f"Database {dropped_database.name} is not empty. One or more tables exist.")
            return DatabaseDrop(dropped_database.name)

        self._logs.names.commit(propose)
        entries = [
            entry_of(named, self._logs.table(named.id).state(), folded(name), table)
            for table, named in sorted(dropped.items())
        ]
        for named in dropped.values():
            self._logs.delete(named.id)
        return [entry for entry in entries if entry is not None]

    def _with_default(self, names: CatalogNames) -> NameChange | None:
        return None if DEFAULT_DATABASE in names.databases else DatabasePut(default_database(self._warehouse))
