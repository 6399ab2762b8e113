"""Instants: the actions on a table, and the names of their files in the timeline.

Layout 2 is that of table versions 8 and 9. Layout 1, of version 6, has the files beside ``hoodie.properties``, and none
of its names says when an action completed: it counts as completed when it was requested.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from hudilake.errors import UnsupportedError

TIMELINE_PATH = ".hoodie/timeline"
_DIRECTORIES = {1: ".hoodie", 2: TIMELINE_PATH}

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
    layout: int = 2

    @property
    def completed(self) -> bool:
        """True once its completed file exists."""
        return self.state is State.COMPLETED

    @property
    def file_name(self) -> str:
        """The name of its file in the timeline directory."""
        if self.completed and self.layout == 1:
            return f"{self.requested_time}.{self.action}"
        if self.completed:
            return f"{self.requested_time}_{self.completion_time}.{self.action}"
        if self.action == COMMIT and self.state is State.INFLIGHT:
            return f"{self.requested_time}.inflight"
        return f"{self.requested_time}.{self.action}.{self.state.value}"

    @property
    def path(self) -> str:
        """Its file, relative to the table's root."""
        return f"{timeline_directory(self.layout)}/{self.file_name}"

    @property
    def identity(self) -> tuple[str, str]:
        """Requested time and action, the same in all three states (a pending compaction completes as a commit)."""
        return self.requested_time, _COMPLETED_AS.get(self.action, self.action)

    def in_state(self, state: State, completion_time: str | None = None) -> Instant:
        """The same action in another state."""
        action = _COMPLETED_AS.get(self.action, self.action) if state is State.COMPLETED else self.action
        return Instant(self.requested_time, action, state, completion_time, self.layout)


def timeline_directory(layout: int) -> str:
    """The directory of the instants' files, relative to the table's root."""
    return _DIRECTORIES[layout]


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


def _parse_older(name: str) -> Instant | None:
    """The instant of a file name of layout 1; None for any other file."""
    match = _NAME.match(name)
    if match is None or match[2] is not None:
        return None
    requested, _, action, state = match.groups()
    if state is None and action == "inflight":
        return Instant(requested, COMMIT, State.INFLIGHT, layout=1)
    if state is None:
        return Instant(requested, action, State.COMPLETED, requested, layout=1)
    if state in (State.REQUESTED, State.INFLIGHT):
        return Instant(requested, action, State(state), layout=1)
    return None


@lru_cache(maxsize=1 << 13)  # a start lists a timeline twice, and each refresh the names of the one before
def known_instant(name: str, layout: int = 2) -> Instant | None:
    """As ``parse_name``, in a layout. Raises UnsupportedError for an instant of an unknown action, or one of the other
    layout: without it, its rows would be missing and its files would seem to be nobody's."""
    instant = (parse_name if layout == 2 else _parse_older)(name)
    if instant is not None and instant.action in (COMPLETED_ACTIONS if instant.completed else _ACTIONS):
        return instant
    match = _NAME.match(name)
    if instant is not None:
        why = f"the action {instant.action!r} is not known in this state"
    elif match and match[3] in _ACTIONS and match[4] is None:
        why = f"it is of timeline layout {3 - layout}"
    else:
        return None
    raise UnsupportedError(
        f"an instant of the timeline is not understood: {why}",
        do_next="use Hudi for this table",
        path=f"{timeline_directory(layout)}/{name}",
    )
