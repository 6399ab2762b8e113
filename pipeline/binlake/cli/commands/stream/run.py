"""``binlake run``: the stream in a thread, signals and display in front of it."""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Annotated, Final

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

#: A start makes half a million objects that stay, functions and classes of modules most of all; the collector's usual
#: bounds make it look through all of them again and again, for a tenth of the processor time of a start (measured).
_BOUNDS: Final = (50_000, 20, 20)


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
    if settings.source.mysql is not None:  # Spark asks for pandas itself
        pyarrow_alone()
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
    stop, shown, starting = threading.Event(), threading.Event(), contextlib.ExitStack()

    def show(event: ProgressEvent) -> None:
        shown.set()
        if event.tables:
            starting.close()
        display.update(event)

    registrar = registrar_of(settings.metastore)
    with (
        contextlib.closing(registrar),
        stopping_on_signals(stop),
        json_log(settings.name, log_json),
        display,
        starting,
        ThreadPoolExecutor(1, thread_name_prefix="stream") as pool,
    ):
        starting.enter_context(rarely_collecting())
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


class _NoPandas(MetaPathFinder):
    """Refuses one library, as Python does for one that is not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Raise ModuleNotFoundError for pandas; None for all else: other finders are asked."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not imported for pyarrow", name=name)


def pyarrow_alone() -> None:
    """Let pyarrow do without pandas, which it imports, where it is installed, for the first value that it makes: 0.6 s.

    pyarrow then takes no pandas object for an array; it looks once for each process. Frames can be made all the same:
    for these it imports pandas when one is asked for. No effect where pandas is imported already.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa  # a stream of Kafka starts Spark's JVM first

    refusing = _NoPandas()
    sys.meta_path.insert(0, refusing)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(refusing)


@contextlib.contextmanager
def rarely_collecting() -> Iterator[None]:
    """Look for garbage in cycles rarely within, and as before behind."""
    before = gc.get_threshold()
    gc.set_threshold(*_BOUNDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
