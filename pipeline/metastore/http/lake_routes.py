"""The paths of lake tables: state, partitions, file slices, plans, schema, column ranges, instants and changes."""

# Annotations are evaluated here, not kept as text: FastAPI looks them up, and one of them is local to a function.
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from pipeline.errors import ConfigError, TransientError
from pipeline.metastore.api import paths
from pipeline.metastore.api.base import Message, Problem
from pipeline.metastore.api.conversions import instant_to, table_to
from pipeline.metastore.api.tables import (
    ChangesWire,
    InstantsWire,
    PartitionsWire,
    PlanAnswer,
    PlanRequest,
    RangesWire,
    Registered,
    Registration,
    SchemaWire,
    SlicesWire,
    TableWire,
)
from pipeline.metastore.catalog.catalog import Catalog
from pipeline.metastore.http import lake_answers
from pipeline.metastore.http.changes import ChangeWatch, Waiting
from pipeline.metastore.http.open_tables import OpenTable, OpenTables, View
from pipeline.metastore.http.options import ServeOptions
from pipeline.metastore.http.registrations import Registrations

#: An answer's header with the state of the table that it shows.
STATE_HEADER = "Binlake-State"
_PLAN_ATTEMPTS = 3
_ANY_AGE_MS = 3_600_000
Instant = Annotated[str, Query(pattern=r"^[0-9]{17}$", description="An instant: 17 digits.")]
MaxAge = Annotated[
    int, Query(ge=0, le=3_600_000, description="The greatest age of the state in milliseconds; 0: compared just now.")
]
Limit = Annotated[int, Query(ge=1, description="The most items of the answer; the service has a limit of its own.")]
After = Annotated[str | None, Query(description="Where the page begins: the value that the last answer gave.")]
A = TypeVar("A", bound=Message)
PROBLEMS: dict[int | str, dict[str, object]] = {
    code: {"model": Problem} for code in (400, 404, 409, 410, 413, 422, 500, 503)
}


@dataclass(frozen=True)
class Asked:
    """The table of a request, and how fresh it must be."""

    table: OpenTable
    max_age_ms: int
    at_least: str | None

    def answer(self, work: Callable[[View], A]) -> Response:
        """What ``work`` makes of the table."""
        with self.table.hold(self.max_age_ms, self.at_least) as view:
            made = work(view)
            return _json(made, view.known.state)


def _json(message: Message, state: str) -> Response:
    return Response(message.model_dump_json(), media_type="application/json", headers={STATE_HEADER: state})


