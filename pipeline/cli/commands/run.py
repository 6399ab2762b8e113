"""``binlake run``: the stream in a thread, signals and display in front of it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pipeline.cli.display import Display
from pipeline.cli.logs import json_log
from pipeline.cli.until_stopped import stopping_on_signals, wait
from pipeline.settings import Settings
from pipeline.stream.run import run_stream


def run(
    settings: Settings, display: Display, *, once: bool, log_json: str | None = None, skip_missing: bool = False
) -> None:
    """Run the stream until it ends, or until SIGTERM or SIGINT, after which the batch in hand is finished.

    ``log_json``: a file for JSON lines, ``-`` for standard error; None for none. ``skip_missing``: see ``run_stream``.

    The stream runs in a thread of its own, because PySpark takes SIGINT for itself in the main thread and would
    cancel the batch. Raises what the stream raises.
    """
    stop = threading.Event()
    with (
        stopping_on_signals(stop),
        json_log(settings.name, log_json),
        display,
        ThreadPoolExecutor(1, thread_name_prefix="stream") as pool,
    ):
        running = partial(
            run_stream, settings, once=once, on_progress=display.update, stop=stop, skip_missing=skip_missing
        )
        wait(pool.submit(running))
