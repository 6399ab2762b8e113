"""The steps of an iteration: each from one completed commit to a later one, usually the next.

A clustering moves rows to other file groups and changes none. So no step spans one: the next step begins with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hudilake.format.timeline.instant import Instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.query.samples.position import PositionExpiredError

GroupName = tuple[str, str]


@dataclass(frozen=True)
class SampleStep:
    """The commits that completed after ``begin`` and up to ``end``. ``groups``: the file groups (partition path, file
    id) that they wrote; None for all of the table."""

    begin: str
    end: str
    groups: frozenset[GroupName] | None


def next_step(timeline: Timeline, begin: str, end: str | None, until: str | None, commits: int) -> SampleStep | None:
    """The next step after a completion time.

    Args:
        timeline: the table's, refreshed.
        begin: completion time of the last commit before the step; "" if there is none.
        end: completion time of its last commit, if a position names it.
        until: no later completion time; None for no limit.
        commits: the most commits of a step.

    Returns None if no commit has completed since. Raises PositionExpiredError if the commits of the position's step are
    archived, CorruptDataError, StorageError.
    """
    later = list(_writes(timeline, begin, end or until))
    if begin:  # otherwise the step is the whole table, wherever its rows are
        begin, later = _after_clusterings(timeline, begin, later)
    if end is not None and (not later or later[-1].completion_time != end):
        raise expired(begin, end, "the commits of its step are archived or were taken back")
    if not later:
        return None
    chosen = later if end is not None else later[:commits]
    last = end or chosen[-1].completion_time or ""
    if not begin:
        return SampleStep(begin, last, None)
    stats = [stat for commit in chosen for stat in timeline.commit_metadata(commit).stats]
    return SampleStep(begin, last, frozenset((stat.partition_path, stat.file_id) for stat in stats))


def _after_clusterings(timeline: Timeline, begin: str, writes: list[Instant]) -> tuple[str, list[Instant]]:
    """The begin of a step after the clusterings that follow it at once, and the commits up to the next clustering."""
    moved = [number for number, write in enumerate(writes) if timeline.is_clustering(write)]
    first = next(number for number in range(len(writes) + 1) if number not in moved)
    end = next((number for number in moved if number > first), len(writes))
    return (writes[first - 1].completion_time or "") if first else begin, writes[first:end]


def last_completion(timeline: Timeline, until: str | None) -> str:
    """Completion time of the last write up to a time; "" for a table without writes."""
    times = [write.completion_time or "" for write in _writes(timeline, "", until)]
    return times[-1] if times else ""


def refuse_archived(timeline: Timeline, begin: str, *, whole: bool) -> None:
    """Raise PositionExpiredError if commits that completed after ``begin`` have left the active timeline.

    ``whole``: read the history in any case; else only if no commit up to ``begin`` is active: commits are archived from
    the oldest on. Raises CorruptDataError, StorageError.
    """
    if not whole and any((write.completion_time or "") <= begin for write in timeline.completed()):
        return
    for entry in timeline.history().entries:
        times = timeline.history().read(entry, ["completionTime"]).column("completionTime")
        if any((time or "") > begin for time in times.to_pylist()):
            raise expired(begin, None, "commits after it are archived")


def expired(begin: str, step: str | None, why: str) -> PositionExpiredError:
    """The error of a position that is too old. ``begin``, ``step``: its completion times."""
    return PositionExpiredError(
        f"the table does not keep what was written since this position: {why}",
        do_next="begin anew without a position; raise the table's retention to keep positions valid for longer",
        completed=begin or "before all commits",
        step=step,
    )


def _writes(timeline: Timeline, begin: str, end: str | None) -> Iterator[Instant]:
    """Commits that wrote rows, and clusterings, by completion time. A compaction changes no row and no file group."""
    writes = [
        write
        for write in timeline.completed()
        if (write.completion_time or "") > begin and (end is None or (write.completion_time or "") <= end)
    ]
    for write in sorted(writes, key=lambda write: (write.completion_time or "", write.requested_time)):
        if not timeline.is_compaction(write):
            yield write
