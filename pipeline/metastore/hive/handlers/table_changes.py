"""Tables that are created, altered and dropped."""

from __future__ import annotations

from hive_metastore import ttypes

from pipeline.metastore.hive import from_thrift
from pipeline.metastore.hive.context import Context
from pipeline.metastore.hive.generated import Struct
from pipeline.metastore.hive.handlers.databases import check_database
from pipeline.metastore.hive.methods import Handler
from pipeline.metastore.hive.names import database_name, of_catalog
from pipeline.metastore.model.errors import InvalidObjectError, MetaError, NoSuchObjectError
from pipeline.metastore.model.objects import Table

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
    context.catalog.create_table(_table(args.tbl))


def create_table_with_constraints(context: Context, args: Struct) -> None:
    """Create a table. Constraints are refused, for the catalog keeps none."""
    _refuse_constraints(args)
    context.catalog.create_table(_table(args.tbl))


def create_table_req(context: Context, args: Struct) -> None:
    """Create a table. Constraints are refused, for the catalog keeps none."""
    _refuse_constraints(args.request)
    table = _table(args.request.table)
    try:
        check_database(context, table.database)
    except NoSuchObjectError as error:
        raise InvalidObjectError(error.what, do_next=error.do_next) from error
    context.catalog.create_table(table)


def alter_table(context: Context, args: Struct) -> None:
    """Replace a table's definition; another name renames it."""
    context.catalog.alter_table(database_name(args.dbname), args.tbl_name, _table(args.new_tbl))


def alter_table_with_cascade(context: Context, args: Struct) -> None:
    """Replace a table's definition, and with ``cascade`` the columns of its partitions."""
    new = _table(args.new_tbl)
    context.catalog.alter_table(database_name(args.dbname), args.tbl_name, new, cascade=bool(args.cascade))


def alter_table_with_environment_context(context: Context, args: Struct) -> None:
    """Replace a table's definition; the environment says whether partitions follow."""
    new = _table(args.new_tbl)
    cascade = _cascade(args.environment_context)
    _refuse_expectations(args.environment_context)
    context.catalog.alter_table(database_name(args.dbname), args.tbl_name, new, cascade=cascade)


def alter_table_req(context: Context, args: Struct) -> Struct:
    """Replace a table's definition; the environment says whether partitions follow."""
    request = args.req
    of_catalog(request.catName)
    new, cascade = _table(request.table), _cascade(request.environmentContext)
    _refuse_expectations(request.environmentContext)
    context.catalog.alter_table(database_name(request.dbName), request.tableName, new, cascade=cascade)
    return ttypes.AlterTableResponse()


def drop_table(context: Context, args: Struct) -> None:
    """Drop a table. Its files go as `table_files` says."""
    database, files = database_name(args.dbname), context.services.files
    if args.deleteData:
        found = context.catalog.table(database, args.name).table
        files.check(found, [found.location])
    entry = context.catalog.drop_table(database, args.name)
    if args.deleteData:
        files.delete_dropped(entry.table, [entry.table.location])


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
