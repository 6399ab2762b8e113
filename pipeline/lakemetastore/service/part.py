"""A process of the service: it makes its part, says that it is ready, and answers its parent until that says stop.

The parent and the process speak over a pipe. A process whose parent has died reads the end of the pipe and stops.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Protocol

from hudilake.errors import LakeError

_POLL_S = 0.2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Report:
    """How a process is: reasons why it is not well, and its metrics in Prometheus' text format."""

    reasons: tuple[str, ...]
    metrics: str


class Part(Protocol):
    """What a process does. ``start`` returns when it does it."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End what is in hand, within the time of the settings, then stop."""

    def report(self) -> Report:
        """How it is."""


@dataclass(frozen=True, slots=True)
class StartReport:
    """What a process sends first: that its part has begun, or the error that ends it."""

    error: LakeError | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a process sends when it is asked with a number."""

    number: int
    report: Report


#: The log of a process, such as ``partial(console_log, level)``; it crosses to a new process, so it can be pickled.
LogOf = Callable[[], AbstractContextManager[None]]


def run_part(make: Callable[[], Part], parent: Connection, log: LogOf) -> None:
    """Run a part in this process until SIGTERM, or until the parent dies."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent then ends them in order
    with log():
        try:
            part = make()
            part.start()
        except LakeError as error:
            parent.send(StartReport(error))
            return
        try:
            parent.send(StartReport(None))
            _answer(part, parent, stop)
        finally:
            part.stop()


def _answer(part: Part, parent: Connection, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            if parent.poll(_POLL_S):
                parent.send(Answer(parent.recv(), part.report()))
        except (EOFError, OSError):
            _log.warning("the process that started this one is gone, so it stops", extra={"event": "orphaned"})
            return
