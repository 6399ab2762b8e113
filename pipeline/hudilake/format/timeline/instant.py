"""Instants: the actions on a table, and the names of their files in the timeline (layout 2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from hudilake.errors import UnsupportedError

TIMELINE_PATH = ".hoodie/timeline"

COMMIT, DELTA_COMMIT, REPLACE_COMMIT = "commit", "deltacommit", "replacecommit"
COMPACTION, LOG_COMPACTION, CLUSTERING = "compaction", "logcompaction", "clustering"
CLEAN, ROLLBACK, SAVEPOINT, RESTORE, INDEXING = "clean", "rollback", "savepoint", "restore", "indexing"

#: The name of a pending action after it completes.
_COMPLETED_AS = {COMPACTION: COMMIT, LOG_COMPACTION: DELTA_COMMIT, CLUSTERING: REPLACE_COMMIT}
#: Completed actions that add rows or files to the table.
WRITE_ACTIONS = frozenset({COMMIT, DELTA_COMMIT, REPLACE_COMMIT})
COMPLETED_ACTIONS = (DELTA_COMMIT, COMMIT, REPLACE_COMMIT, CLEAN, ROLLBACK, SAVEPOINT, RESTORE, INDEXING)
_ACTIONS = frozenset({*COMPLETED_ACTIONS, *_COMPLETED_AS})

_NAME = re.compile(r"^(\d+)(?:_(\d+))?\.(\w+)(?:\.(\D+))?$")


class State(StrEnum):
    """The state of an instant."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One action on the table. Times are 17 digits ``yyyyMMddHHmmssSSS``; completion_time only when completed."""

    requested_time: str
    action: str
    state: State
    completion_time: str | None = None

    @property
    def completed(self) -> bool:
        """True once its completed file exists."""
        return self.state is State.COMPLETED

    @property
    def file_name(self) -> str:
        """The name of its file in the timeline directory."""
        if self.completed:
            return f"{self.requested_time}_{self.completion_time}.{self.action}"
        if self.action == COMMIT and self.state is State.INFLIGHT:
            return f"{self.requested_time}.inflight"
        return f"{self.requested_time}.{self.action}.{self.state.value}"

    @property
    def path(self) -> str:
        """Its file, relative to the table's root."""
        return f"{TIMELINE_PATH}/{self.file_name}"

    @property
    def identity(self) -> tuple[str, str]:
        """Requested time and action, the same in all three states (a pending compaction completes as a commit)."""
        return self.requested_time, _COMPLETED_AS.get(self.action, self.action)

    def in_state(self, state: State, completion_time: str | None = None) -> Instant:
        """The same action in another state."""
        action = _COMPLETED_AS.get(self.action, self.action) if state is State.COMPLETED else self.action
        return Instant(self.requested_time, action, state, completion_time)


def parse_name(name: str) -> Instant | None:
    """The instant of a file name of the timeline directory; None for a file of another kind.

    A completed file without a completion time (timeline layout 1) is no instant of this layout, as in hudi-rs.
    """
    match = _NAME.match(name)
    if not match:
        return None
    requested, completion, action, state = match.groups()
    if completion:
        return None if state else Instant(requested, action, State.COMPLETED, completion)
    if action == "inflight" and state is None:
        return Instant(requested, COMMIT, State.INFLIGHT)
    if state in (State.REQUESTED, State.INFLIGHT):
        return Instant(requested, action, State(state))
    return None


def known_instant(name: str) -> Instant | None:
    """As ``parse_name``. Raises UnsupportedError for an instant of an unknown action, or one that was completed in an
    older timeline layout: without it, its rows would be missing and its files would seem to be nobody's."""
    instant, match = parse_name(name), _NAME.match(name)
    if instant is not None and instant.action not in (COMPLETED_ACTIONS if instant.completed else _ACTIONS):
        why = f"the action {instant.action!r} is not known in this state"
    elif instant is None and match and match[2] is None and match[3] in _ACTIONS and match[4] is None:
        why = "it is of timeline layout 1"
    else:
        return instant
    raise UnsupportedError(
        f"an instant of the timeline is not understood: {why}",
        do_next="use Hudi for this table",
        path=f"{TIMELINE_PATH}/{name}",
    )
