"""``binlake run``: the stream in a thread, signals and display in front of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDone
from contextlib import contextmanager, nullcontext
from types import FrameType

from pipeline.cli.display import Display
from pipeline.settings import Settings
from pipeline.stream.monitoring_log import JsonLog
from pipeline.stream.progress import ProgressEvent
from pipeline.stream.run import run_stream

_POLL_S = 0.2


def run(settings: Settings, display: Display, *, once: bool, log_json: str | None = None) -> None:
    """Run the stream until it ends, or until SIGTERM or SIGINT, after which the batch in hand is finished.

    ``log_json``: a file for JSON lines, ``-`` for standard error; None for none.

    The stream runs in a thread of its own, because PySpark takes SIGINT for itself in the main thread and would
    cancel the batch. Raises what the stream raises.
    """
    stop = threading.Event()
    log = JsonLog(settings.name, log_json) if log_json is not None else None

    def tell(event: ProgressEvent) -> None:
        if log is not None:
            log.update(event)
        display.update(event)

    with (
        _stopping_on_signals(stop),
        log or nullcontext(),
        display,
        ThreadPoolExecutor(1, thread_name_prefix="stream") as pool,
    ):
        _wait(pool.submit(run_stream, settings, once=once, on_progress=tell, stop=stop))


def _wait(stream: Future[None]) -> None:
    """Wait in short steps: Python runs signal handlers in the main thread, between two of them."""
    while True:
        try:
            stream.result(timeout=_POLL_S)
        except NotDone:
            if stream.done():
                raise
        else:
            return


@contextmanager
def _stopping_on_signals(stop: threading.Event) -> Iterator[None]:
    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {s: signal.signal(s, ask_to_stop) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
