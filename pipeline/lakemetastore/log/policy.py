"""How a log is kept and watched.

It stands alone: the catalog, the lakes and the locks of Hive set it, and the log follows it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogPolicy:
    """Settings of a log.

    Args:
        check_after_ms: a state this old may be given without asking the store; 0: the store is asked each time. The
            own commits of a process are in its states at once.
        snapshot_every: versions from one snapshot to the next.
        background: whether snapshots are written by a thread of their own; else by the commit that is due for one.
        turn_timeout_s: the longest wait in the queue of writers, before a writer tries without its turn.
        commit_timeout_s: how long a commit tries while other writers are first, or while the store fails.
        group: the most changes that are written as one version.
    """

    check_after_ms: int = 0
    snapshot_every: int = 200
    background: bool = True
    turn_timeout_s: float = 5.0
    commit_timeout_s: float = 60.0
    group: int = 256
