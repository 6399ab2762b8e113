"""How a writer tells a metastore of the instants that it completes, and never waits for it.

The timeline is the truth, so nothing depends on the telling: what is lost the metastore takes in later by itself. A
thread tells it. Of each table only the newest instant waits: whoever takes it in takes in all older ones. While the
metastore is down the thread tries again, with pauses; what is given up is counted and logged.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from hudilake.errors import LakeError, TransientError

if TYPE_CHECKING:
    from lakemetastore.api.tables import RegistrationReply
    from lakemetastore.client.requests import MetastoreClient
    from lakemetastore.settings.connection import MetastoreConnection

_log = logging.getLogger(__name__)
#: Tables that may wait.
LIMIT: Final = 10_000
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_CLOSE_S = 2.0


@dataclass(frozen=True, slots=True)
class RegistrarCounts:
    """How the telling went since the start.

    Args:
        registered: tables whose newest instant the metastore took in.
        failed: attempts that failed; they are made again.
        dropped: tables that were given up: the metastore refused them, or too many waited.
        waiting: tables that wait now.
    """

    registered: int = 0
    failed: int = 0
    dropped: int = 0
    waiting: int = 0


class Registrar(Protocol):
    """Takes in completed instants for the metastore. No method raises, and none waits for the metastore."""

    def completed(self, uri: str, instant: str) -> None:
        """An instant of a table has completed.

        Args:
            uri: the table's root.
            instant: its requested time. It stands for all older ones of the table.
        """
        ...

    def counts(self) -> RegistrarCounts:
        """How it went so far."""
        ...


class NoRegistrar:
    """There is no metastore."""

    def completed(self, uri: str, instant: str) -> None:
        """Does nothing."""

    def counts(self) -> RegistrarCounts:
        """Zeros."""
        return RegistrarCounts()

    def close(self) -> None:
        """Does nothing."""


NO_REGISTRAR: Final[Registrar] = NoRegistrar()


class QueuedRegistrar:
    """A ``Registrar`` with a thread.

    Args:
        tell: tells the metastore of a table's root and an instant; raises LakeError.
        limit: how many tables may wait.
        pause_s: the first pause after a failure, in seconds; it doubles up to half a minute.
    """

    def __init__(self, tell: Callable[[str, str], object], limit: int = LIMIT, pause_s: float = _FIRST_PAUSE_S) -> None:
        self._tell, self._limit, self._first_pause_s = tell, limit, pause_s
        self._waiting: dict[str, str] = {}
        self._counts = RegistrarCounts()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="metastore-registrar", daemon=True)
        self._thread.start()

    def completed(self, uri: str, instant: str) -> None:
        """Let an instant wait for the thread; it is dropped if too many tables wait."""
        with self._changed:
            if self._closed or (uri not in self._waiting and len(self._waiting) >= self._limit):
                self._drop(uri, instant, "too many tables wait for the metastore")
                return
            self._waiting[uri] = max(instant, self._waiting.get(uri, ""))
            self._changed.notify()

    def counts(self) -> RegistrarCounts:
        """How it went so far."""
        with self._changed:
            return replace(self._counts, waiting=len(self._waiting))

    def close(self, wait_s: float = _CLOSE_S) -> None:
        """Tell what waits, for at most so long, then stop; what is left is dropped."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(wait_s)
        with self._changed:
            for uri, instant in self._waiting.items():
                self._drop(uri, instant, "the stream ended before the metastore answered")
            self._waiting.clear()

    def _run(self) -> None:
        pause_s = self._first_pause_s
        while (following := self._next()) is not None:
            if self._is_settled(*following):
                pause_s = self._first_pause_s
                continue
            with self._changed:
                if self._closed:
                    return
                self._changed.wait_for(lambda: self._closed, pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _next(self) -> tuple[str, str] | None:
        """The table that waits longest; None once it is closed and none waits."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return next(iter(self._waiting.items()), None)

    def _is_settled(self, uri: str, instant: str) -> bool:
        """Tell the metastore of a table; False if it does not answer and is asked again."""
        try:
            self._tell(uri, instant)
        except TransientError as error:
            with self._changed:
                first = self._counts.failed == 0
                self._counts = replace(self._counts, failed=self._counts.failed + 1)
            fields = {"event": "registration_failed", "table": uri, "instant": instant}
            _log.log(logging.WARNING if first else logging.INFO, "the metastore is not told: %s", error, extra=fields)
            return False
        except LakeError as error:
            self._settle(uri, instant)
            with self._changed:
                self._drop(uri, instant, str(error))
            return True
        self._settle(uri, instant)
        with self._changed:
            self._counts = replace(self._counts, registered=self._counts.registered + 1)
        return True

    def _settle(self, uri: str, instant: str) -> None:
        """The table waits no longer, unless a newer instant has come."""
        with self._changed:
            if self._waiting.get(uri) == instant:
                del self._waiting[uri]

    def _drop(self, uri: str, instant: str, why: str) -> None:
        """Count and log a table that is given up. Call it with ``_changed`` held."""
        self._counts = replace(self._counts, dropped=self._counts.dropped + 1)
        fields = {"event": "registration_dropped", "table": uri, "instant": instant}
        _log.warning("%s at %s is not registered: %s", uri, instant, why, extra=fields)


def registrar_of(settings: MetastoreConnection) -> QueuedRegistrar | NoRegistrar:
    """The registrar of a stream's settings, for its caller to close. Raises ConfigError for addresses that are none."""
    if not settings.addresses or not settings.register_commits:
        return NoRegistrar()
    from lakemetastore.client.opening import client_of  # writers without a metastore import none of HTTP

    client = client_of(settings)
    return QueuedRegistrar(lambda uri, instant: register(client, uri, instant)) if client is not None else NoRegistrar()


def register(connection: MetastoreClient, location: str, instant: str) -> RegistrationReply:
    """Register an instant of the table at a location; the same one twice is one.

    Args:
        connection: to the metastore.
        location: the URI of the table's root.
        instant: the requested time.

    Raises MetastoreUnreachableError, RefusedRequestError, TransientError.
    """
    from lakemetastore.api.paths import INSTANTS  # writers without a metastore import none of HTTP
    from lakemetastore.api.tables import RegistrationReply, RegistrationRequest

    return connection.ask(
        "POST", INSTANTS, RegistrationReply, body=RegistrationRequest(location=location, instant=instant)
    )
