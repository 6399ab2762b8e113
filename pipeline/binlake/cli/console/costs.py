"""What keeps looking at a lake in motion cheap: tables that stay open, and shares of the processor's time.

A stream that commits three times a second would else make its console open the same table, read the same commits and
count the same rows each second, beside the batches on the same processors.

Shares are of processor time, as the thread's own clock tells it: on a machine that is busy, work takes longer, but it
is not done more seldom for that. What is put off is not forgotten: who asks ``rests`` asks again at its next turn, and
says of what it shows meanwhile how old it is.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from hudilake.clock import monotonic_s
from hudilake.format.definition.properties import PROPERTIES_PATH
from hudilake.storage import Storage
from hudilake.storage.base import FileInfo
from hudilake.table.table import HudiTable

#: Tables that stay open: those that were looked at last.
KEPT_OPEN = 16


class OpenTables:
    """Tables that stay open, so that a further look reads only what is new. Not for several threads at once.

    Args:
        root: of the lake.
        kept: how many stay open.
    """

    def __init__(self, root: Storage, kept: int = KEPT_OPEN) -> None:
        self._root, self._kept = root, kept
        self._tables: dict[str, tuple[FileInfo | None, HudiTable]] = {}

    def at(self, path: str) -> HudiTable:
        """The table at a path as it is now. A table that was made anew, or whose properties were written, is opened
        anew. Raises ConfigError if there is none, CorruptDataError, StorageError."""
        storage = self._root.sub(path)
        known = self._tables.pop(path, None)
        properties = storage.stat(PROPERTIES_PATH)
        if known is not None and properties is not None and known[0] == properties:
            table = known[1]
            table.refresh()
        else:
            table = HudiTable.open(storage)
        self._tables[path] = properties, table  # at the end: the first one is the one that was asked for least lately
        while len(self._tables) > self._kept:
            del self._tables[next(iter(self._tables))]
        return table

    def close(self, path: str) -> None:
        """Open the table of a path anew the next time."""
        self._tables.pop(path, None)


class ProcessorShare:
    """Work of one thread that may take a share of one processor's time: after it has taken a second, it rests for
    1 / ``share`` seconds."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._rests_until_s = float("-inf")

    @property
    def rests(self) -> bool:
        """Whether the work that was done takes up the time until now."""
        return monotonic_s() < self._rests_until_s

    @contextlib.contextmanager
    def spending(self) -> Iterator[None]:
        """Take the processor time of what is done inside for this work."""
        begun_s = time.thread_time()
        try:
            yield
        finally:
            self._rests_until_s = monotonic_s() + (time.thread_time() - begun_s) / self._share