def lake_routes(
    tables: OpenTables, catalog: Catalog | None, watch: ChangeWatch, register: Registrations, options: ServeOptions
) -> APIRouter:
    """The routes. ``catalog``: for tables that are named by database and name."""
    router = APIRouter(tags=["lake tables"], responses=PROBLEMS)
    page = options.page

    def asked(
        location: Annotated[str | None, Query(max_length=4096, description="The URI of the table's root.")] = None,
        table: Annotated[str | None, Query(max_length=512, description="database.table, in place of it.")] = None,
        max_age_ms: MaxAge = 0,
        at_least: Annotated[
            str | None, Query(pattern=r"^[0-9]{17}$", description="An instant that the answer must have.")
        ] = None,
    ) -> Asked:
        return Asked(tables.at(_location(location, table, catalog)), max_age_ms, at_least)

    Named = Annotated[Asked, Depends(asked)]

    @router.get(paths.TABLE, response_model=TableWire)
    def table(of: Named) -> Response:
        """A table's properties, columns and active timeline."""
        return of.answer(lambda view: table_to(of.table.storage.uri, view.known))

    @router.get(paths.INSTANTS, response_model=InstantsWire)
    def instants(of: Named, after: After = None, limit: Limit = page) -> Response:
        """The instants of the active timeline by requested time, pending ones included."""

        def work(view: View) -> InstantsWire:
            rest = [i for i in view.known.instants if after is None or i.requested_time > after]
            size = min(limit, page)
            shown = tuple(map(instant_to, rest[:size]))
            return InstantsWire(state=view.known.state, instants=shown, more=len(rest) > size)

        return of.answer(work)

    @router.get(paths.PARTITIONS, response_model=PartitionsWire)
    def partitions(of: Named, after: After = None, limit: Limit = page) -> Response:
        """The partition paths."""
        return of.answer(lambda view: lake_answers.partitions(view, after, min(limit, page)))

    @router.get(paths.SLICES, response_model=SlicesWire)
    def slices(
        of: Named, partition: str = "", as_of: Instant | None = None, after: After = None, limit: Limit = page
    ) -> Response:
        """The file slices of a partition, now or as of an instant."""
        return of.answer(lambda view: lake_answers.slices(view, partition, as_of, after, min(limit, page)))

    @router.get(paths.RANGES, response_model=RangesWire)
    def ranges(
        of: Named,
        column: Annotated[list[str], Query(max_length=100)],
        partition: str = "",
        after: After = None,
        limit: Limit = page,
    ) -> Response:
        """The ranges of columns in the files of a partition."""
        return of.answer(lambda view: lake_answers.ranges(view, partition, column, after, min(limit, page)))

    @router.get(paths.SCHEMA, response_model=SchemaWire)
    def schema(of: Named, as_of: Instant | None = None) -> Response:
        """The columns, now or as of an instant."""
        return of.answer(lambda view: lake_answers.schema(view, as_of))

    @router.post(paths.PLAN, response_model=PlanAnswer)
    def plan(of: Named, request: PlanRequest) -> Response:
        """The file slices that may hold rows that pass a condition."""
        for _ in range(_PLAN_ATTEMPTS):
            with of.table.hold(of.max_age_ms, of.at_least) as view:
                found = lake_answers.plan(view, of.table.storage.uri, request, page)
                if found is not None:
                    return _json(found, found.state)
        raise TransientError("the table was cleaned during each attempt to plan", do_next="ask again")

    @router.get(paths.CHANGES, response_model=ChangesWire)
    async def changes(
        of: Named,
        since: Annotated[str, Query(pattern=r"^([0-9]{17})?$", description="A completion time; empty: all.")] = "",
        wait_ms: Annotated[int, Query(ge=0, description="How long to wait for a change, if there is none.")] = 0,
        limit: Limit = page,
    ) -> Response:
        """What completed after a time. With ``wait_ms``, the answer comes with the first change."""
        size = min(limit, page)

        def look(max_age_ms: int) -> ChangesWire:
            with of.table.hold(max_age_ms, of.at_least) as view:
                return lake_answers.changes(view, since, size)

        def state() -> str:
            with of.table.hold() as view:
                return view.known.state

        found = await run_in_threadpool(look, of.max_age_ms)
        if wait_ms and not found.changes:
            again = partial(look, max_age_ms=_ANY_AGE_MS)
            waiting = Waiting(of.table.storage.uri, again, state, found)
            found = await watch.wait(waiting, min(wait_ms, options.wait_ms))
        return _json(found, found.state)

    @router.post(paths.INSTANTS, response_model=Registered)
    async def registered(request: Registration) -> Response:
        """Tell the service of an instant that completed. The same one twice is one."""
        opened = tables.at(request.location)
        answer = await run_in_threadpool(register.take, opened, request)
        watch.tell(opened.storage.uri)
        return _json(answer, answer.state)

    return router


def _location(location: str | None, table: str | None, catalog: Catalog | None) -> str:
    if location is not None and table is None:
        return location
    if table is None or location is not None:
        raise ConfigError("the request names no table, or two", do_next="give location, or table=database.table")
    if catalog is None:
        raise ConfigError("this service has no catalog", do_next="give location")
    database, dot, name = table.partition(".")
    if not dot:
        raise ConfigError("the table's name has no database", do_next="write database.table")
    found = catalog.table(database, name).table.location
    if found is None:
        raise ConfigError("the table has no location", do_next="ask for a lake table", table=table)
    return found
