"""Archival of the metadata table's timeline (see ``timeline.history_writer``)."""

from __future__ import annotations

from hudilake.format.timeline.history_writer import move_to_history
from hudilake.format.timeline.instant import CLEAN, COMMIT, DELTA_COMMIT, ROLLBACK
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.services.cleaning import oldest_kept_compaction
from hudilake.metadata.table import MetadataTable

_ARCHIVED = (COMMIT, DELTA_COMMIT, CLEAN, ROLLBACK)


def archive(table: MetadataTable) -> int:
    """Archive old instants of the metadata table's active timeline; returns how many.

    Only instants that completed before the oldest kept slice are archived, so no file on storage needs an archived
    instant for its slice: a compaction's instant stays as long as its base file is the newest of a group.
    """
    before = oldest_kept_compaction(table)
    timeline = table.timeline
    if before is None or len(timeline.completed()) <= table.config.archive_after:
        return 0
    bases = {g.base.name.instant for groups in table.reader.groups.values() for g in groups if g.base is not None}
    old = [
        instant
        for instant in timeline.completed_actions(_ARCHIVED)
        if instant.completion_time is not None and instant.completion_time <= before
        if instant.requested_time not in bases
    ]
    # Delta commits leave without a gap: readers take an absent one for an entry that was never made.
    kept = [i.requested_time for i in timeline.completed_actions((DELTA_COMMIT,)) if i not in old]
    old = [i for i in old if i.action != DELTA_COMMIT or i.requested_time < min(kept, default="~")]
    room = len(timeline.completed()) - table.config.archive_keep
    old = old[: max(room, 0)]
    if old:
        move_to_history(table.storage, old)
        table.timeline = Timeline.load(table.storage)
    return len(old)
