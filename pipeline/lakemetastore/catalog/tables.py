"""Tables of a catalog and their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hudilake.clock import new_uuid, now_ms
from lakemetastore.catalog.entries import ListedTable, NameChange, TableChange, TableDefinition, TableNames
from lakemetastore.catalog.locations import table_location
from lakemetastore.catalog.logs import CatalogLogs, TableEntry, entry_of
from lakemetastore.catalog.names import TableName, folded, matching, qualified
from lakemetastore.catalog.names_state import CatalogNames
from lakemetastore.catalog.renames import described, renamed, renamed_by_change
from lakemetastore.catalog.stored import (
    altered_table,
    check_change,
    check_definition,
    check_name,
    check_no_doubles,
    stored_table,
)
from lakemetastore.catalog.table_state import TableState
from lakemetastore.catalog.validation import wrong_column
from lakemetastore.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    NoSuchObjectError,
    UnknownDatabaseError,
)
from lakemetastore.log.token import Token
from lakemetastore.model import Table

#: A creation takes seconds; a log this old without a name gets none any more.
ORPHAN_AGE_S = 600


@dataclass(frozen=True, slots=True)
class TableSummary:
    """What listings show of a table."""

    database: str
    name: str
    kind: str
    comment: str | None


class Tables:
    """The calls about tables. See ``Catalog``."""

    def __init__(self, logs: CatalogLogs, warehouse: str) -> None:
        self._logs = logs
        self._warehouse = warehouse

    def names(self, database: str) -> list[str]:
        """The names of a database's tables, ascending; none for an unknown database."""
        return self.like(database)

    def like(self, database: str, pattern: str | None = None, kind: str | None = None) -> list[str]:
        """The names of the tables that match ``a*|b`` and are of a kind, ascending; none for an unknown database."""
        tables = self._logs.names.state().state.tables.get(folded(database), {})
        matches = matching(tables, pattern and folded(pattern))
        return matches if kind is None else [name for name in matches if tables[name].kind == kind]

    def summaries(
        self, database_pattern: str | None, table_pattern: str | None, kinds: Sequence[str] = ()
    ) -> list[TableSummary]:
        """The tables of databases that match a pattern, ascending by names. No kinds: tables of all kinds."""
        names = self._logs.names.state().state
        return [
            TableSummary(database, name, table.kind, table.comment)
            for database in matching(names.databases, database_pattern and folded(database_pattern))
            for name, table in _matching_tables(names, database, table_pattern and folded(table_pattern))
            if not kinds or table.kind in kinds
        ]

    def get(self, database: str, name: str, at_least: Token | None = None) -> TableEntry:
        """A table. Raises NoSuchObjectError."""
        return self._logs.find(database, name, at_least)

    def has(self, database: str, name: str) -> bool:
        """Whether there is a table of that name."""
        return self._logs.names.state().state.table(folded(database), folded(name)) is not None

    def named(self, database: str, names: Sequence[str]) -> list[TableEntry]:
        """The tables of some names, ascending, each once; names without a table are left out.

        Raises UnknownDatabaseError.
        """
        known = self._logs.names.state().state
        if folded(database) not in known.databases:
            raise UnknownDatabaseError(f"Could not find database hive.{database}")
        return list(self._entries(known, folded(database), {folded(name) for name in names}))

    def new(self, table: Table) -> Table:
        """A table as it would be stored, with its location. Raises as ``create``."""
        check_definition(table.name, table.storage.columns)
        if wrong := wrong_column(table.partition_keys):
            raise InvalidObjectError(f"Invalid partition column {wrong}")
        check_no_doubles(table.partition_keys)
        known = self._logs.names.state().state
        self._check_free(known, table)
        return stored_table(table, known.databases[folded(table.database)], self._warehouse, now_ms() // 1000)

    def place_of(self, table: Table) -> str:
        """Where a table is put that comes without a location. Raises NoSuchObjectError for an unknown database."""
        return table_location(self._logs.names.state().state.database(table.database), table.name, self._warehouse)

    def create(self, table: Table) -> TableEntry:
        """Create a table; gives it back as it is stored.

        Raises AlreadyExistsError, and InvalidObjectError for a wrong name, a wrong type or an unknown database.
        """
        stored = self.new(table)
        database, name = stored.database, stored.name
        named = ListedTable(new_uuid(), stored.kind, stored.parameters.get("comment"))

        def propose(names: CatalogNames) -> NameChange:
            self._check_free(names, table)
            return TableNames(named=((database, name, named),))

        log_state = self._logs.table(named.id).commit(lambda _: TableDefinition(stored))
        try:
            self._logs.names.commit(propose)
        except (AlreadyExistsError, InvalidObjectError):
            self._logs.delete(named.id)
            raise
        entry = entry_of(named, log_state, database, name)
        assert entry is not None
        return entry

    def alter(
        self, database: str, name: str, new: Table, *, cascade: bool = False, moved_from: str | None = None
    ) -> TableEntry:
        """Give a table another definition, and other names if ``new`` has others. Files are not touched.

        The name changes first: a crash in between leaves the table with its new name and its old definition.

        Args:
            cascade: partitions get the new columns, too, if those of the table change.
            moved_from: its directory was moved from there to the location of ``new``: partitions below are there, too.

        Raises InvalidOperationError for an unknown table, names that are taken, and what the Metastore refuses.
        """
        try:
            entry = self._logs.find(database, name)
        except NoSuchObjectError as error:
            raise InvalidOperationError(error.what) from error
        target = folded(new.database), folded(new.name)
        check_definition(target[1], new.storage.columns, InvalidOperationError)
        check_change(entry.table, new)

        def propose(state: TableState) -> TableChange:
            if state.table is None:
                raise InvalidOperationError(f"table {qualified(folded(database), folded(name))} doesn't exist")
            check_change(state.table, new)
            altered = altered_table(new, state.table, now_ms() // 1000)
            return TableDefinition(
                altered, cascade and altered.storage.columns != state.table.storage.columns, moved_from
            )

        if target != (entry.table.database, entry.table.name):
            self._logs.names.commit(lambda names: renamed_by_change(names, entry.table, new))
        log_state = self._logs.table(entry.id).commit(propose)
        assert log_state.state.table is not None
        named = ListedTable(entry.id, log_state.state.table.kind, log_state.state.table.parameters.get("comment"))
        self._logs.names.commit(lambda names: described(names, target, named))
        altered = entry_of(named, log_state, *target)
        assert altered is not None
        return altered

    def drop(self, database: str, name: str) -> TableEntry:
        """Drop a table; gives what was dropped. Files stay.

        Raises NoSuchObjectError.
        """
        if folded(database) not in self._logs.names.state().state.databases:
            raise NoSuchObjectError(database)
        home, key = folded(database), folded(name)
        missing = NoSuchObjectError(f"{qualified(database, name)} table not found")
        dropped: list[ListedTable] = []

        def propose(names: CatalogNames) -> NameChange:
            listed_table = names.table(home, key)
            if listed_table is None:
                raise missing
            dropped[:] = [listed_table]
            return TableNames(gone=((home, key),))

        self._logs.names.commit(propose)
        entry = entry_of(dropped[0], self._logs.table(dropped[0].id).state(), home, key)
        self._logs.delete(dropped[0].id)
        if entry is None:
            raise missing
        return entry

    def rename(self, database: str, name: str, new_database: str, new_name: str) -> None:
        """Give a table other names. Files stay where they are.

        Raises NoSuchObjectError, AlreadyExistsError.
        """
        self.swap_names({(database, name): (new_database, new_name)})

    def swap_names(self, names: Mapping[TableName, TableName], ids: Mapping[TableName, str] | None = None) -> None:
        """Give several tables other names at once, in one version; swaps and cycles, too. Names are (database, table).

        Args:
            names: the new name of each old one.
            ids: the tables that must still have the old names, so that a swap is not made twice; None for any.

        Raises NoSuchObjectError for a table or database that is not there, AlreadyExistsError if a name is taken or
        given twice, InvalidObjectError for a wrong name.
        """
        moves = {_folded(old): _folded(new) for old, new in names.items()}
        expected = {_folded(old): table_id for old, table_id in (ids or {}).items()}
        for _, name in moves.values():
            check_name(name)
        self._logs.names.commit(lambda state: renamed(state, moves, expected))

    def orphans(self, older_than_s: int = ORPHAN_AGE_S) -> list[str]:
        """The ids of table logs that no name leads to, of a creation or a drop that died, ascending.

        Args:
            older_than_s: younger tables are left out: they may be being created, and get their name in a moment.
        """
        logs = {log.removeprefix("tables/") for log in self._logs.store.logs("tables/")}
        tables = self._logs.names.state().state.tables.values()
        unnamed = logs - {table.id for named in tables for table in named.values()}
        return sorted(table_id for table_id in unnamed if self._is_old(table_id, older_than_s))

    def delete_orphan(self, table_id: str, older_than_s: int = ORPHAN_AGE_S) -> None:
        """Delete a table log if it is one of ``orphans``."""
        if table_id in self.orphans(older_than_s):
            self._logs.delete(table_id)

    def _is_old(self, table_id: str, age_s: int) -> bool:
        table = self._logs.table(table_id).state().state.table
        return table is None or table.created + age_s <= now_ms() // 1000

    def _entries(self, known: CatalogNames, database: str, wanted: set[str]) -> Iterator[TableEntry]:
        for name in sorted(wanted):
            named = known.table(database, name)
            entry = named and entry_of(named, self._logs.table(named.id).state(), database, name)
            if entry:
                yield entry

    @staticmethod
    def _check_free(names: CatalogNames, table: Table) -> None:
        if folded(table.database) not in names.databases:
            raise InvalidObjectError(table.database)
        if names.table(folded(table.database), folded(table.name)) is not None:
            raise AlreadyExistsError(f"Table {qualified(table.database, table.name)} already exists")


def _folded(name: TableName) -> TableName:
    return folded(name[0]), folded(name[1])


def _matching_tables(names: CatalogNames, database: str, pattern: str | None) -> Iterator[tuple[str, ListedTable]]:
    tables = names.tables.get(database, {})
    for name in matching(tables, pattern):
        yield name, tables[name]
