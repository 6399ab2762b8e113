"""How far a task has come, for a driver on the same machine: a small file a task, written anew after each chunk.

It stands alone: tasks write it, and what shows it belongs to the driver.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import defaultdict
from pathlib import Path

#: How the names of the files end.
COUNTS_SUFFIX = ".counts.json"


class TaskCounts:
    """The records that a task has fetched and decoded, by topic. ``directory``: of the driver; None for no file."""

    def __init__(self, directory: str | None) -> None:
        there = directory is not None and Path(directory).is_dir()  # tasks on other machines have no such directory
        self._file = Path(str(directory)) / f"{os.getpid()}-{id(self)}" if there else None
        self._topics: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])

    def add(self, topic: str, *, fetched: int = 0, decoded: int = 0) -> None:
        """So many more records have come, or are decoded."""
        counts = self._topics[topic]
        self._topics[topic] = [counts[0] + fetched, counts[1] + decoded]
        if self._file is not None:
            with contextlib.suppress(OSError):  # nothing depends on it
                self._file.write_text(json.dumps(self._topics), encoding="utf-8")
                self._file.replace(self._file.with_name(self._file.name + COUNTS_SUFFIX))
