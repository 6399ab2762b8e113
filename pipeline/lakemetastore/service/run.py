"""A service from its start until a signal ends it, with health and metrics of all its processes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakemetastore.service.monitoring import Health, MonitoringServer
from lakemetastore.service.part import LogOf
from lakemetastore.service.service import Service
from lakemetastore.service.signals import stopping_on_signals
from lakemetastore.service.supervisor import Supervisor
from lakemetastore.settings.service import MetastoreSettings, ServiceMonitoringSettings


def serve_until_stopped(settings: MetastoreSettings, log: LogOf, say: Callable[[str], object]) -> None:
    """Answer until SIGTERM or SIGINT, which finish the calls in hand.

    Args:
        settings: of the service.
        log: the log of each process.
        say: prints a line for people: the addresses, that the service stops.

    Raises ConfigError, StorageError, TransientError if it cannot begin.
    """
    stop = threading.Event()
    with (
        stopping_on_signals(stop),
        Service(settings, log) as service,
        _monitored(settings.monitoring, service.processes) as port,
    ):
        say(f"the metastore answers: hive.metastore.uris={service.thrift}, metastore.uri={service.http}")
        if port is not None:
            say(f"health and metrics of all processes: http://{settings.monitoring.host}:{port}/health, /metrics")
        stop.wait()
        say("the metastore stops: calls in hand are finished")


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Within, a line a record goes to standard error: the log of a service that stands alone."""
    handler = logging.StreamHandler()  # standard error
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@contextmanager
def _monitored(wanted: ServiceMonitoringSettings, processes: Supervisor) -> Iterator[int | None]:
    """Serve health and metrics within, if the settings say so; the port. Raises ConfigError."""
    if wanted.port is None:
        yield None
        return
    server = MonitoringServer(_Processes(processes), wanted.host, wanted.port)
    try:
        yield server.port
    finally:
        server.close()


class _Processes:
    """The processes as monitoring sees them."""

    def __init__(self, processes: Supervisor) -> None:
        self._processes = processes

    def render(self) -> str:
        return self._processes.render()

    def health(self) -> Health:
        return Health(self._processes.reasons())
