"""``binlake metastore serve``: the metastore's processes until they are told to stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from binlake.cli.logs import console_log
from binlake.cli.table_options import LakeConf
from binlake.cli.text import say
from binlake.cli.until_stopped import stopping_on_signals
from binlake.settings.metastore.service import MetastoreSettings
from binlake.stream.monitoring.server import Health, MonitoringServer
from lakemetastore.service.service import Service
from lakemetastore.service.supervisor import Supervisor


def serve(conf: LakeConf) -> None:
    """Answer engines by the Hive Metastore's protocol, and readers by HTTP. SIGTERM and Ctrl-C finish the calls in
    hand, then stop."""
    settings = MetastoreSettings.load(conf)
    stop = threading.Event()
    log = partial(console_log, logging.getLogger("lakemetastore").getEffectiveLevel())
    with stopping_on_signals(stop), Service(settings, log) as service, _monitored(settings, service.processes) as port:
        say(f"the metastore answers: hive.metastore.uris={service.thrift}, metastore.uri={service.http}")
        if port is not None:
            say(f"health and metrics of all processes: http://{settings.monitoring.host}:{port}/health, /metrics")
        stop.wait()
        say("the metastore stops: calls in hand are finished")


@contextmanager
def _monitored(settings: MetastoreSettings, processes: Supervisor) -> Iterator[int | None]:
    """Serve health and metrics within, if the settings say so; the port. Raises ConfigError."""
    wanted = settings.monitoring
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
