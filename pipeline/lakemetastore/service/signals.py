"""Signals that end a process in order.

It stands alone: streams stop by it too, and a stream does not import the service.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopping_on_signals(stop: threading.Event) -> Iterator[None]:
    """Within, SIGTERM and SIGINT set the event, and do nothing else."""

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {s: signal.signal(s, ask_to_stop) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
