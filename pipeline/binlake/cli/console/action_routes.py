"""The addresses that change something: sign in, see an action's plan, confirm it; and the list of all actions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from binlake.cli.console.access import COOKIE, Access
from binlake.cli.console.actions import ActionLog, command_of, kind_of, plan_of
from binlake.cli.console.lake_page import lake_row
from binlake.cli.console.page import Site, address, rendered

#: Bytes of a form, and seconds that a wrong token costs.
_FORM_BYTES, _WRONG_S = 16_384, 1.0
Answer = Callable[[Request], Awaitable[Response]]


class ActionRoutes:
    """The routes of a site.

    Args:
        site: what the console shows.
        access: who may act.
    """

    def __init__(self, site: Site, access: Access) -> None:
        self._site, self._access = site, access
        self.logs = {name: ActionLog(watch.settings, watch.conf) for name, watch in site.watches.items()}

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/actions", self._listed),
            Route("/action", self._planned),
            Route("/action", self._confirmed, methods=["POST"]),
            Route("/sign-in", self._sign_in, methods=["POST"]),
            Route("/sign-out", self._sign_out, methods=["POST"]),
        ]

    async def _listed(self, request: Request) -> Response:
        """All actions of a stream, and the way to sign in."""
        watch = self._site.watch(request.query_params)
        records = await asyncio.to_thread(self.logs[watch.settings.name].newest)
        return self._page(request, "actions.html", stream=watch.settings.name, records=records)

    async def _planned(self, request: Request) -> Response:
        """What an action would do, and its command; a session may confirm it."""
        asked = request.query_params
        watch, looked = self._site.table(asked)
        action = asked.get("action", "")
        kind = kind_of(action, watch.settings)
        command = command_of(kind, watch.conf, looked.name)
        plan = ""
        if self._access.session(request.cookies) is not None:
            plan = await asyncio.to_thread(plan_of, kind, watch.conf, looked.name)
        return self._page(
            request,
            "action.html",
            stream=watch.settings.name,
            action=action,
            kind=kind,
            row=lake_row(watch.view, watch.settings, looked),
            command=" ".join(("binlake", *command)),
            plan=plan.splitlines(),
        )

    async def _confirmed(self, request: Request) -> Response:
        """Begin an action, if the form comes from a session's page."""
        form = await form_fields(request)
        if not self._access.permits(request.cookies, form):
            raise HTTPException(
                403, "this form was sent before, or nobody is signed in: open the plan anew, or sign in"
            )
        watch, looked = self._site.table(form)
        by = request.client.host if request.client is not None else "unknown"
        log = self.logs[watch.settings.name]
        await asyncio.to_thread(log.begin, form.get("action", ""), looked.name, by)
        return RedirectResponse(address("/actions", stream=watch.settings.name), 303)

    async def _sign_in(self, request: Request) -> Response:
        form = await form_fields(request)
        name = self._access.sign_in(form.get("token", ""))
        if name is None:
            await asyncio.sleep(_WRONG_S)
            raise HTTPException(403, "this is not the console's token")
        answer = RedirectResponse("/actions", 303)
        answer.set_cookie(COOKIE, name, httponly=True, samesite="strict", secure=request.url.scheme == "https")
        return answer

    async def _sign_out(self, request: Request) -> Response:
        if self._access.permits(request.cookies, await form_fields(request)):
            self._access.sign_out(request.cookies)
        return RedirectResponse("/actions", 303)

    def _page(self, request: Request, template: str, **values: object) -> Response:
        session = self._access.session(request.cookies)
        more = {"possible": self._access.possible, "key": session.form_key if session is not None else ""}
        return HTMLResponse(rendered(template, self._site, "actions", **more, **values))


async def form_fields(request: Request, most_bytes: int = _FORM_BYTES) -> Mapping[str, str]:
    """The fields of a form. Raises HTTPException for one that is too large, is none, or another site's."""
    body, origin = b"", urlsplit(request.headers.get("origin", "")).hostname
    if origin not in (None, request.url.hostname):  # a page that sends no referrer, as these do, has no origin
        raise HTTPException(403, "this form comes from a page of another site")
    try:
        async for part in request.stream():
            body += part
            if len(body) > most_bytes:
                raise HTTPException(413, f"the form is larger than {most_bytes:,} bytes")
    except ClientDisconnect as error:  # nobody is left to be answered, and it is no error of the console
        raise HTTPException(400, "the form was not sent whole") from error
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise HTTPException(415, "this takes forms alone")
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
