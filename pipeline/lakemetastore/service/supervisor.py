"""Processes of one service: each is started again when it dies, and all are ended in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from lakemetastore.service.child import Child
from lakemetastore.service.labelled import with_label
from lakemetastore.service.part import LogOf, Part, Report

_LOOK_EVERY_S = 0.2
#: What a process may take to end beyond the time for calls in hand.
_SPARE_S = 5.0


class Supervisor:
    """Processes that run while a ``with`` block does.

    Args:
        parts: what each process makes, by its name; can be pickled.
        log: the log of each process.
        drain_seconds: how long a process may take to end what is in hand.
    """

    def __init__(self, parts: Mapping[str, Callable[[], Part]], log: LogOf, drain_seconds: float) -> None:
        self._parts, self._log, self._drain_seconds = parts, log, drain_seconds
        self._children: list[Child] = []
        self._stop = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="metastore-keeper", daemon=True)

    def __enter__(self) -> Supervisor:
        """Start all. Raises what one raises when it begins, such as ConfigError; then none is left."""
        try:
            self._children += [Child(name, make, self._log) for name, make in self._parts.items()]
            for child in self._children:
                child.wait_ready()
        except BaseException:
            self._end()
            raise
        self._keeper.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._keeper.join()
        self._end()

    @property
    def pids(self) -> dict[str, int | None]:
        """The ids of the processes by their names; None for one that is down."""
        return {child.name: child.pid for child in self._children}

    def reports(self) -> dict[str, Report]:
        """How each process is, by its name. Takes seconds if one does not answer."""
        with ThreadPoolExecutor(len(self._children)) as pool:
            names = (child.name for child in self._children)
            return dict(zip(names, pool.map(Child.report, self._children), strict=True))

    def reasons(self) -> tuple[str, ...]:
        """Why processes are not well, those of all together; empty if all are."""
        return tuple(reason for report in self.reports().values() for reason in report.reasons)

    def render(self) -> str:
        """The metrics of all processes in Prometheus' text format, with the label ``process``."""
        own, names = CollectorRegistry(), ["process"]
        up = Gauge("binlake_metastore_process_up", "Whether a process answers.", names, registry=own)
        restarts = Gauge("binlake_metastore_process_restarts", "How often it was started again.", names, registry=own)
        reports = self.reports()
        for child in self._children:
            up.labels(child.name).set(child.pid is not None and bool(reports[child.name].metrics))
            restarts.labels(child.name).set(child.restarts)
        return generate_latest(own).decode() + with_label("process", {n: r.metrics for n, r in reports.items()})

    def _keep(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            for child in self._children:
                child.keep()

    def _end(self) -> None:
        if self._children:
            seconds = self._drain_seconds + _SPARE_S
            with ThreadPoolExecutor(len(self._children)) as pool:
                list(pool.map(lambda child: child.end(seconds), self._children))
