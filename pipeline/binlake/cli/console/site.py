"""The application: which address is which page, what every answer carries, and what a page says of an error.

Rules of every answer: nothing from outside (Content-Security-Policy), no framing, no storing. A request that names
another host than those that the console is for is refused, so that no page of another site reaches it by a name of its
own (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from binlake.cli.console import lake_page
from binlake.cli.console.access import Access
from binlake.cli.console.action_routes import ActionRoutes, form_fields
from binlake.cli.console.completion_route import completion_route
from binlake.cli.console.metrics import rendered_metrics
from binlake.cli.console.origin_pages import lineage_page, quarantine_page
from binlake.cli.console.page import LEFT, Page, Site, static_files, templates
from binlake.cli.console.query_page import query_page
from binlake.cli.console.stream_page import stream_page
from binlake.cli.console.table_page import table_page
from hudilake.errors import LakeError

_log = logging.getLogger(__name__)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_EVENT_S, _PING_S = 0.5, 5.0
_STATUS = {"ConfigError": 404, "SettingsError": 404}
Answer = Callable[[Request], Awaitable[Response]]
#: Address -> the page.
PAGES: Mapping[str, Page] = {
    "/": lake_page.lake_page,
    "/table": table_page,
    "/stream": stream_page,
    "/query": query_page,
    "/quarantine": quarantine_page,
    "/lineage": lineage_page,
}
#: The pages that take a form too, since what they are asked may be too long for an address; and its most bytes.
LONG, LONG_BYTES = ("/query",), 1 << 20


class GuardedHeaders:
    """Puts the headers on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; one that a page of another site makes, other than by a plain link, is refused."""
        fetch = {name: value for name, value in scope.get("headers", ()) if name.startswith(b"sec-fetch-")}
        crossing = fetch.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
        if crossing and (scope["method"] != "GET" or scope["query_string"] or scope["path"] != "/"):
            scope = {**scope, "path": "/refused", "method": "GET"}

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name for name, _ in message["headers"]}
                more = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items() if k.lower().encode() not in known]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        await self._app(scope, receive, guarded)


def application(site: Site, hosts: Sequence[str], access: Access | None = None) -> Starlette:
    """The application of the console.

    Args:
        site: what it shows.
        hosts: the names by which it may be called; ``*`` for any.
        access: who may act; None lets nobody.
    """
    routes = [
        Route(path, _page(site, page), methods=["GET", "POST"] if path in LONG else ["GET"])
        for path, page in PAGES.items()
    ]
    routes += ActionRoutes(site, access or Access()).routes()
    routes += [
        Route("/complete", completion_route(site)),
        Route("/events", _events(site)),
        Route("/state.json", _state(site)),
        Route("/metrics", _metrics(site)),
        Route("/static/{name}", _static),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(GuardedHeaders),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
        ],
        exception_handlers={HTTPException: _refused, LakeError: _declined(site)},
    )


def _page(site: Site, page: Page) -> Answer:
    """Answers with a page; what it raises becomes words in its place."""
    declined = _declined(site)

    async def answer(request: Request) -> Response:
        asked = await form_fields(request, LONG_BYTES) if request.method == "POST" else request.query_params
        left = threading.Event()
        LEFT.set(left)  # the thread gets a copy of this context
        waiting = asyncio.create_task(_note_leaving(request, left))
        try:
            body = await asyncio.to_thread(page, site, asked)
        except LakeError as error:
            return await declined(request, error)
        except Exception as error:
            return await _unexpected(request, error)
        finally:
            waiting.cancel()
        return HTMLResponse(body)

    return answer


async def _note_leaving(request: Request, left: threading.Event) -> None:
    """Set an event when the browser does not wait any more."""
    while not await request.is_disconnected():
        await asyncio.sleep(_EVENT_S)
    left.set()


def _declined(site: Site) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Answers with the words of an error that was raised on purpose."""

    async def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, LakeError)
        status = _STATUS.get(type(error).__name__, 502)
        return HTMLResponse(_error_text(site, error.what, error.do_next or "", error.where), status)

    return answer


def _error_text(site: Site | None, what: str, do_next: str, where: Mapping[str, object]) -> str:
    place = {name: str(value) for name, value in where.items()}
    values = {"site": site, "page": "", "what": what, "do_next": do_next, "where": place}
    return templates().get_template("error.html").render(values)


async def _refused(request: Request, error: Exception) -> Response:
    """An address that is none of the console's, or a request that it does not take."""
    status = error.status_code if isinstance(error, HTTPException) else 400
    words = error.detail if isinstance(error, HTTPException) else str(error)
    return HTMLResponse(_error_text(None, words, "the lake page leads to all others", {}), status)


async def _unexpected(request: Request, error: Exception) -> Response:
    _log.error("a page failed", exc_info=error, extra={"event": "page_failed", "path": request.url.path})
    words = f"unexpected {type(error).__name__}"
    return HTMLResponse(_error_text(None, words, "report it with the traceback in the console's log", {}), 500)


async def _static(request: Request) -> Response:
    known = static_files().get(request.path_params["name"])
    if known is None:
        raise HTTPException(404, "there is no such file")
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(known.body, media_type=known.media_type, headers=kept)


def _events(site: Site) -> Answer:
    """Server-sent events: the sum of the views' versions, whenever it has changed."""

    async def lines(request: Request) -> AsyncIterator[str]:
        last, silent_s = -1, 0.0
        while not site.ended.is_set() and not await request.is_disconnected():
            version = sum(watch.view.version for watch in site.watches.values())
            if version != last and silent_s >= _EVENT_S:
                yield f"data: {version}\n\n"
                last, silent_s = version, 0.0
            await asyncio.sleep(_EVENT_S)
            silent_s += _EVENT_S

    async def answer(request: Request) -> Response:
        return StreamingResponse(lines(request), media_type="text/event-stream")

    return answer


def _metrics(site: Site) -> Answer:
    async def answer(request: Request) -> Response:
        text = rendered_metrics([watch.view for watch in site.watches.values()])
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return answer


def _state(site: Site) -> Answer:
    """What the views say, for programs."""

    async def answer(request: Request) -> Response:
        return JSONResponse([lake_page.plain(watch.view) for watch in site.watches.values()])

    return answer
