"""What is looked at before a writer begins an instant."""

from __future__ import annotations

import re

from pipeline.clock import now_ms, parse_instant
from pipeline.errors import ConfigError, TransientError
from pipeline.hudi.timeline.instant import CLUSTERING, LOG_COMPACTION, REPLACE_COMMIT, RESTORE
from pipeline.hudi.timeline.timeline import Timeline

#: How far the timeline may lie ahead of this machine's clock before the table refuses new instants.
MAX_CLOCK_SKEW_MS = 2 * 3600 * 1000
_INSTANT = re.compile(r"^\d{17}$")
_FOREIGN = (CLUSTERING, LOG_COMPACTION, REPLACE_COMMIT, RESTORE)


class ForeignActionError(TransientError):
    """Another writer is at work on the table's file groups in a way that nothing may be written beside."""


def is_time(instant: str) -> bool:
    """Whether an instant is a date (the metadata table's first ones are not)."""
    return _INSTANT.match(instant) is not None


def refuse_foreign(timeline: Timeline) -> None:
    """Raise ForeignActionError while an action is pending that will replace file groups, or take the table back."""
    for pending in timeline.pending():
        if pending.action in _FOREIGN:
            raise ForeignActionError(
                f"a {pending.action} is pending, and nothing may be written to its file groups meanwhile",
                do_next="finish it, or roll it back, with the writer that began it",
                instant=pending.requested_time,
            )


def check_clock(timeline: Timeline, table: str) -> None:
    """Raise ConfigError if the timeline lies far ahead of this machine's clock."""
    latest = timeline.latest_time()
    ahead_ms = parse_instant(latest) - now_ms() if latest is not None and is_time(latest) else 0
    if ahead_ms > MAX_CLOCK_SKEW_MS:
        raise ConfigError(
            f"the timeline's newest time lies {ahead_ms // 1000} s ahead of this machine's clock",
            do_next="set the clock right, then start again",
            table=table,
            instant=latest,
        )
