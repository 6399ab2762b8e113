"""Tables that are read: their names, their definitions, their columns."""

from __future__ import annotations

from collections.abc import Sequence

from hive_metastore import ttypes

from lakemetastore.errors import MetaError, NoSuchObjectError, UnknownTableError
from lakemetastore.hive import to_thrift
from lakemetastore.hive.context import Context
from lakemetastore.hive.encoded import LIST, STRUCT, EncodedResult, only_field, struct_list
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.methods import Handler
from lakemetastore.hive.names import database_name, of_catalog, plain
from lakemetastore.model import Table

_KINDS = ("MANAGED_TABLE", "EXTERNAL_TABLE", "VIRTUAL_VIEW", "MATERIALIZED_VIEW")


def get_all_tables(context: Context, args: Struct) -> list[str]:
    """The names of a database's tables."""
    return context.catalog.tables.like(database_name(args.db_name))


def get_tables(context: Context, args: Struct) -> list[str]:
    """The names that match a pattern."""
    return context.catalog.tables.like(database_name(args.db_name), args.pattern)


def get_tables_by_type(context: Context, args: Struct) -> list[str]:
    """The names of one kind of tables that match a pattern."""
    if args.tableType not in _KINDS:
        raise MetaError(
            "java.lang.IllegalArgumentException: No enum constant"
            f" org.apache.hadoop.hive.metastore.TableType.{args.tableType}",
            do_next=f"ask for one of {', '.join(_KINDS)}",
        )
    return context.catalog.tables.like(database_name(args.db_name), args.pattern, args.tableType)


def get_table_meta(context: Context, args: Struct) -> list[Struct]:
    """Names, kinds and comments of tables by patterns."""
    table_summaries = context.catalog.tables.summaries(
        plain(args.db_patterns) or "*", args.tbl_patterns, args.tbl_types or ()
    )
    return [
        ttypes.TableMeta(dbName=t.database, tableName=t.name, tableType=t.kind, comments=t.comment)
        for t in table_summaries
    ]


def get_tables_ext(context: Context, args: Struct) -> list[Struct]:
    """The names that match a pattern, as Hive 4 asks for them. No table wants capabilities of its clients."""
    request = args.req
    of_catalog(request.catalog)
    names = context.catalog.tables.like(database_name(request.database), request.tableNamePattern)
    limit = request.limit if request.limit and request.limit > 0 else len(names)
    return [ttypes.ExtendedTableInfo(tblName=name) for name in names[:limit]]


def get_table(context: Context, args: Struct) -> EncodedResult:
    """A table."""
    entry = context.catalog.tables.get(database_name(args.dbname), args.tbl_name)
    return EncodedResult(STRUCT, [context.answers.table(entry)])


def get_table_req(context: Context, args: Struct) -> EncodedResult:
    """A table."""
    request = args.req
    of_catalog(request.catName)
    entry = context.catalog.tables.get(database_name(request.dbName), request.tblName)
    return EncodedResult(STRUCT, only_field(STRUCT, 1, [context.answers.table(entry)]))


def get_table_objects_by_name(context: Context, args: Struct) -> EncodedResult:
    """Those of some tables that there are."""
    return EncodedResult(LIST, _tables(context, args.dbname, args.tbl_names or ()))


def get_table_objects_by_name_req(context: Context, args: Struct) -> EncodedResult:
    """Those of some tables that there are; all that match a pattern, if no names are given."""
    request = args.req
    of_catalog(request.catName)
    names = request.tblNames
    if names is None:
        names = context.catalog.tables.like(database_name(request.dbName), request.tablesPattern)
    return EncodedResult(STRUCT, only_field(LIST, 1, _tables(context, request.dbName, names)))


def get_fields(context: Context, args: Struct) -> list[Struct]:
    """The columns of a table without its partition keys."""
    return to_thrift.columns(_defined(context, args.db_name, args.table_name).storage.columns)


def get_fields_req(context: Context, args: Struct) -> Struct:
    """The columns of a table without its partition keys."""
    of_catalog(args.req.catName)
    table = _defined(context, args.req.dbName, args.req.tblName)
    return ttypes.GetFieldsResponse(fields=to_thrift.columns(table.storage.columns))


def get_schema(context: Context, args: Struct) -> list[Struct]:
    """The columns of a table, then its partition keys."""
    return _schema(_defined(context, args.db_name, args.table_name))


def get_schema_req(context: Context, args: Struct) -> Struct:
    """The columns of a table, then its partition keys."""
    of_catalog(args.req.catName)
    return ttypes.GetSchemaResponse(fields=_schema(_defined(context, args.req.dbName, args.req.tblName)))


def no_views(context: Context, args: Struct) -> list[Struct]:
    """Materialized views that queries may be rewritten to: there are none."""
    return []


def _tables(context: Context, database: str, names: Sequence[str]) -> list[bytes]:
    entries = context.catalog.tables.named(database_name(database), names)
    return struct_list([context.answers.table(entry) for entry in entries])


def _schema(table: Table) -> list[Struct]:
    return to_thrift.columns((*table.storage.columns, *table.partition_keys))


def _defined(context: Context, database: str, name: str) -> Table:
    """A table for calls that declare UnknownTableException where others have NoSuchObjectException."""
    try:
        return context.catalog.tables.get(database_name(database), name).table
    except NoSuchObjectError as error:
        raise UnknownTableError(error.what, do_next=error.do_next, **error.where) from error


CALLS: dict[str, Handler] = {
    "get_all_tables": get_all_tables,
    "get_tables": get_tables,
    "get_tables_by_type": get_tables_by_type,
    "get_table_meta": get_table_meta,
    "get_tables_ext": get_tables_ext,
    "get_table": get_table,
    "get_table_req": get_table_req,
    "get_table_objects_by_name": get_table_objects_by_name,
    "get_table_objects_by_name_req": get_table_objects_by_name_req,
    "get_fields": get_fields,
    "get_fields_with_environment_context": get_fields,
    "get_fields_req": get_fields_req,
    "get_schema": get_schema,
    "get_schema_with_environment_context": get_schema,
    "get_schema_req": get_schema_req,
    "get_materialized_views_for_rewriting": no_views,
    "get_all_materialized_view_objects_for_rewriting": no_views,
}
