"""Commits that no writer passed to an index with a memory of its own: then the table, which has the truth, is read.

A writer passes a commit to an index by ``KeyIndex.keep``. The index does not learn of commits of other writers, of
restores, and of commits while its memory was lost.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudilake.format.timeline.instant import COMMIT, DELTA_COMMIT, REPLACE_COMMIT, RESTORE, Instant
from hudilake.table.table import HudiTable

_CHANGING = frozenset({COMMIT, DELTA_COMMIT, REPLACE_COMMIT, RESTORE})


def latest_change(table: HudiTable) -> str:
    """The completion time of the newest commit or restore of the active timeline; "" if there is none."""
    return max((instant.completion_time or "" for instant in _changes(table)), default="")


def changes_since(table: HudiTable, since: str) -> list[Instant]:
    """The commits and restores that completed after a completion time, oldest first, without compactions: they move no
    row to another file group."""
    newer = [instant for instant in _changes(table) if (instant.completion_time or "") > since]
    return [instant for instant in newer if not _is_compaction(table, instant) and _has_files(table, instant)]


def _changes(table: HudiTable) -> Iterable[Instant]:
    return table.timeline.completed_actions(_CHANGING)


def _is_compaction(table: HudiTable, instant: Instant) -> bool:
    """On a merge-on-read table, commits are compactions."""
    return instant.action == table.config.kind.compaction


def _has_files(table: HudiTable, instant: Instant) -> bool:
    """Whether it wrote, replaced or removed files: many commits only record positions."""
    return instant.action in (RESTORE, REPLACE_COMMIT) or bool(table.timeline.commit_metadata(instant).stats)
