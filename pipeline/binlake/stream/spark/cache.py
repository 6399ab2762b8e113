"""Files beside the code: what is fetched once and kept, in ``~/.cache/binlake/jars``, and logs, in
``~/.cache/binlake/logs``; with ``$BINLAKE_CACHE`` below that.

An entry is a directory. It appears by one rename when it is complete, so a process that ends early leaves no entry.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hudilake.errors import ConfigError


def cached(name: str, make: Callable[[Path], Path]) -> Path:
    """The directory of an entry; if several processes need it at the same time, one of them makes it.

    Args:
        name: of the entry.
        make: called if there is no such entry, with an empty directory to work in; it returns the directory below it
            that becomes the entry.

    Raises ConfigError if the cache cannot be written, and the errors of ``make``.
    """
    entry = cache_entry(name)
    if not entry.is_dir():
        with locked(name):
            if not entry.is_dir():
                with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=entry.parent) as scratch:
                    make(Path(scratch)).rename(entry)
    return entry


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of an entry, so that one of several processes does the work.

    Raises ConfigError if the cache cannot be written.
    """
    root = _root()
    _make_root(root)
    with (root / f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def cache_entry(name: str) -> Path:
    """The path of a cache entry, whether or not it exists."""
    return _root() / name


def log_file(name: str) -> Path:
    """The path of a log, whose directory exists: below the temporary directory where the cache cannot be written."""
    try:
        directory = _base() / "logs"
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        directory = Path(tempfile.gettempdir()) / f"binlake-logs-{os.getuid()}"
        directory.mkdir(mode=0o700, exist_ok=True)
    return directory / f"{name}.log"


def _root() -> Path:
    return _base() / "jars"


def _base() -> Path:
    base = os.environ.get("BINLAKE_CACHE")
    return Path(base) if base else Path.home() / ".cache" / "binlake"


def _make_root(root: Path) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot make the directory for Java libraries: {error.strerror}",
            do_next="set BINLAKE_CACHE to a directory that can be written",
            path=str(root),
        ) from error
