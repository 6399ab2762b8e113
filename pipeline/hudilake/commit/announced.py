"""Intents on storage, in the form of Hudi's commit metadata.

Hudi writes the file groups that a delta commit will write into its inflight file (the workload profile: write stats
without paths), and each completed file names the files that were written. Ours say the same in the same form, so both
see each other's file groups. What Hudi has no field for is in one key of the extra metadata: whether the commit depends
on the whole table; the columns, inserts and deletes of file groups of which not whole rows are written; and file groups
that it decides on without a file of theirs. A commit without the key writes whole rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from hudilake.commit.intent import GroupIntent, Intent
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.commit_metadata import CommitMetadata, WriteStat
from hudilake.format.timeline.instant import CLUSTERING, REPLACE_COMMIT, RESTORE, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage, StorageNotFoundError

INTENT_KEY = "binlake.intent"
_WHOLE, _GROUPS = "whole", "groups"
#: The operation of a clustering in its completed file.
_CLUSTER = "CLUSTER"


def announcement(intent: Intent) -> bytes:
    """The body of the requested and of the inflight file of an instant."""
    stats = tuple(WriteStat(group.partition_path, group.file_id, "", "null") for group in intent.groups)
    return CommitMetadata(stats, intent_extra(intent, {(s.partition_path, s.file_id) for s in stats})).to_bytes()


def intent_extra(intent: Intent, files: Collection[tuple[str, str]]) -> dict[str, str]:
    """The extra metadata that an intent adds; empty if it writes whole rows of file groups that have write stats.

    ``files``: partition path and file id of the file groups with write stats.
    """
    said: dict[str, Any] = {_WHOLE: True} if intent.whole else {}
    if parts := [
        _said(g) for g in intent.groups if g.columns is not None or (g.partition_path, g.file_id) not in files
    ]:
        said[_GROUPS] = parts
    return {INTENT_KEY: json.dumps(said, separators=(",", ":"), ensure_ascii=False)} if said else {}


def intent_of(instant: Instant, body: CommitMetadata) -> Intent:
    """The intent in the metadata of a delta commit or commit, ours or Hudi's. Raises ValueError, KeyError, TypeError
    for a value that cannot be read."""
    said = json.loads(body.extra.get(INTENT_KEY) or "{}")
    parts = {(path, file_id): written for path, file_id, *written in said.get(_GROUPS, ())}
    groups = []
    for path, file_id in {(stat.partition_path, stat.file_id) for stat in body.stats} | parts.keys():
        columns, inserts, deletes = parts.get((path, file_id), (None, True, True))
        groups.append(GroupIntent(path, file_id, frozenset(columns) if columns is not None else None, inserts, deletes))
    return Intent.of_groups(groups, whole=bool(said.get(_WHOLE))).at(instant.requested_time, instant.action)


def clustered_intent(timeline: Timeline, instant: Instant) -> Intent | None:
    """The file groups that a completed clustering has replaced; None for any other write, and for the resize of buckets
    by binlake. Raises CorruptDataError, StorageError."""
    if instant.action != REPLACE_COMMIT:
        return None
    body = timeline.commit_metadata(instant)
    if body.operation != _CLUSTER or json.loads(body.extra.get(INTENT_KEY) or "{}").get(_WHOLE):
        return None
    groups = (GroupIntent(path, name) for path, names in (body.replaced or {}).items() for name in names)
    return replace(Intent.of_groups(groups).at(instant.requested_time, instant.action), clusters=True)


def completed_intent(timeline: Timeline, instant: Instant) -> Intent:
    """What a completed write has written. What replaces file groups or restores the table, and a commit whose intent
    cannot be read, counts as a write of the whole table. Raises CorruptDataError, StorageError."""
    whole = Intent(instant.requested_time, instant.action, whole=True)
    if instant.action in (RESTORE, REPLACE_COMMIT):
        return whole
    try:
        return intent_of(instant, timeline.commit_metadata(instant))
    except (ValueError, KeyError, TypeError):
        return whole


def pending_intent(storage: Storage, instant: Instant) -> Intent | None:
    """What a pending delta commit has announced; None if it has announced nothing yet or has ended. Raises
    CorruptDataError, StorageError."""
    for state in (State.INFLIGHT, State.REQUESTED):
        path = instant.in_state(state).path
        try:
            data = storage.read(path)
        except StorageNotFoundError:
            continue
        if data:
            try:
                return intent_of(instant, _announced(instant, state, data, path))
            except (ValueError, KeyError, TypeError):
                return None
    return None


def _announced(instant: Instant, state: State, data: bytes, path: str) -> CommitMetadata:
    """The requested file of what replaces file groups has another form, with the same extra metadata."""
    if state is State.REQUESTED and instant.action in (REPLACE_COMMIT, CLUSTERING):
        return CommitMetadata(extra=decode_container(data, path).get("extraMetadata") or {})
    return CommitMetadata.from_bytes(data, path)


def _said(group: GroupIntent) -> tuple[str, str, list[str] | None, bool, bool]:
    columns = sorted(group.columns) if group.columns is not None else None
    return group.partition_path, group.file_id, columns, group.inserts, group.deletes
