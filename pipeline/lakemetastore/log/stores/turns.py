"""A queue of the processes of one machine, made of two file locks.

A process that gives a lock back and asks for it again at once gets it before one that sleeps (measured with SQLite: two
of four writers waited without end). So there is a lock to wait at and a lock to work under: one process at most waits
for the second lock, and who has just worked must pass the first lock again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hudilake.clock import monotonic_s

#: Of the one process that waits to work; and the longest one of those that wait for its place.
_NEXT_PAUSE_S: Final = 0.0002
_PAUSE_S: Final = 0.002


@contextlib.contextmanager
def file_turn(directory: Path, timeout_s: float) -> Iterator[bool]:
    """Hold the turn for the length of the block; False if it did not come in time, or if no lock can be made.

    Args:
        directory: of the queue's two lock files; made if missing.
        timeout_s: the longest wait in seconds.
    """
    deadline = monotonic_s() + timeout_s
    with contextlib.ExitStack() as working:
        with contextlib.ExitStack() as waiting:
            came = _lock(directory / "waiting", deadline, _PAUSE_S, waiting)
            came = came and _lock(directory / "working", deadline, _NEXT_PAUSE_S, working)
        yield came


def _lock(file: Path, deadline: float, pause_s: float, held: contextlib.ExitStack) -> bool:
    """Take a lock until ``held`` is closed. The kernel gives back the lock of a process that ends."""
    descriptor = _open(file)
    if descriptor is None:
        return False
    held.callback(os.close, descriptor)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic_s() > deadline:
                return False
            time.sleep(pause_s)
        except OSError:
            return False
        else:
            return True


def _open(file: Path) -> int | None:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        file.parent.mkdir(parents=True, exist_ok=True)
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
