"""The paths of lake tables: state, instants, partitions, file slices, column ranges, schema and plans."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import Response

from hudilake.errors import TransientError
from lakemetastore.api import paths
from lakemetastore.api.conversions import instant_to, table_to
from lakemetastore.api.tables import (
    InstantsWire,
    PartitionsWire,
    PlanAnswer,
    PlanRequest,
    RangesWire,
    SchemaWire,
    SlicesWire,
    TableWire,
)
from lakemetastore.http import lake_answers
from lakemetastore.http.asked import PROBLEMS, After, Instant, Limit, Named, of_state
from lakemetastore.http.open_tables import TableView

_PLAN_ATTEMPTS: Final = 3
router: Final = APIRouter(tags=["lake tables"], responses=PROBLEMS)


@router.get(paths.TABLE, response_model=TableWire)
def table(of: Named) -> Response:
    """A table's properties, columns and active timeline."""
    return of.answer(lambda view: table_to(of.table.storage.uri, view.known))


@router.get(paths.INSTANTS, response_model=InstantsWire)
def instants(of: Named, after: After = None, limit: Limit = None) -> Response:
    """The instants of the active timeline by requested time, pending ones included."""

    def work(view: TableView) -> InstantsWire:
        rest = [i for i in view.known.instants if after is None or i.requested_time > after]
        size = of.served.page(limit)
        shown = tuple(map(instant_to, rest[:size]))
        return InstantsWire(state=view.known.state, instants=shown, more=len(rest) > size)

    return of.answer(work)


@router.get(paths.PARTITIONS, response_model=PartitionsWire)
def partitions(of: Named, after: After = None, limit: Limit = None) -> Response:
    """The partition paths."""
    return of.answer(lambda view: lake_answers.partitions(view, after, of.served.page(limit)))


@router.get(paths.SLICES, response_model=SlicesWire)
def slices(of: Named, partition: str = "", as_of: Instant = None, after: After = None, limit: Limit = None) -> Response:
    """The file slices of a partition, now or as of an instant."""
    return of.answer(lambda view: lake_answers.slices(view, partition, as_of, after, of.served.page(limit)))


@router.get(paths.RANGES, response_model=RangesWire)
def ranges(
    of: Named,
    column: Annotated[list[str], Query(max_length=100)],
    partition: str = "",
    after: After = None,
    limit: Limit = None,
) -> Response:
    """The ranges of columns in the files of a partition."""
    return of.answer(lambda view: lake_answers.ranges(view, partition, column, after, of.served.page(limit)))


@router.get(paths.SCHEMA, response_model=SchemaWire)
def schema(of: Named, as_of: Instant = None) -> Response:
    """The columns, now or as of an instant."""
    return of.answer(lambda view: lake_answers.schema(view, as_of))


@router.post(paths.PLAN, response_model=PlanAnswer)
def plan(of: Named, request: PlanRequest) -> Response:
    """The file slices that may hold rows that pass a condition."""
    for _ in range(_PLAN_ATTEMPTS):
        with of.table.hold(of.max_age_ms, of.at_least) as view:
            answer = lake_answers.plan(view, of.table.storage.uri, request, of.served.options.page)
            if answer is not None:
                return of_state(answer, answer.state)
    raise TransientError("the table was cleaned during each attempt to plan", do_next="ask again")
