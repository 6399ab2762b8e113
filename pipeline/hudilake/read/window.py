"""Incremental reads: their commits, and the timeline as of the completion of the last of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.instant import COMPLETED_ACTIONS, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.filters.evaluate import Flags
from hudilake.storage.base import Storage

COMMIT_TIME_FIELD = "_hoodie_commit_time"


@dataclass(frozen=True)
class CommitWindow:
    """The commits that completed after ``begin`` (exclusive) and up to ``end`` (None: no limit).

    Args:
        timeline: as of ``end``; archived commits are looked up in its history.
    """

    timeline: Timeline
    begin: str
    end: str | None

    def holds(self, requested_time: str) -> bool:
        """Whether the commit of that requested time is one of them."""
        completed = self.timeline.completion_time(requested_time)
        return completed is not None and completed > self.begin and (self.end is None or completed <= self.end)

    def may_hold_rows(self, slices: Sequence[FileSlice]) -> Flags:
        """The slices that may hold rows of these commits, bool array of n: in one of their log files, or in a base
        file, which has rows of all commits before its own and maybe of its own."""
        may_hold = [
            (s.base_file is not None and s.base_file.name.instant >= self.earliest)
            or any(self.holds(log.name.instant) for log in s.log_files)
            for s in slices
        ]
        return np.array(may_hold, dtype=np.bool_)

    @cached_property
    def earliest(self) -> str:
        """No row of the window has a commit time before this. Reads the metadata of compactions and
        clusterings."""
        writes = self.timeline.completed()
        if not writes or self.begin < min(w.completion_time or "" for w in writes):
            return ""  # archived commits may be among them
        inside = (w for w in writes if self.holds(w.requested_time))
        # A compaction and a clustering keep the commit times of the rows that they copy.
        kept = self.timeline.is_compaction, self.timeline.is_clustering
        return next((w.requested_time for w in inside if not any(copies(w) for copies in kept)), "~")

    def matches(self, rows: pa.Table) -> Flags:
        """The rows that these commits wrote. ``rows``: n rows with ``_hoodie_commit_time``; bool array of n."""
        times = rows.column(COMMIT_TIME_FIELD).combine_chunks().dictionary_encode()
        in_window = [time is not None and self.holds(time) for time in times.dictionary.to_pylist()]
        inside = np.array([*in_window, False], dtype=np.bool_)
        return np.asarray(inside[times.indices.fill_null(len(in_window)).to_numpy(zero_copy_only=False)])


def timeline_until(storage: Storage, timeline: Timeline, end: str | None) -> Timeline:
    """A copy of the timeline that is small when pickled, without completions after ``end``.

    Raises UnsupportedError for an ``end`` before the oldest commit of the active timeline if older ones are archived:
    their completion times do not determine the file slices of that time reliably.
    """
    copy = Timeline(storage, timeline.layout)
    for instant in timeline.pending():
        copy.record(instant)
    for instant in timeline.completed_actions(COMPLETED_ACTIONS):
        late = end is not None and (instant.completion_time or "") > end
        copy.record(instant.in_state(State.INFLIGHT) if late else instant)
    if end is not None and not copy.completed() and timeline.completed() and timeline.history().files:
        raise UnsupportedError("the end is in the archived timeline", do_next="give a later end", instant=end)
    return copy
