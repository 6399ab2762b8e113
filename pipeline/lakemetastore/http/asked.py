"""What a request names, and what the application has for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar, cast

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from hudilake.errors import ConfigError
from lakemetastore.api.base import ApiMessage, Problem
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.http.changes import ChangeWatch
from lakemetastore.http.open_tables import OpenTable, OpenTables, TableView
from lakemetastore.http.options import ServeOptions
from lakemetastore.http.registrations import Registrations

#: An answer's header with the state of the table that it shows.
STATE_HEADER = "Binlake-State"
#: What every path may answer besides.
PROBLEMS: dict[int | str, dict[str, object]] = {
    code: {"model": Problem} for code in (400, 404, 409, 410, 413, 422, 500, 503)
}
Instant = Annotated[str | None, Query(pattern=r"^[0-9]{17}$", description="An instant: 17 digits.")]
Limit = Annotated[
    int | None, Query(ge=1, description="The most items of the answer; the service has a limit of its own.")
]
After = Annotated[str | None, Query(description="Where the page begins: the value that the last answer gave.")]
A = TypeVar("A", bound=ApiMessage)


@dataclass(frozen=True)
class Application:
    """What requests are answered from. ``catalog``: None if lake tables are known by their location alone."""

    tables: OpenTables
    catalog: Catalog | None
    watch: ChangeWatch
    registrations: Registrations
    options: ServeOptions

    def page(self, limit: int | None) -> int:
        """The most items of an answer for which a client wants at most ``limit``."""
        return min(limit or self.options.page, self.options.page)

    def location(self, location: str | None, table: str | None) -> str:
        """Where the table of a request is. Raises ConfigError unless it is named once, CatalogError."""
        if location is not None and table is None:
            return location
        if table is None or location is not None:
            raise ConfigError("the request names no table, or two", do_next="give location, or table=database.table")
        if self.catalog is None:
            raise ConfigError("this service has no catalog", do_next="give location")
        database, dot, name = table.partition(".")
        if not dot:
            raise ConfigError("the table's name has no database", do_next="write database.table")
        table_location = self.catalog.tables.get(database, name).table.location
        if table_location is None:
            raise ConfigError("the table has no location", do_next="ask for a lake table", table=table)
        return table_location


def application(request: Request) -> Application:
    """The application of a request."""
    return cast(Application, request.app.state.application)


Served = Annotated[Application, Depends(application)]


@dataclass(frozen=True)
class TableRequest:
    """The table of a request, and how fresh it must be."""

    served: Application
    table: OpenTable
    max_age_ms: int
    at_least: str | None

    def answer(self, work: Callable[[TableView], A]) -> Response:
        """What ``work`` makes of the table."""
        with self.table.hold(self.max_age_ms, self.at_least) as view:
            return of_state(work(view), view.known.state)


def asked(
    served: Served,
    location: Annotated[str | None, Query(max_length=4096, description="The URI of the table's root.")] = None,
    table: Annotated[str | None, Query(max_length=512, description="database.table, in place of it.")] = None,
    max_age_ms: Annotated[
        int,
        Query(ge=0, le=3_600_000, description="The greatest age of the state in milliseconds; 0: compared just now."),
    ] = 0,
    at_least: Instant = None,
) -> TableRequest:
    """The table that a request names. Raises ConfigError, CatalogError."""
    return TableRequest(served, served.tables.at(served.location(location, table)), max_age_ms, at_least)


Named = Annotated[TableRequest, Depends(asked)]


def of_state(message: ApiMessage, state: str) -> Response:
    """An answer about a table in a state."""
    return Response(message.model_dump_json(), media_type="application/json", headers={STATE_HEADER: state})
