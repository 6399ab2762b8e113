"""One client of the router: its connections to the backends, and where each of its calls goes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hive_metastore import ThriftHiveMetastore as Hive

from lakemetastore.hive.message import decode, encode, head, unknown_method
from lakemetastore.hive.session import Session
from lakemetastore.hive.wire import CALL, ThriftMessage
from lakemetastore.router.errors import BackendDownError, OutcomeUnknownError, RefusedCallError
from lakemetastore.router.links import Backend, InProcess, InProcessLink, Link, ThriftLink, outcome_unknown
from lakemetastore.router.merged import MergedListing
from lakemetastore.router.methods import METHODS, MethodRoute, Route
from lakemetastore.router.older import is_unknown_method, newer_reply, older_request
from lakemetastore.router.renamed import as_seen, names_databases
from lakemetastore.router.replies import body_of, refusal
from lakemetastore.router.requests import REFUSED, RequestNames, for_backend, names_of
from lakemetastore.router.rules import Rules
from lakemetastore.router.walker import MalformedAnswerError


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What became of a call: the reply, the backend that gave it (``-``: none), and ``ok``, ``refused`` or ``down``."""

    reply: bytes | Iterable[bytes] | None
    backend: str = "-"
    outcome: str = "ok"


class Client:
    """Used by the thread of its connection only."""

    def __init__(
        self,
        session: Session,
        rules: Rules,
        backends: Mapping[str, Backend],
        primary: str,
        in_process: InProcess | None,
    ) -> None:
        self._session = session
        self._rules = rules
        self._backends = backends
        self._primary = primary
        self._in_process = in_process
        self._links: dict[str, Link] = {}
        self._greetings: dict[str, ThriftMessage] = {}

    def handle(self, request: ThriftMessage) -> CallOutcome:
        """Route a call. Backends that are down and calls that are refused give a reply that says so."""
        method = METHODS.get(request.name)
        if method is None:
            return CallOutcome(unknown_method(request.name, request.sequence), outcome="refused")
        try:
            return self._handle(request, method)
        except RefusedCallError as error:
            return CallOutcome(refusal(request, error), outcome="refused")
        except (BackendDownError, OutcomeUnknownError, MalformedAnswerError) as error:
            return CallOutcome(refusal(request, RefusedCallError(str(error), REFUSED)), outcome="down")

    def databases(self, backend: str) -> Sequence[str]:
        """The databases of a backend by its own names. Raises BackendDownError."""
        name = "get_all_databases"
        start = head(name, CALL, 0)
        request = ThriftMessage(name, CALL, 0, start + encode(Hive.get_all_databases_args()), len(start))
        result = decode(body_of(self._whole(backend, request)), Hive.get_all_databases_result)
        return result.success or ()

    def close(self) -> None:
        """Let all connections go."""
        for link in self._links.values():
            link.close()

    def _handle(self, request: ThriftMessage, method: MethodRoute) -> CallOutcome:
        if method.route is Route.MERGED:
            return CallOutcome(self._merged(request))
        if method.route is Route.EVERY:
            return CallOutcome(self._every(request), self._primary)
        if method.route is Route.SESSION:
            self.close()
            return CallOutcome(None)
        names = names_of(request, self._rules)
        backend = self._backend_of(names, method)
        return CallOutcome(self._passed_on(backend, for_backend(request, names, backend), method), backend)

    def _backend_of(self, names: RequestNames, method: MethodRoute) -> str:
        """The backend of a call that goes to one.

        Raises:
            RefusedCallError: there is none, or it must not be changed.
        """
        if names.foreign or not names.names or method.route is Route.PRIMARY:
            if method.writes and self._backends[self._primary].settings.read_only:
                raise RefusedCallError(f"The metastore {self._primary} is read-only", REFUSED)
            return self._primary
        places = names.places
        backends = sorted({place.backend for place in places})
        if len(backends) > 1:
            raise RefusedCallError(f"The call names databases of several metastores: {', '.join(backends)}", REFUSED)
        if method.route is Route.PRIMARY_ONLY and backends[0] != self._primary:
            raise RefusedCallError(
                f"Transactions and notifications are those of the metastore {self._primary}; database "
                f"{places[0].seen} is in {backends[0]}",
                REFUSED,
            )
        for place in places:
            if method.writes and place.read_only:
                raise RefusedCallError(f"Database {place.seen} is read-only here", REFUSED)
        return backends[0]

    def _passed_on(self, backend: str, request: ThriftMessage, method: MethodRoute) -> bytes | Iterable[bytes] | None:
        """The backend's reply with the names that clients see. Calls that it does not have are sent as older ones."""
        lacks = self._backends[backend].lacks
        older = older_request(request) if request.name in lacks else None
        if older is None:
            answer = self._answer(backend, request, method)
            if not (isinstance(answer, bytes) and is_unknown_method(answer)):
                return self._as_seen(backend, request, answer)
            older = older_request(request)
            if older is None:
                return answer
            lacks.add(request.name)
        answer = self._answer(backend, older, method)
        whole = answer if isinstance(answer, bytes) else b"".join(answer or ())
        return self._as_seen(backend, request, newer_reply(request, older, whole))

    def _as_seen(
        self, backend: str, request: ThriftMessage, answer: bytes | Iterable[bytes] | None
    ) -> bytes | Iterable[bytes] | None:
        if answer is None or backend not in self._rules.renaming or not names_databases(request.name):
            return answer
        whole = answer if isinstance(answer, bytes) else b"".join(answer)
        return as_seen(whole, request.name, backend, self._rules)

    def _answer(self, backend: str, request: ThriftMessage, method: MethodRoute) -> bytes | Iterable[bytes] | None:
        """The reply as it is, in pieces if it is long."""
        repeatable = not method.writes and request.name.startswith("get")
        pieces = self._link(backend).call(request, repeatable=repeatable)
        try:
            first, second = next(pieces, None), next(pieces, None)
        except OSError as error:
            if not repeatable:
                raise outcome_unknown(backend, request, error) from error
            raise self._backends[backend].down(str(error)) from error
        return first if first is None or second is None else itertools.chain((first, second), pieces)

    def _whole(self, backend: str, request: ThriftMessage) -> bytes:
        return b"".join(self._link(backend).call(request, repeatable=True))

    def _merged(self, request: ThriftMessage) -> bytes:
        merged = MergedListing(request, self._rules)
        if merged.foreign:
            return self._whole(self._primary, request)
        for name, backend in self._backends.items():
            try:
                merged.take(name, lambda asked, name=name: self._whole(name, asked))  # type: ignore[misc]
            except BackendDownError:
                if backend.settings.on_down == "fail":
                    raise
        return merged.reply()

    def _every(self, request: ThriftMessage) -> bytes:
        """Tell the primary now, the others when the client calls them next."""
        for name, link in self._links.items():
            if name != self._primary:
                link.close()
        for name, backend in self._backends.items():
            if not backend.settings.addresses and name != self._primary:
                self._whole(name, request)
        try:
            return self._whole(self._primary, request)
        finally:
            self._greetings[request.name] = request

    def _link(self, backend: str) -> Link:
        link = self._links.get(backend)
        if link is None:
            shared = self._backends[backend]
            if shared.settings.addresses:
                link = ThriftLink(shared, self._greetings)
            else:
                assert self._in_process is not None
                link = InProcessLink(self._in_process, self._session)
            self._links[backend] = link
        return link
