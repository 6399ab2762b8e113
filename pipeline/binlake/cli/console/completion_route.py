"""Answers what may stand at a place of an SQL field: ``/complete``, for the script of the pages.

Table names come from the last look; the columns of a table are read when a text names it, and kept until it changes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from binlake.cli.console.completion import Completion, KnownTables, completion, written_table
from binlake.cli.console.looked import LookedTable, TimelineMark
from binlake.cli.console.page import Asked, Site
from binlake.cli.console.watch import StreamWatch
from binlake.cli.text import one_line
from hudilake.errors import ConfigError, LakeError
from hudilake.read.slice import readable_schema
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable

_KEPT = 500


class Completer:
    """The completion of one site. Its methods may be called by any thread."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._schemas: dict[tuple[str, str], tuple[TimelineMark, pa.Schema]] = {}

    def of(self, asked: Asked) -> Completion:
        """The proposals; they are whole if the watch has seen all tables. Raises ConfigError.

        ``asked``: ``stream``; ``before`` and ``after`` the place; ``table``, if the text is a condition on one table.
        """
        watch = self._site.watch(asked)
        view = watch.view
        tables = {one.name: one for one in view.tables.values()}
        known = KnownTables(sorted(tables), lambda name: self._schema(watch, tables[name]))
        before, table = asked.get("before", ""), asked.get("table", "")
        if table:
            before = f"select * from {written_table(table)} where {before}"  # noqa: S608 - quoted, and not run
        whole = view.stream is not None and not view.unseen
        return replace(completion(before, asked.get("after", ""), known), whole=whole)

    def _schema(self, watch: StreamWatch, table: LookedTable) -> pa.Schema | None:
        key = (watch.settings.name, table.path)
        with self._lock:
            known = self._schemas.get(key)
        if known is not None and known[0] == table.mark:
            return known[1]
        lake = watch.settings.lake
        try:
            root = open_storage(lake.uri, lake.storage_options())
            schema = readable_schema(HudiTable.open(root.sub(table.path)), None)
        except LakeError:  # a run of the query says why
            return None
        if table.mark is not None:  # else nothing would say that it has changed
            with self._lock:
                if len(self._schemas) >= _KEPT:
                    self._schemas.clear()
                self._schemas[key] = (table.mark, schema)
        return schema


def completion_route(site: Site) -> Callable[[Request], Awaitable[Response]]:
    """The answers: the word that a proposal replaces, and the proposals, as they are written and as they are shown;
    and whether they are ``whole``: before the first look has ended, the script asks again."""
    completer = Completer(site)

    async def answer(request: Request) -> Response:
        try:
            done = await asyncio.to_thread(completer.of, request.query_params)
        except ConfigError as error:
            return JSONResponse({"what": error.what}, 404)
        proposals = [
            {"text": one.text, "shown": one_line(one.text), "kind": one.kind, "detail": one_line(one.detail)}
            for one in done.proposals
        ]
        return JSONResponse({"word": done.word, "proposals": proposals, "whole": done.whole})

    return answer
