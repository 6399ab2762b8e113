"""Errors as HTTP answers: the status says whose fault it is, the body has the error's words."""

from __future__ import annotations

import logging
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from hudilake.errors import BadInputError, ConfigError, CorruptDataError, LakeError, TransientError, UnsupportedError
from hudilake.read.source import WrongAnswerError
from lakemetastore.api.base import Problem
from lakemetastore.errors import CatalogError, NoSuchObjectError, UnknownDatabaseError, UnknownTableError
from lakemetastore.http.open_tables import NotSeenError

_log = logging.getLogger(__name__)


class GoneError(LakeError):
    """What is asked for is not kept any more."""


#: The first class that an error is of counts.
_STATUS: Final[tuple[tuple[type[LakeError], int], ...]] = (
    (NoSuchObjectError, 404),
    (UnknownDatabaseError, 404),
    (UnknownTableError, 404),
    (CatalogError, 400),
    (NotSeenError, 409),
    (GoneError, 410),
    (WrongAnswerError, 400),
    (ConfigError, 400),
    (BadInputError, 400),
    (UnsupportedError, 422),
    (CorruptDataError, 500),
    (TransientError, 503),
)


def status_of(error: LakeError) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def problem_of(error: LakeError) -> Problem:
    """The body of an error's answer."""
    where = {name: str(value) for name, value in error.where.items()}
    return Problem(error=type(error).__name__, what=error.what, where=where, do_next=error.do_next)


def handle_errors(app: FastAPI) -> None:
    """Answer every error with a problem."""

    @app.exception_handler(LakeError)
    def known(request: Request, error: LakeError) -> Response:
        status = status_of(error)
        if status >= 500:
            _log.warning("%s failed: %s", request.url.path, error, extra={"event": "http_failed"})
        return _answer(status, problem_of(error))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return _answer(422, Problem(error="InvalidRequest", what=f"{place}: {first['msg']}"))

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        return _answer(error.status_code, Problem(error="InvalidRequest", what=str(error.detail)))

    @app.exception_handler(Exception)
    def unknown(request: Request, error: Exception) -> Response:
        _log.error("%s failed: %r", request.url.path, error, exc_info=error, extra={"event": "http_failed"})
        return _answer(500, Problem(error=type(error).__name__, what="the service has a defect; its log says more"))


def _answer(status: int, problem: Problem) -> Response:
    return JSONResponse(problem.model_dump(), status_code=status)
