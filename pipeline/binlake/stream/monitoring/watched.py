"""The monitor of a running stream, served over HTTP; it learns from Kafka where the topics end."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator

from binlake.settings import Settings
from binlake.source.source_log import SourceLog, source_log
from binlake.stream.monitoring.monitor import Monitor
from hudilake.errors import LakeError
from lakemetastore.service.monitoring import MonitoringServer

#: How often Kafka is asked for the ends of the topics, and how long it may take.
_ASK_KAFKA_EVERY_S = 15.0
_KAFKA_TIMEOUT_S = 5.0
_log = logging.getLogger(__name__)


class _KafkaWatch:
    """Reports the ends of the topics to a monitor at intervals, so that the lag is known while no batch finishes."""

    def __init__(self, monitor: Monitor, log: SourceLog) -> None:
        self._monitor, self._log = monitor, log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="binlake-monitoring-kafka", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(2 * _KAFKA_TIMEOUT_S)

    def _run(self) -> None:
        while not self._stop.wait(_ASK_KAFKA_EVERY_S):
            positions = self._monitor.positions()
            if not positions:
                continue
            try:
                self._monitor.kafka_said(self._log.ends(positions, _KAFKA_TIMEOUT_S))
            except LakeError as error:
                _log.debug(
                    "Kafka did not give the ends of the topics: %s",
                    error,
                    extra={"event": "kafka_silent", "error": error.what},
                )
                self._monitor.kafka_said(None)


@contextlib.contextmanager
def monitored(settings: Settings) -> Iterator[Monitor | None]:
    """A monitor that is served according to the settings; None if they do not enable it. Raises ConfigError."""
    wanted = settings.monitoring
    if wanted.port is None:
        yield None
        return
    monitor = Monitor(wanted.stalled_seconds)
    server = MonitoringServer(monitor, wanted.host, wanted.port, {"/batches.json": monitor.batches})
    watch = _KafkaWatch(monitor, source_log(settings))
    try:
        yield monitor
    finally:
        watch.close()
        server.close()
