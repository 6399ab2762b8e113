"""The paths of the catalog: databases, tables and their definitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from hudilake.errors import ConfigError
from lakemetastore.api import paths
from lakemetastore.api.base import ApiMessage
from lakemetastore.api.databases import ColumnWire, DefinitionWire, NamesWire
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.http.asked import PROBLEMS, After, Limit, Served
from lakemetastore.log.token import Token
from lakemetastore.model import Column

router: Final = APIRouter(tags=["catalog"], responses=PROBLEMS)


def catalog(served: Served) -> Catalog:
    """The catalog. Raises ConfigError if there is none."""
    if served.catalog is None:
        raise ConfigError("this service has no catalog", do_next="ask for lake tables by their location")
    return served.catalog


OfCatalog = Annotated[Catalog, Depends(catalog)]
AtLeast = Annotated[str | None, Query(max_length=500, description="The version that the answer must have.")]


@router.get(paths.DATABASES, response_model=NamesWire)
def databases(served: Served, of: OfCatalog, after: After = None, limit: Limit = None) -> Response:
    """The names of the databases."""
    return _json(_page(of.databases.names(), after, served.page(limit)))


@router.get(paths.TABLES, response_model=NamesWire)
def tables(served: Served, of: OfCatalog, database: str, after: After = None, limit: Limit = None) -> Response:
    """The names of a database's tables."""
    of.databases.get(database)
    return _json(_page(of.tables.names(database), after, served.page(limit)))


@router.get(paths.DEFINITION, response_model=DefinitionWire)
def definition(of: OfCatalog, database: str, table: str, at_least: AtLeast = None) -> Response:
    """A table's definition. The version is a token: with it, a later answer of any process is not older."""
    entry = of.tables.get(database, table, None if at_least is None else Token.parse(at_least))
    table_definition = entry.table
    return _json(
        DefinitionWire(
            database=table_definition.database,
            name=table_definition.name,
            kind=table_definition.kind,
            location=table_definition.location,
            columns=tuple(map(_column, table_definition.storage.columns)),
            partition_keys=tuple(map(_column, table_definition.partition_keys)),
            parameters=dict(table_definition.parameters),
            version=str(entry.token),
        )
    )


def _page(names: Iterable[str], after: str | None, limit: int) -> NamesWire:
    rest = sorted(name for name in names if after is None or name > after)
    page = tuple(rest[:limit])
    return NamesWire(names=page, after=page[-1] if len(rest) > limit else None)


def _column(column: Column) -> ColumnWire:
    return ColumnWire(name=column.name, type=column.type, comment=column.comment)


def _json(message: ApiMessage) -> Response:
    return Response(message.model_dump_json(), media_type="application/json")
