"""The paths of changes: what completed since a time, and the instants that writers register."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Query
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from lakemetastore.api import paths
from lakemetastore.api.tables import ChangesWire, RegistrationReply, RegistrationRequest
from lakemetastore.http import lake_answers
from lakemetastore.http.asked import PROBLEMS, Limit, Named, Served, of_state
from lakemetastore.http.changes import WaitingClient

_ANY_AGE_MS: Final = 3_600_000
router: Final = APIRouter(tags=["changes"], responses=PROBLEMS)


@router.get(paths.CHANGES, response_model=ChangesWire)
async def changes(
    of: Named,
    since: Annotated[str, Query(pattern=r"^([0-9]{17})?$", description="A completion time; empty: all.")] = "",
    wait_ms: Annotated[int, Query(ge=0, description="How long to wait for a change, if there is none.")] = 0,
    limit: Limit = None,
) -> Response:
    """What completed after a time. With ``wait_ms``, the answer comes with the first change."""

    def look(max_age_ms: int) -> ChangesWire:
        with of.table.hold(max_age_ms, of.at_least) as view:
            return lake_answers.changes(view, since, of.served.page(limit))

    def state() -> str:
        with of.table.hold() as view:
            return view.known.state

    answer = await run_in_threadpool(look, of.max_age_ms)
    if wait_ms and not answer.changes:
        waiting = WaitingClient(of.table.storage.uri, partial(look, _ANY_AGE_MS), state, answer)
        answer = await of.served.watch.wait(waiting, min(wait_ms, of.served.options.wait_ms))
    return of_state(answer, answer.state)


@router.post(paths.INSTANTS, response_model=RegistrationReply)
async def register(served: Served, request: RegistrationRequest) -> Response:
    """Tell the service of an instant that completed. The same one twice is one."""
    table = served.tables.at(request.location)
    answer = await run_in_threadpool(served.registrations.take, table, request)
    served.watch.tell(table.storage.uri)
    return of_state(answer, answer.state)
