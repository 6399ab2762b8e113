"""Databases, and the catalog that has them all."""

from __future__ import annotations

from collections.abc import Sequence

from hive_metastore import ttypes

from lakemetastore.catalog.claims import Removal, places
from lakemetastore.catalog.logs import TableEntry
from lakemetastore.catalog.names import folded
from lakemetastore.errors import NoSuchObjectError
from lakemetastore.hive import from_thrift, to_thrift
from lakemetastore.hive.context import Context
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.methods import Handler
from lakemetastore.hive.names import database_name, of_catalog, plain
from lakemetastore.hive.table_files import is_external


def get_all_databases(context: Context, args: Struct) -> list[str]:
    """The names of all databases."""
    return context.catalog.databases.names()


def get_databases(context: Context, args: Struct) -> list[str]:
    """The names that match a pattern: ``*`` is any text, ``|`` separates choices."""
    pattern = plain(args.pattern)
    return context.catalog.databases.names() if pattern is None else context.catalog.databases.like(pattern)


def get_database(context: Context, args: Struct) -> Struct:
    """A database."""
    return to_thrift.database(context.catalog.databases.get(database_name(args.name)))


def get_database_req(context: Context, args: Struct) -> Struct:
    """A database, with what HMS 4.0.1 says of it besides."""
    of_catalog(args.request.catalogName)
    name = database_name(args.request.name)
    check_database(context, name)
    catalog_database = context.catalog.databases.get(name)
    sent = to_thrift.database(catalog_database)
    sent.type, sent.createTime = ttypes.DatabaseType.NATIVE, catalog_database.created or None
    return sent


def create_database(context: Context, args: Struct) -> None:
    """Create a database and its directory."""
    of_catalog(args.database.catalogName)
    database = from_thrift.database(args.database)
    with context.services.files.made([context.catalog.databases.new(database).location]):
        context.catalog.databases.create(database)


def alter_database(context: Context, args: Struct) -> None:
    """Replace a database's description, parameters, owner and location. Its tables stay where they are."""
    database = from_thrift.database(args.db)
    context.services.files.allow(database.location)
    context.catalog.databases.alter(database_name(args.dbname), database)


def drop_database(context: Context, args: Struct) -> None:
    """Drop a database; with ``cascade`` its tables, too."""
    _drop(context, args.name, args.cascade, args.deleteData)


def drop_database_req(context: Context, args: Struct) -> None:
    """Drop a database. ``ignoreUnknownDb`` is for the client to look at, as with HMS 4.0.1."""
    request = args.req
    of_catalog(request.catalogName)
    check_database(context, database_name(request.name))
    _drop(context, request.name, request.cascade, request.deleteData)


def get_catalogs(context: Context, args: Struct) -> Struct:
    """The names of the catalogs: one."""
    return ttypes.GetCatalogsResponse(names=[to_thrift.CATALOG])


def get_catalog(context: Context, args: Struct) -> Struct:
    """The catalog."""
    of_catalog(args.catName.name)
    location = context.catalog.databases.get("default").location
    value = ttypes.Catalog(name=to_thrift.CATALOG, description="Default catalog, for Hive", locationUri=location)
    return ttypes.GetCatalogResponse(catalog=value)


def get_dataconnectors(context: Context, args: Struct) -> list[str]:
    """The names of databases elsewhere: none."""
    return []


def check_database(context: Context, name: str) -> None:
    """Raises NoSuchObjectError with the words of HMS 4.0.1 for a database that there is not."""
    try:
        context.catalog.databases.get(name)
    except NoSuchObjectError as error:
        raise NoSuchObjectError(f"database {to_thrift.CATALOG}.{name}", do_next=error.do_next) from error


def _drop(context: Context, sent: str, cascade: bool | None, delete_data: bool | None) -> None:
    name, files = database_name(sent), context.services.files
    if not delete_data:
        context.catalog.databases.drop(name, cascade=bool(cascade))
        return
    location = context.catalog.databases.get(name).location
    entries = context.catalog.tables.named(name, context.catalog.tables.names(name)) if cascade else []
    claims = files.claims(context.catalog, _going(name, entries))
    for entry in entries:
        files.check(claims, entry.table, places(entry))
    dropped = context.catalog.databases.drop(name, cascade=bool(cascade))
    claims = files.claims(context.catalog, _going(name, dropped))
    for entry in dropped:
        files.delete_dropped(claims, entry.table, places(entry))
    files.delete_dropped(claims, None, [location])


def _going(name: str, entries: Sequence[TableEntry]) -> Removal:
    """What a database takes with it: the files of external tables stay."""
    managed = frozenset(entry.id for entry in entries if not is_external(entry.table))
    staying = tuple(place for entry in entries if is_external(entry.table) for place in places(entry))
    return Removal(managed, databases=frozenset([folded(name)]), kept=staying)


CALLS: dict[str, Handler] = {
    "get_all_databases": get_all_databases,
    "get_databases": get_databases,
    "get_database": get_database,
    "get_database_req": get_database_req,
    "create_database": create_database,
    "alter_database": alter_database,
    "drop_database": drop_database,
    "drop_database_req": drop_database_req,
    "get_catalogs": get_catalogs,
    "get_catalog": get_catalog,
    "get_dataconnectors": get_dataconnectors,
}
