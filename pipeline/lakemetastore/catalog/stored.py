"""What the Hive Metastore 3.1.3 makes of databases, tables and partitions when it stores them.

Names become lower-case, locations and times are filled in, ``transient_lastDdlTime`` is added. Numbers and sizes of
files are not: no files are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from lakemetastore.catalog.locations import (
    database_location,
    normal_location,
    partition_location,
    table_location,
)
from lakemetastore.catalog.names import DEFAULT_DATABASE, folded
from lakemetastore.catalog.validation import incompatible_columns, is_database_name, is_table_name, wrong_column
from lakemetastore.errors import CatalogError, InvalidObjectError, InvalidOperationError, MetaError
from lakemetastore.model import Column, Database, Partition, Storage, Table

DDL_TIME = "transient_lastDdlTime"
VIEW = "VIRTUAL_VIEW"
MANAGED, EXTERNAL = "MANAGED_TABLE", "EXTERNAL_TABLE"
_USER, _ROLE = 1, 2
_replace = msgspec.structs.replace


def default_database(warehouse: str) -> Database:
    """The database that always exists."""
    return Database(DEFAULT_DATABASE, "Default Hive database", warehouse, owner="public", owner_type=_ROLE)


def stored_database(database: Database, warehouse: str, now: int) -> Database:
    """A new database as it is stored. Raises InvalidObjectError for a wrong name."""
    if not is_database_name(database.name):
        raise InvalidObjectError(f"{database.name} is not a valid database name")
    location = database.location
    return _replace(
        database,
        name=folded(database.name),
        location=normal_location(location) if location else database_location(database.name, warehouse),
        owner_type=database.owner_type or _USER,
        created=database.created or now,
    )


def stored_table(table: Table, home: Database, warehouse: str, now: int) -> Table:
    """A new table as it is stored, in the database ``home``."""
    location = table.location
    if table.kind != VIEW:
        location = normal_location(location) if location else table_location(home, table.name, warehouse)
    return _replace(_cased(table), location=location or None, created=now, parameters=_dated(table.parameters, now))


def altered_table(table: Table, before: Table, now: int) -> Table:
    """The new definition of a table as it is stored; what a client cannot change stays."""
    location = normal_location(table.location) if table.location and table.kind != VIEW else table.location
    return _replace(
        _cased(table),
        location=location or before.location,
        created=before.created,
        parameters=_dated(table.parameters, now),
    )


def check_name(name: str, refused: type[CatalogError] = InvalidObjectError) -> None:
    """Refuse a wrong name of a table. Raises the class ``refused``."""
    if not is_table_name(name):
        raise refused(f"{name} is not a valid object name")


def check_change(before: Table, after: Table) -> None:
    """Refuse what the Metastore does not let a table change. Raises InvalidOperationError."""
    if before.kind == VIEW:
        return
    wrong = incompatible_columns(before.storage.columns, after.storage.columns)
    if wrong:
        raise InvalidOperationError(
            "The following columns have types incompatible with the existing columns in their respective positions :\n"
            + ",".join(wrong)
        )
    if [key.name for key in after.partition_keys] != [key.name for key in before.partition_keys]:
        raise InvalidOperationError("partition keys can not be changed.")


def check_definition(name: str, columns: Sequence[Column], refused: type[CatalogError] = InvalidObjectError) -> None:
    """Refuse a wrong name of a table and columns of unknown types. Raises the class ``refused``."""
    check_name(name, refused)
    if wrong := wrong_column(columns):
        raise refused(f"Invalid column {wrong}")
    check_no_doubles(columns)


def check_no_doubles(columns: Sequence[Column]) -> None:
    """Refuse columns with the same name in any case. Raises MetaError, as the Metastore does for its database."""
    doubled = [name for name, times in Counter(column.name.lower() for column in columns).items() if times > 1]
    if doubled:
        raise MetaError(f"Add request failed : the column {doubled[0]} is there twice")


def stored_partition(partition: Partition, table: Table, now: int) -> Partition:
    """A new partition as it is stored. Raises MetaError if a view's partition has a location."""
    location = partition.location
    if location and table.location is None:
        raise MetaError("Cannot specify location for a view partition")
    location = normal_location(location) if location else partition_location(table, partition.values)
    return Partition(
        partition.values,
        lower_storage(partition.storage),
        location,
        _dated(partition.parameters, now),
        created=now,
        last_access=partition.last_access,
    )


def altered_partition(partition: Partition, before: Partition, now: int) -> Partition:
    """The new definition of a partition as it is stored."""
    return _replace(
        partition,
        storage=lower_storage(partition.storage),
        location=normal_location(partition.location) if partition.location else before.location,
        parameters=_dated(partition.parameters, now),
    )


def lower_columns(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Columns with their names in lower case; the same object if they are."""
    if all(column.name == column.name.lower() for column in columns):
        return columns
    return tuple(_replace(column, name=column.name.lower()) for column in columns)


def lower_storage(storage: Storage) -> Storage:
    """A storage with the names of its columns in lower case; the same object if they are."""
    columns = lower_columns(storage.columns)
    return storage if columns is storage.columns else _replace(storage, columns=columns)


def _cased(table: Table) -> Table:
    external = table.parameters.get("EXTERNAL", "").lower() == "true"
    kind = {MANAGED: EXTERNAL if external else MANAGED, EXTERNAL: EXTERNAL if external else MANAGED}.get(table.kind)
    return _replace(
        table,
        database=folded(table.database),
        name=folded(table.name),
        kind=kind or table.kind,
        owner_type=table.owner_type or _USER,
        storage=lower_storage(table.storage),
        partition_keys=lower_columns(table.partition_keys),
    )


def _dated(parameters: Mapping[str, str], now: int) -> dict[str, str]:
    return {**parameters, DDL_TIME: str(now)} if parameters.get(DDL_TIME, "0") == "0" else dict(parameters)
