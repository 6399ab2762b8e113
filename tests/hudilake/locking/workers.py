"""What other processes do in these tests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from hudilake.errors import LostOwnershipError
from hudilake.locking.base import LostLockError, TableLock
from hudilake.locking.file_lock import FileLock
from hudilake.locking.storage_lock import StorageLock
from hudilake.storage import StorageError, open_storage
from hudilake.storage.abilities import ConditionalStore

_SPAWN = get_context("spawn")


@dataclass(frozen=True)
class Lake:
    """How a process reaches the table and its lock."""

    uri: str
    options: tuple[tuple[str, str], ...] = ()

    def lock(self, **times: float) -> TableLock:
        """A lock with these times."""
        storage = open_storage(self.uri, dict(self.options))
        if self.uri.startswith("s3"):
            assert isinstance(storage, ConditionalStore)
            return StorageLock(storage, storage.uri, **times)
        return FileLock(storage, **times)


def start(work: Callable[..., None], *arguments: object) -> BaseProcess:
    """A process that does this work."""
    process = _SPAWN.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def wait_until(condition: Callable[[], bool], what: str = "it", seconds: float = 120.0) -> None:
    """Return when the condition is met; fail if it takes longer than on any machine."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen in {seconds} s"
        time.sleep(0.005)


def has_lost(lock: TableLock) -> bool:
    """Whether the lock says that it is lost; not while its store does not answer."""
    try:
        lock.check()
    except LostLockError:
        return True
    except StorageError:
        return False
    return False


def await_file(path: Path) -> str:
    """The text of a file once it is there."""
    wait_until(path.exists, f"{path}")
    return path.read_text()


def tell(path: Path, text: str) -> None:
    """Make a file appear whole."""
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


def increment(lake: Lake | None, counter: Path, times: int) -> None:
    """Add to a number in a file, looking first and writing then, under the lock if there is one."""
    lock = lake.lock(wait_s=60.0) if lake else None
    for _ in range(times):
        if lock:
            lock.__enter__()
        seen = int(counter.read_text())
        time.sleep(0.002)
        tell(counter, str(seen + 1))
        if lock:
            lock.check()
            lock.__exit__(None, None, None)


def hold(lake: Lake, directory: Path, seconds: float, validity_s: float = 300.0) -> None:
    """Take the lock, say so, hold it until told to go on, and say what ``check`` thinks."""
    with lake.lock(validity_s=validity_s, renew_s=validity_s / 10) as lock:
        lock.check()
        tell(directory / "held", str(os.getpid()))
        end = time.monotonic() + seconds
        while not (directory / "go").exists() and time.monotonic() < end:
            time.sleep(0.005)
        try:
            lock.check()
            tell(directory / "said", "held")
        except LostOwnershipError as error:
            tell(directory / "said", str(error))
    tell(directory / "done", "")
