"""Tables that are created, altered and dropped."""

from __future__ import annotations

import msgspec
from hive_metastore import ttypes

from lakemetastore.catalog.claims import Removal, places
from lakemetastore.catalog.locations import is_at_default, same_place
from lakemetastore.catalog.names import folded
from lakemetastore.errors import InvalidObjectError, MetaError, NoSuchObjectError
from lakemetastore.hive import from_thrift
from lakemetastore.hive.context import Context
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.handlers.databases import check_database
from lakemetastore.hive.methods import Handler
from lakemetastore.hive.names import database_name, of_catalog
from lakemetastore.hive.table_files import Move, is_external
from lakemetastore.model import Table

_EXPECTED = "expected_parameter_key"
_CONSTRAINTS = (
    "primaryKeys",
    "foreignKeys",
    "uniqueConstraints",
    "notNullConstraints",
    "defaultConstraints",
    "checkConstraints",
)


def create_table(context: Context, args: Struct) -> None:
    """Create a table."""
    _create(context, _table(args.tbl))


def create_table_with_constraints(context: Context, args: Struct) -> None:
    """Create a table. Constraints are refused, for the catalog keeps none."""
    _refuse_constraints(args)
    _create(context, _table(args.tbl))


def create_table_req(context: Context, args: Struct) -> None:
    """Create a table. Constraints are refused, for the catalog keeps none."""
    _refuse_constraints(args.request)
    table = _table(args.request.table)
    try:
        check_database(context, table.database)
    except NoSuchObjectError as error:
        raise InvalidObjectError(error.what, do_next=error.do_next) from error
    _create(context, table)


def alter_table(context: Context, args: Struct) -> None:
    """Replace a table's definition; another name renames it."""
    _alter(context, args.dbname, args.tbl_name, _table(args.new_tbl))


def alter_table_with_cascade(context: Context, args: Struct) -> None:
    """Replace a table's definition, and with ``cascade`` the columns of its partitions."""
    new = _table(args.new_tbl)
    _alter(context, args.dbname, args.tbl_name, new, cascade=bool(args.cascade))


def alter_table_with_environment_context(context: Context, args: Struct) -> None:
    """Replace a table's definition; the environment says whether partitions follow."""
    new = _table(args.new_tbl)
    cascade = _cascade(args.environment_context)
    _refuse_expectations(args.environment_context)
    _alter(context, args.dbname, args.tbl_name, new, cascade=cascade)


def alter_table_req(context: Context, args: Struct) -> Struct:
    """Replace a table's definition; the environment says whether partitions follow."""
    request = args.req
    of_catalog(request.catName)
    new, cascade = _table(request.table), _cascade(request.environmentContext)
    _refuse_expectations(request.environmentContext)
    _alter(context, request.dbName, request.tableName, new, cascade=cascade)
    return ttypes.AlterTableResponse()


def drop_table(context: Context, args: Struct) -> None:
    """Drop a table. Its files go as `table_files` says."""
    database, files = database_name(args.dbname), context.services.files
    if not args.deleteData:
        context.catalog.tables.drop(database, args.name)
        return
    table_entry = context.catalog.tables.get(database, args.name)
    going = Removal(frozenset([table_entry.id]))
    files.check(files.claims(context.catalog, going), table_entry.table, places(table_entry))
    entry = context.catalog.tables.drop(database, args.name)
    files.delete_dropped(files.claims(context.catalog, going), entry.table, places(entry))


def _create(context: Context, table: Table) -> None:
    with context.services.files.made([context.catalog.tables.new(table).location]):
        context.catalog.tables.create(table)


def _alter(context: Context, sent: str | None, name: str, new: Table, *, cascade: bool = False) -> None:
    """A managed table that gets other names moves to the place that they give it, if it is where its names put it."""
    database, catalog, files = database_name(sent), context.catalog, context.services.files
    before = catalog.tables.get(database, name) if catalog.tables.has(database, name) else None
    if new.location and not (before and same_place(before.table.location, new.location)):
        files.allow(new.location)
    place = _moved_to(context, before.table, new) if before else None
    if before is None or place is None:
        catalog.tables.alter(database, name, new, cascade=cascade)
        return
    old = before.table.location
    assert old is not None
    placed = msgspec.structs.replace(new, location=place)
    moving = Move(before.table, old, place, lambda: _is_at(context, placed))
    with files.moving(files.claims(catalog, Removal(frozenset([before.id]))), moving):
        catalog.tables.alter(database, name, placed, cascade=cascade, moved_from=old)


def _moved_to(context: Context, before: Table, new: Table) -> str | None:
    """The place that a table gets with other names; None if it stays."""
    renamed = (folded(new.database), folded(new.name)) != (before.database, before.name)
    elsewhere = bool(new.location) and not same_place(before.location, new.location)
    if not renamed or elsewhere or is_external(before) or before.location is None:
        return None
    if (
        context.catalog.tables.has(new.database, new.name)
        or folded(new.database) not in context.catalog.databases.names()
    ):
        return None  # the change is refused
    if not is_at_default(before, context.catalog.databases.get(before.database)):
        return None
    return context.catalog.tables.place_of(new)


def _is_at(context: Context, placed: Table) -> bool:
    exists = context.catalog.tables.has(placed.database, placed.name)
    return exists and same_place(
        context.catalog.tables.get(placed.database, placed.name).table.location, placed.location
    )


def _table(sent: Struct) -> Table:
    of_catalog(sent.catName)
    sent.dbName = database_name(sent.dbName)
    return from_thrift.table(sent)


def _cascade(environment: Struct) -> bool:
    return bool(environment and (environment.properties or {}).get("CASCADE", "").lower() == "true")


def _refuse_expectations(environment: Struct) -> None:
    """Iceberg without locks wants the change only if a parameter has a value (HIVE-26882)."""
    if environment and _EXPECTED in (environment.properties or {}):
        raise MetaError(
            "A change that expects a parameter's value is not supported",
            do_next="let the client take locks (iceberg.engine.hive.lock-enabled=true)",
        )


def _refuse_constraints(sent: Struct) -> None:
    given = [name for name in _CONSTRAINTS if getattr(sent, name)]
    if given:
        raise MetaError(
            f"Constraints are not supported: {', '.join(given)}", do_next="create the table without constraints"
        )


CALLS: dict[str, Handler] = {
    "create_table": create_table,
    "create_table_with_environment_context": create_table,
    "create_table_with_constraints": create_table_with_constraints,
    "create_table_req": create_table_req,
    "alter_table": alter_table,
    "alter_table_with_cascade": alter_table_with_cascade,
    "alter_table_with_environment_context": alter_table_with_environment_context,
    "alter_table_req": alter_table_req,
    "drop_table": drop_table,
    "drop_table_with_environment_context": drop_table,
}
