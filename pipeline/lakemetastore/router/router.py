"""One catalog in front of several metastores: each call goes to where its database is, and the answer comes back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence

from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError
from lakemetastore.hive.session import Session
from lakemetastore.hive.wire import CALL, ThriftMessage
from lakemetastore.router.client import Client
from lakemetastore.router.errors import BackendDownError
from lakemetastore.router.links import Backend, InProcess
from lakemetastore.router.rules import Clash, Rules
from lakemetastore.settings.router import RouterSettings

log = logging.getLogger(__name__)

OnCall = Callable[[str, str, float, str], None]
"""Told of each call: method, backend (``-``: the router itself), seconds until the answer begins, outcome (``ok``,
``refused``, ``down``)."""


class Router:
    """Answers the requests of all clients; `answer` is what a `ThriftServer` takes.

    Args:
        settings: the backends and the rules.
        in_process: answers for the backend without an address.
        on_call: is passed each call.
    """

    def __init__(
        self, settings: RouterSettings, in_process: InProcess | None = None, on_call: OnCall | None = None
    ) -> None:
        own = [name for name, backend in settings.backends.items() if backend.uri is None]
        if own and in_process is None:
            raise ConfigError(
                f"The backend {own[0]} has no uri, and there is no metastore in this process",
                do_next="give its uri, or serve a metastore and the router together",
            )
        self._settings = settings
        self._rules = Rules(settings)
        self._in_process = in_process
        self._backends = {name: Backend(name, backend) for name, backend in settings.backends.items()}
        self._clients: dict[Session, Client] = {}
        self._lock = threading.Lock()
        self._on_call = on_call or _nobody

    def answer(self, session: Session, request: ThriftMessage) -> bytes | Iterable[bytes] | None:
        """The reply to a request, in pieces as the backend sends them."""
        begun = monotonic_s()
        handled = self._client(session).handle(request)
        self._on_call(request.name, handled.backend, monotonic_s() - begun, handled.outcome)
        return handled.reply

    def clashes(self) -> list[Clash]:
        """Databases that a rule or another database hides; asked of all backends that answer now, and logged."""
        databases = {}
        client = self._new_client(Session("router"))
        try:
            for name in self._backends:
                try:
                    databases[name] = client.databases(name)
                except BackendDownError as error:
                    log.warning("Its databases are not compared with those of others: %s", error)
        finally:
            client.close()
        name_clashes = self._rules.clashes(databases)
        for clash in name_clashes:
            log.warning("%s. Give one of them another name by a rule with `as`", clash)
        self._tell_unseen(databases)
        return name_clashes

    def _tell_unseen(self, databases: dict[str, Sequence[str]]) -> None:
        for backend, names in databases.items():
            unseen = [name for name in names if self._rules.would_be(backend, name) is None]
            if unseen:
                log.info("No rule matches these databases of %s, so clients do not see them: %s", backend, unseen)

    def _client(self, session: Session) -> Client:
        client = self._clients.get(session)
        if client is None:
            client = self._new_client(session)
            with self._lock:
                self._clients[session] = client
            session.on_close.append(lambda: self._forget(session))
        return client

    def _new_client(self, session: Session) -> Client:
        return Client(session, self._rules, self._backends, self._settings.primary, self._in_process)

    def _forget(self, session: Session) -> None:
        with self._lock:
            client = self._clients.pop(session, None)
        if client is not None:
            client.close()


def request_of(name: str, arguments: bytes, head: bytes) -> ThriftMessage:
    """A request of the router's own."""
    return ThriftMessage(name, CALL, 0, head + arguments, len(head))


def _nobody(method: str, backend: str, seconds: float, outcome: str) -> None:
    """Nobody listens."""
