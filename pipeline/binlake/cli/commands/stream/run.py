"""``binlake run``: the stream in a thread, signals and display in front of it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from binlake.cli.display import Display, make_display
from binlake.cli.logs import json_log
from binlake.cli.options import LakeConf
from binlake.cli.text import terminal
from binlake.cli.until_stopped import wait
from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.start import run_stream
from lakemetastore.client.registration import registrar_of
from lakemetastore.service.signals import stopping_on_signals

_log = logging.getLogger(__name__)


def run_command(
    conf: LakeConf,
    once: Annotated[bool, typer.Option("--once", help="Take the records that are there now, then stop.")] = False,
    live: Annotated[bool, typer.Option("--display/--no-display", help="Show a live table, or print lines.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON line for every batch.")] = False,
    log_json: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a JSON line for every commit, failure and batch; - for stderr."),
    ] = None,
    skip_missing: Annotated[
        bool,
        typer.Option("--skip-missing", help="Go on without offsets that Kafka has deleted; the commits record them."),
    ] = False,
) -> None:
    """Run the stream. SIGTERM and Ctrl-C finish the batch in hand, then stop."""
    settings = Settings.load(conf)
    display = make_display(settings.name, terminal(), live=live, as_json=as_json)
    with _console(settings, conf):
        run(settings, display, once=once, log_json=log_json, skip_missing=skip_missing)


@contextlib.contextmanager
def _console(settings: Settings, conf: Path) -> Iterator[None]:
    """Within, the console is served beside the stream, where ``monitoring.console`` asks for it. Raises ConfigError if
    it cannot listen or its packages are missing."""
    if not settings.monitoring.console:
        yield
        return
    from binlake.cli.commands.reads.console import console_beside  # of the extra, which other streams lack

    with console_beside(settings, conf) as (address, _):
        _log.info("the console is at %s", address, extra={"event": "console", "address": address})
        yield


def run(
    settings: Settings, display: Display, *, once: bool, log_json: str | None = None, skip_missing: bool = False
) -> None:
    """Run the stream until it ends, or until SIGTERM or SIGINT, after which the batch in hand is finished.

    ``log_json``: a file for JSON lines, ``-`` for standard error; None for none. ``skip_missing``: see ``run_stream``.

    The stream runs in a thread of its own, because PySpark takes SIGINT for itself in the main thread and would
    cancel the batch. Raises what the stream raises.
    """
    stop, shown = threading.Event(), threading.Event()

    def show(event: ProgressEvent) -> None:
        shown.set()
        display.update(event)

    registrar = registrar_of(settings.metastore)
    with (
        contextlib.closing(registrar),
        stopping_on_signals(stop),
        json_log(settings.name, log_json),
        display,
        ThreadPoolExecutor(1, thread_name_prefix="stream") as pool,
    ):
        running = partial(
            run_stream,
            settings,
            once=once,
            on_progress=show,
            stop=stop,
            skip_missing=skip_missing,
            registrar=registrar,
        )
        wait(pool.submit(running))
    if once and not shown.is_set() and not stop.is_set():
        _log.info(
            "there is nothing to apply: the stream has taken every record that is there", extra={"event": "nothing_new"}
        )
