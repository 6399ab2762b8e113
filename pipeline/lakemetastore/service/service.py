"""The service as its settings say: which processes there are, on which ports."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from lakemetastore.service.part import LogOf, Part
from lakemetastore.service.parts import reconciling, serving
from lakemetastore.service.ports import Ports, reserve
from lakemetastore.service.supervisor import Supervisor
from lakemetastore.settings.service import MetastoreSettings

_log = logging.getLogger(__name__)


class Service:
    """A service that runs while a ``with`` block does.

    Args:
        settings: the store, the ports, how many processes.
        log: the log of each process.
    """

    def __init__(self, settings: MetastoreSettings, log: LogOf) -> None:
        self._settings, self._log = settings, log
        self._held = ExitStack()

    def __enter__(self) -> Service:
        """Start all processes. Raises ConfigError, StorageError, TransientError if one cannot begin."""
        settings = self._settings
        with ExitStack() as held:
            thrift, http = (held.enter_context(reserve(wanted)) for wanted in (settings.thrift, settings.http))
            self.ports = Ports(thrift.getsockname()[1], http.getsockname()[1])
            supervisor = Supervisor(dict(self._parts()), self._log, settings.drain_seconds)
            self.processes = held.enter_context(supervisor)
            self._held = held.pop_all()
        _log.debug("the metastore answers: %s, %s", self.thrift, self.http, extra={"event": "metastore_started"})
        return self

    def __exit__(self, *error: object) -> None:
        self._held.close()

    @property
    def thrift(self) -> str:
        """What ``hive.metastore.uris`` of an engine on this machine takes."""
        return f"thrift://{self._settings.thrift.host}:{self.ports.thrift}"

    @property
    def http(self) -> str:
        """What ``metastore.uri`` of a stream on this machine takes."""
        scheme = "https" if self._settings.http.tls else "http"
        return f"{scheme}://{self._settings.http.host}:{self.ports.http}"

    def _parts(self) -> Iterator[tuple[str, Callable[[], Part]]]:
        for number in range(self._settings.processes):
            yield str(number), partial(serving, self._settings, self.ports)
        if self._settings.lakes:
            yield "lakes", partial(reconciling, self._settings)
