"""How the log looks: short lines on standard error for people, JSON lines for machines.

All other modules only write records to ``logging.getLogger(__name__)``.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from pythonjsonlogger.json import JsonFormatter
from rich.text import Text

from binlake.cli.text import one_line, terminal
from binlake.stream.monitoring.run_log import RUN_LOGGER
from hudilake.errors import ConfigError

#: The loggers above those of all modules of ours.
PACKAGES = tuple(logging.getLogger(name) for name in ("binlake", "lakemetastore", "hudilake"))
_STYLES = {"DEBUG": "dim", "WARNING": "bold yellow", "ERROR": "bold red", "CRITICAL": "bold red"}


class ConsoleHandler(logging.Handler):
    """A line a record on standard error, with its level where it is not INFO.

    The records of a run are left out: the display shows its batches, and the command prints the error that ends it.
    """

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.addFilter(lambda record: record.name != RUN_LOGGER)
        self.setFormatter(OneLine())

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        try:
            console = terminal(stderr=True)
            level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
            with console.capture() as line:
                text = Text.assemble((level, _STYLES.get(record.levelname, "")), self.format(record))
                console.print(text, soft_wrap=True)
            sys.stderr.write(line.get())  # a live display replaces sys.stderr, to print lines above its table
        except Exception:  # logging must not end the work
            self.handleError(record)


class OneLine(logging.Formatter):
    """A record's message on one line, so that a name from a topic can forge no other record; then its traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The message with escapes in place of line breaks."""
        return one_line(super().formatMessage(record))


class JsonLines(JsonFormatter):
    """A JSON object a record: ``time`` (UTC), ``level``, ``event``, ``stream``, then the record's own fields.

    A record without an event of its own is of the event ``message``, with ``logger`` and ``message``.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(
            "%(event)s", json_serializer=partial(json.dumps, separators=(",", ":")), json_ensure_ascii=False
        )
        self._stream = stream

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        """Fill the object of one record."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        log_data |= {"time": time, "level": record.levelname.lower(), "event": None, "stream": self._stream}
        super().add_fields(log_data, record, message_dict)
        if log_data["event"] is None:
            log_data |= {"event": "message", "logger": record.name, "message": record.getMessage()}


@contextmanager
def console_log(level: int = logging.INFO) -> Iterator[None]:
    """Within, binlake's records of this level and above go to standard error, and the warnings of libraries."""
    root = logging.getLogger()
    others = logging.NullHandler() if root.handlers else logging.StreamHandler(sys.stderr)
    others.setLevel(logging.WARNING)
    others.addFilter(lambda record: _is_of_library(record, details=level == logging.DEBUG))
    root.addHandler(others)
    try:
        with _handled(ConsoleHandler(level), min(level, logging.INFO)):
            yield
    finally:
        root.removeHandler(others)


def _is_of_library(record: logging.LogRecord, *, details: bool) -> bool:
    """Whether a record is for people and nobody else prints it. What py4j says of a lost JVM comes as an error too."""
    ours = record.name.partition(".")[0] in {package.name for package in PACKAGES}
    return not ours and (details or "py4j" not in Path(record.pathname).parts)


@contextmanager
def json_log(stream: str, path: str | None) -> Iterator[None]:
    """Within, binlake's records are appended to a file as JSON lines; None: nothing changes.

    ``-`` is standard error, which then has no other lines. Raises ConfigError for a file that cannot be written.
    """
    if path is None:
        yield
        return
    handler = _json_handler(path)
    handler.setFormatter(JsonLines(stream))
    replaced = [h for h in PACKAGES[0].handlers if path == "-" and isinstance(h, ConsoleHandler)]
    for package, console in product(PACKAGES, replaced):
        package.removeHandler(console)
    try:
        with _handled(handler, min(PACKAGES[0].getEffectiveLevel(), logging.INFO)):
            yield
    finally:
        for package, console in product(PACKAGES, replaced):
            package.addHandler(console)


def _json_handler(path: str) -> logging.Handler:
    if path == "-":
        return logging.StreamHandler(sys.stderr)
    try:
        return logging.FileHandler(Path(path), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write the log: {error}", do_next="correct --log-json", path=path) from error


@contextmanager
def _handled(handler: logging.Handler, level: int) -> Iterator[None]:
    before = [package.level for package in PACKAGES]
    for package in PACKAGES:
        package.setLevel(level)
        package.addHandler(handler)
    try:
        yield
    finally:
        for package, its in zip(PACKAGES, before, strict=True):
            package.removeHandler(handler)
            package.setLevel(its)
        handler.close()
