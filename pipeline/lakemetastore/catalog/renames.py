"""Changes of names, worked out on the names of all tables."""

from __future__ import annotations

from collections.abc import Mapping

from lakemetastore.catalog.entries import ListedTable, TableNames
from lakemetastore.catalog.names import TableName, folded, qualified
from lakemetastore.catalog.names_state import CatalogNames
from lakemetastore.catalog.stored import EXTERNAL, VIEW
from lakemetastore.errors import AlreadyExistsError, InvalidOperationError, NoSuchObjectError
from lakemetastore.model import Table


def renamed(names: CatalogNames, moves: Mapping[TableName, TableName], ids: Mapping[TableName, str]) -> TableNames:
    """Several tables get other names at once.

    Args:
        names: of today.
        moves: the new name of each old one.
        ids: the tables that must still have the old names; of a name that is not in it, any.

    Raises NoSuchObjectError for a table or database that is not there, AlreadyExistsError if a name is taken or given
    twice.
    """
    named: dict[TableName, ListedTable] = {}
    for old, new in moves.items():
        table = names.table(*old)
        if table is None or ids.get(old, table.id) != table.id:
            raise NoSuchObjectError(f"{qualified(*old)} table not found")
        names.database(new[0])
        if new in named or (names.table(*new) is not None and new not in moves):
            raise AlreadyExistsError(f"Table {qualified(*new)} already exists")
        named[new] = table
    return TableNames(tuple(moves), tuple((*new, table) for new, table in named.items()))


def described(names: CatalogNames, name: TableName, now: ListedTable) -> TableNames | None:
    """What listings show of a table, if that is another than before and the table still has the name."""
    listed_table = names.table(*name)
    return (
        TableNames(named=((*name, now),))
        if listed_table is not None and listed_table.id == now.id and listed_table != now
        else None
    )


def renamed_by_change(names: CatalogNames, before: Table, after: Table) -> TableNames:
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
