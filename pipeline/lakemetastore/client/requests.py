"""Requests to a metastore's HTTP API: an address list, failover, timeouts, and a pause after a failure.

An address that does not answer is asked again after a pause; meanwhile the others are asked. If none is left, a
request fails at once, so that a metastore that is down costs its caller one timeout a pause.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeVar
from urllib.parse import urlencode, urlsplit

import urllib3
from pydantic import ValidationError

from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, LakeError, TransientError
from lakemetastore.api.base import ApiMessage, Problem

#: The largest answer that is read, in bytes.
MAX_ANSWER_BYTES: Final = 256 << 20
_CHUNK = 1 << 20
_UNAVAILABLE = (502, 503, 504)
M = TypeVar("M", bound=ApiMessage)


class MetastoreUnreachableError(TransientError):
    """No address of the metastore answers."""


class RefusedRequestError(LakeError):
    """The metastore cannot carry the request out. ``status``: the HTTP status."""

    def __init__(self, problem: Problem, status: int, address: str) -> None:
        super().__init__(problem.what, do_next=problem.do_next, **{**problem.where, "metastore": address})
        self.status = status


def addresses_of(uris: str | Sequence[str]) -> tuple[str, ...]:
    """The addresses of a comma-separated list, without trailing slashes. Raises ConfigError."""
    given = uris.split(",") if isinstance(uris, str) else uris
    addresses = tuple(address for uri in given if (address := uri.strip().rstrip("/")))
    wrong = [uri for uri in addresses if urlsplit(uri).scheme not in ("http", "https") or not urlsplit(uri).hostname]
    if wrong or not addresses:
        raise ConfigError(
            f"{wrong[0] if wrong else uris!r} is no address of a metastore's HTTP API",
            do_next="write http://host:port or https://host:port, several with commas between them",
        )
    return addresses


class MetastoreClient:
    """Asks the addresses of a metastore. Safe to use from several threads.

    Args:
        uris: the address list.
        timeout_s: of connecting, and of waiting for an answer.
        pause_s: how long an address that failed is left alone.
        ca_file: the authorities of its certificate; None for the system's.
    """

    def __init__(
        self, uris: str | Sequence[str], timeout_s: float = 5.0, pause_s: float = 10.0, ca_file: str | None = None
    ) -> None:
        self.addresses = addresses_of(uris)
        self._timeout_s, self._pause_s, self._ca_file = timeout_s, pause_s, ca_file
        self._guard = threading.Lock()
        self._asleep: dict[str, float] = {}
        self._first = 0
        context = ssl.create_default_context(cafile=ca_file)
        self._pool = urllib3.PoolManager(maxsize=8, retries=False, ssl_context=context)

    def __reduce__(self) -> tuple[type[MetastoreClient], tuple[tuple[str, ...], float, float, str | None]]:
        """Another process opens connections of its own."""
        return type(self), (self.addresses, self._timeout_s, self._pause_s, self._ca_file)

    def ask(
        self,
        method: Literal["GET", "POST"],
        path: str,
        answer: type[M],
        fields: Mapping[str, str] | None = None,
        body: ApiMessage | None = None,
        wait_s: float = 0.0,
    ) -> M:
        """The answer of the first address that gives one.

        Args:
            method: all requests may be repeated.
            path: with the leading slash.
            answer: the type of the answer.
            fields: of the query string.
            body: sent as JSON.
            wait_s: how long the server may wait before it answers, on top of the timeout.

        Raises MetastoreUnreachableError, RefusedRequestError, TransientError for an answer that is not understood.
        """
        troubles: list[str] = []
        for address in self._awake():
            try:
                status, data = self._send(method, address + path, fields, body, wait_s)
            except (urllib3.exceptions.HTTPError, OSError) as error:
                troubles.append(f"{address}: {error}")
                self._rest(address)
                continue
            if status in _UNAVAILABLE:
                troubles.append(f"{address}: {_problem(data, status).what}")
                continue
            self._wake(address)
            if status != 200:
                raise RefusedRequestError(_problem(data, status), status, address)
            return _understood(data, answer, address)
        raise MetastoreUnreachableError(
            f"the metastore does not answer: {'; '.join(troubles) or 'all addresses failed a moment ago'}",
            do_next="see that it runs, and that its addresses are right",
            metastore=",".join(self.addresses),
        )

    def _send(
        self, method: str, url: str, fields: Mapping[str, str] | None, body: ApiMessage | None, wait_s: float
    ) -> tuple[int, bytes]:
        text = None if body is None else body.model_dump_json().encode()
        query = "?" + urlencode(fields) if fields else ""
        response = self._pool.request(
            method,
            url + query,
            body=text,
            headers={"Accept": "application/json", **({"Content-Type": "application/json"} if text else {})},
            timeout=urllib3.Timeout(connect=self._timeout_s, read=self._timeout_s + wait_s),
            redirect=False,
            preload_content=False,
        )
        try:
            return response.status, _bounded(response)
        finally:
            response.release_conn()

    def _awake(self) -> list[str]:
        """The addresses to ask, the one that answered last first."""
        now = monotonic_s()
        with self._guard:
            ordered = self.addresses[self._first :] + self.addresses[: self._first]
            return [address for address in ordered if self._asleep.get(address, 0.0) <= now]

    def _rest(self, address: str) -> None:
        with self._guard:
            self._asleep[address] = monotonic_s() + self._pause_s

    def _wake(self, address: str) -> None:
        with self._guard:
            self._asleep.pop(address, None)
            self._first = self.addresses.index(address)


def _bounded(response: urllib3.BaseHTTPResponse) -> bytes:
    chunks, size = [], 0
    for chunk in response.stream(_CHUNK):
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            response.close()
            raise urllib3.exceptions.HTTPError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _problem(data: bytes, status: int) -> Problem:
    try:
        return Problem.model_validate_json(data)
    except ValidationError:
        return Problem(error="HTTP", what=f"HTTP status {status}")


def _understood(data: bytes, answer: type[M], address: str) -> M:
    try:
        return answer.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise TransientError(
            f"the metastore's answer is not understood: {'.'.join(map(str, first['loc']))}: {first['msg']}",
            do_next="see that the address is that of a binlake metastore of this version",
            metastore=address,
        ) from error
