"""Functions that clients register."""

from __future__ import annotations

import re

from hive_metastore import ttypes

from hudilake.clock import now_ms
from lakemetastore.catalog.names import matching
from lakemetastore.errors import InvalidObjectError
from lakemetastore.hive.context import Context
from lakemetastore.hive.functions import Function
from lakemetastore.hive.generated import Struct
from lakemetastore.hive.methods import Handler
from lakemetastore.hive.names import database_name, of_catalog
from lakemetastore.hive.to_thrift import CATALOG

_NAME = re.compile(r"\w+", re.ASCII)


def get_functions(context: Context, args: Struct) -> list[str]:
    """The names of a database's functions that match a pattern."""
    database = database_name(args.dbName).lower()
    return matching([f.name for f in context.services.functions.all() if f.database == database], args.pattern)


def get_function(context: Context, args: Struct) -> Struct:
    """A function."""
    return _sent(context.services.functions.named(database_name(args.dbName), args.funcName))


def get_all_functions(context: Context, args: Struct) -> Struct:
    """All functions."""
    return ttypes.GetAllFunctionsResponse(functions=[_sent(f) for f in context.services.functions.all()])


def create_function(context: Context, args: Struct) -> None:
    """Register a function of a database that there is."""
    function = _received(args.func)
    if not _NAME.fullmatch(function.name):
        raise InvalidObjectError(f"{function.name} is not a valid object name", do_next="use letters, digits and _")
    context.catalog.databases.get(function.database)
    context.services.functions.create(function)


def alter_function(context: Context, args: Struct) -> None:
    """Replace a function's definition."""
    context.services.functions.alter(database_name(args.dbName), args.funcName, _received(args.newFunc))


def drop_function(context: Context, args: Struct) -> None:
    """Forget a function."""
    context.services.functions.drop(database_name(args.dbName), args.funcName)


def _received(f: Struct) -> Function:
    of_catalog(f.catName)
    return Function(
        database=database_name(f.dbName).lower(),
        name=(f.functionName or "").lower(),
        class_name=f.className or "",
        owner=f.ownerName,
        owner_type=f.ownerType,
        created=now_ms() // 1000,
        kind=f.functionType or ttypes.FunctionType.JAVA,
        resources=tuple((uri.resourceType or 0, uri.uri or "") for uri in f.resourceUris or ()),
    )


def _sent(f: Function) -> Struct:
    return ttypes.Function(
        functionName=f.name,
        dbName=f.database,
        className=f.class_name,
        ownerName=f.owner,
        ownerType=f.owner_type or ttypes.PrincipalType.USER,
        createTime=f.created,
        functionType=f.kind,
        resourceUris=[ttypes.ResourceUri(resourceType=kind, uri=uri) for kind, uri in f.resources],
        catName=CATALOG,
    )


CALLS: dict[str, Handler] = {
    "get_functions": get_functions,
    "get_function": get_function,
    "get_all_functions": get_all_functions,
    "create_function": create_function,
    "alter_function": alter_function,
    "drop_function": drop_function,
}
