"""What is fetched once and kept, under ``~/.cache/binlake/jars``, or ``$BINLAKE_CACHE/jars``.

Each entry is a directory that appears by one rename when it is whole: an entry that is there is complete. A process
that dies while it makes an entry leaves nothing that counts as one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


def cached(name: str, make: Callable[[Path], Path]) -> Path:
    """An entry of the cache; of several processes that want it, one makes it.

    Args:
        name: the entry's name.
        make: is called only if the entry is missing, with an empty directory to work in; returns the directory in
            there that becomes the entry.

    Returns:
        The entry's directory.
    """
    home = _cache_dir() / name
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        with _locked(home.with_name(f".{name}.lock")):
            if not home.is_dir():
                with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=home.parent) as work:
                    make(Path(work)).rename(home)
    return home


def _cache_dir() -> Path:
    base = os.environ.get("BINLAKE_CACHE")
    return (Path(base) if base else Path.home() / ".cache" / "binlake") / "jars"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file."""
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
