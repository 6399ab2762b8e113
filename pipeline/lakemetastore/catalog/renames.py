"""Changes of names, worked out on the names of all tables."""

from __future__ import annotations

from collections.abc import Mapping

from lakemetastore.catalog.entries import NamedTable, TablesNamed
from lakemetastore.catalog.names import TableName, folded, qualified
from lakemetastore.catalog.names_state import Names
from lakemetastore.catalog.stored import EXTERNAL, VIEW
from lakemetastore.errors import AlreadyExistsError, InvalidOperationError, NoSuchObjectError
from lakemetastore.model import Table


def renamed(names: Names, moves: Mapping[TableName, TableName], ids: Mapping[TableName, str]) -> TablesNamed:
    """Several tables get other names at once.

    Args:
        names: of today.
        moves: the new name of each old one.
        ids: the tables that must still have the old names; of a name that is not in it, any.

    Raises NoSuchObjectError for a table or database that is not there, AlreadyExistsError if a name is taken or given
    twice.
    """
    named: dict[TableName, NamedTable] = {}
    for old, new in moves.items():
        table = names.table(*old)
        if table is None or ids.get(old, table.id) != table.id:
            raise NoSuchObjectError(f"{qualified(*old)} table not found")
        names.database(new[0])
        if new in named or (names.table(*new) is not None and new not in moves):
            raise AlreadyExistsError(f"Table {qualified(*new)} already exists")
        named[new] = table
    return TablesNamed(tuple(moves), tuple((*new, table) for new, table in named.items()))


def described(names: Names, name: TableName, now: NamedTable) -> TablesNamed | None:
    """What listings show of a table, if that is another than before and the table still has the name."""
    found = names.table(*name)
    return TablesNamed(named=((*name, now),)) if found is not None and found.id == now.id and found != now else None


def renamed_by_change(names: Names, before: Table, after: Table) -> TablesNamed:
    """A table gets the names of its new definition. Raises InvalidOperationError as a change of a table does."""
    old, new = (before.database, before.name), (folded(after.database), folded(after.name))
    if new[0] not in names.databases:
        problem = "Unable to change partition or table."
        detail = "Check metastore logs for detailed stack."
        if before.kind == VIEW or (before.kind == EXTERNAL and before.partition_keys):
            raise InvalidOperationError(f"{problem} {detail}Database hive.{after.database} doesn't exist.")
        raise InvalidOperationError(f"{problem} Database {old[0]} does not exist {detail}{new[0]}")
    if names.table(*new) is not None:
        raise InvalidOperationError(f"new table {new[0]}.{new[1]} already exists")
    return renamed(names, {old: new}, {})
