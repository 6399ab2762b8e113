"""Tells the metastore of completed instants from a thread, so that no writer waits for it.

Of each table only the newest instant waits: whoever takes it in takes in all older ones. While the metastore is down
the thread tries again, with pauses; what is given up is counted and logged, and the metastore takes it in later by
itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hudilake.errors import BinlakeError, TransientError
from lakemetastore.client.opening import client_of
from lakemetastore.client.register import register
from lakemetastore.client.registrar import RegistrarCounts
from lakemetastore.settings.connection import MetastoreConnection

_log = logging.getLogger(__name__)
#: Tables that may wait.
LIMIT: Final = 10_000
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_CLOSE_S = 2.0


class QueuedRegistrar:
    """A ``Registrar`` (``lakemetastore.client.registrar``) with a thread.

    Args:
        tell: tells the metastore of a table's root and an instant; raises BinlakeError.
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

    @classmethod
    def of(cls, settings: MetastoreConnection) -> QueuedRegistrar | None:
        """The registrar of a stream's settings; None if they name no metastore or switch it off. Raises ConfigError."""
        client = client_of(settings) if settings.register_commits else None
        return None if client is None else cls(lambda uri, instant: register(client, uri, instant))

    def completed(self, uri: str, instant: str) -> None:
        """As ``Registrar.completed``."""
        with self._changed:
            if self._closed or (uri not in self._waiting and len(self._waiting) >= self._limit):
                self._drop(uri, instant, "too many tables wait for the metastore")
                return
            self._waiting[uri] = max(instant, self._waiting.get(uri, ""))
            self._changed.notify()

    def counts(self) -> RegistrarCounts:
        """As ``Registrar.counts``."""
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
            if self._told(*following):
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

    def _told(self, uri: str, instant: str) -> bool:
        """Tell of a table; False if the metastore does not answer."""
        try:
            self._tell(uri, instant)
        except TransientError as error:
            with self._changed:
                first = self._counts.failed == 0
                self._counts = replace(self._counts, failed=self._counts.failed + 1)
            fields = {"event": "registration_failed", "table": uri, "instant": instant}
            _log.log(logging.WARNING if first else logging.INFO, "the metastore is not told: %s", error, extra=fields)
            return False
        except BinlakeError as error:
            self._settle(uri, instant)
            with self._changed:
                self._drop(uri, instant, str(error))
            return True
        self._settle(uri, instant)
        with self._changed:
            self._counts = replace(self._counts, told=self._counts.told + 1)
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
