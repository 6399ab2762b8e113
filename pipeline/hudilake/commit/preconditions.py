"""Checks before a writer begins an instant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from hudilake.clock import now_ms, parse_instant
from hudilake.commit.announced import pending_intent
from hudilake.commit.intent import Intent
from hudilake.commit.planned import PendingClustering
from hudilake.errors import ConfigError, TransientError
from hudilake.format.timeline.instant import CLUSTERING, LOG_COMPACTION, REPLACE_COMMIT, RESTORE, Instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage

#: The most that the timeline may be ahead of this machine's clock; beyond it no new instant begins.
MAX_CLOCK_SKEW_MS = 2 * 3600 * 1000
_INSTANT = re.compile(r"^\d{17}$")
_FOREIGN = (CLUSTERING, LOG_COMPACTION, REPLACE_COMMIT, RESTORE)


class ForeignActionError(TransientError):
    """Another writer has a pending action on the table's file groups that excludes all other writes."""


def is_time(instant: str) -> bool:
    """Whether an instant is a date (the metadata table's first ones are not)."""
    return _INSTANT.match(instant) is not None


def refuse_foreign(
    storage: Storage, timeline: Timeline, clusterings: Collection[PendingClustering], *, computed: bool
) -> None:
    """Raise ForeignActionError while an action is pending that will replace file groups or restore the table.

    A pending replacecommit or resize of binlake takes in what others commit until it completes, so it excludes nobody.
    Nor does a clustering of a table whose rows may go to any file group (``actions.planned``, ``refuse_planned``).

    Args:
        storage: the table's root.
        timeline: the table's.
        clusterings: the pending ones.
        computed: whether rows have a bucket.
    """
    stand = {one.instant for one in clusterings if one.takes_in or (one.groups is not None and not computed)}
    for pending in timeline.pending():
        if pending.action in _FOREIGN and pending not in stand and not _takes_in(storage, pending):
            raise ForeignActionError(
                f"a {pending.action} is pending, and no other write to its file groups is allowed until it ends",
                do_next="finish it or roll it back with the writer that began it, then start again",
                instant=pending.requested_time,
            )


def _takes_in(storage: Storage, pending: Instant) -> bool:
    """Whether a pending instant is a replacecommit of binlake. Raises CorruptDataError, StorageError."""
    if pending.action != REPLACE_COMMIT:
        return False
    announced = pending_intent(storage, pending)
    return announced is not None and announced.whole


def refuse_planned(mine: Intent, clusterings: Iterable[PendingClustering], table: str) -> None:
    """Raise ForeignActionError for a commit that writes a file group of a clustering that Hudi has planned."""
    for planned in clusterings:
        if planned.ours or planned.groups is None:
            continue
        for group in mine.groups:
            if (group.partition_path, group.file_id) in planned.groups:
                raise ForeignActionError(
                    "the commit changes rows of a file group that a pending clustering of Hudi will replace",
                    do_next="execute the clustering (binlake cluster --execute-only, or Hudi), or roll it back",
                    instant=planned.instant.requested_time,
                    table=table,
                    partition=group.partition_path,
                    file_group=group.file_id,
                )


def check_clock(timeline: Timeline, table: str) -> None:
    """Raise ConfigError if the timeline is far ahead of this machine's clock."""
    latest = timeline.latest_time()
    ahead_ms = parse_instant(latest) - now_ms() if latest is not None and is_time(latest) else 0
    if ahead_ms > MAX_CLOCK_SKEW_MS:
        raise ConfigError(
            f"the timeline's newest time is {ahead_ms // 1000} s ahead of this machine's clock",
            do_next="correct the clock, then start again",
            table=table,
            instant=latest,
        )
