"""How a writer lets others through where the store keeps no queue of writers.

Without a queue the writer that has just written is the first that knows the newest version, and wins again: with four
writers on an S3 server three of them got one commit in four seconds (measured). So who has written rests for as long as
the other writers need that the log names, one commit each. Of a writer that never won the log knows nothing: a writer
that is alone in the log rests now and then too.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Final

from hudilake.clock import monotonic_s
from lakemetastore.log.records import EntryRecord

_FIRST_S: Final = 0.002
_LONGEST_S: Final = 2.0
#: How much a new measurement counts.
_WEIGHT: Final = 0.2
#: The writers of so many entries are taken for active.
_RECENT: Final = 64
#: A writer that is alone rests after one of so many commits, for the time of so many.
_ALONE_EVERY: Final = 16
_ALONE_TIMES: Final = 3


class Pace:
    """The pace of one writer.

    Args:
        writer: its id in the entries.
    """

    def __init__(self, writer: bytes) -> None:
        self._writer = writer
        self._commit_s = _FIRST_S
        self._rest_until_s = 0.0

    def rest(self) -> None:
        """Before a commit: wait for the end of the rest that the last one asks for."""
        left = self._rest_until_s - monotonic_s()
        if left > 0:
            time.sleep(left)

    def won(self, records: Sequence[EntryRecord], took_s: float) -> None:
        """A commit was done.

        Args:
            records: the newest entries, the own one last.
            took_s: the seconds from reading to the answer.
        """
        self._commit_s += _WEIGHT * (took_s - self._commit_s)
        others = len({record.writer for record in records[-_RECENT:]} - {self._writer})
        times = float(others)
        if not others and random.random() < 1 / _ALONE_EVERY:  # noqa: S311 - jitter
            times = _ALONE_TIMES
        self._rest_until_s = monotonic_s() + self._draw(times)

    def lost(self, times: int) -> None:
        """Another writer was first: wait a moment, longer after more losses, so that one comes alone at last."""
        time.sleep(self._draw(min(times, 8) / 2))

    def _draw(self, times: float) -> float:
        return min(_LONGEST_S, times * self._commit_s) * random.uniform(0.5, 1.5)  # noqa: S311 - jitter
