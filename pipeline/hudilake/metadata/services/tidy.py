"""Table services of the metadata table, run after a commit of the data table: compaction, cleaning, archival."""

from __future__ import annotations

from hudilake.errors import CorruptDataError
from hudilake.format.timeline.instant import CLEAN, COMPACTION, DELTA_COMMIT, ROLLBACK, Instant
from hudilake.metadata.services import cleaning, compaction
from hudilake.metadata.services.archival import archive
from hudilake.metadata.services.rollback import finish_rollback, roll_back
from hudilake.metadata.table import MetadataTable


def recover(table: MetadataTable) -> None:
    """Finish or undo pending actions, at a writer's start, after the data table's pending commits are rolled back.

    Raises CorruptDataError for an action that completed on the data table and has no entry here, StorageError.
    """
    for pending in table.timeline.pending():
        if pending.action == DELTA_COMMIT:
            _undo_unless_pending(table, pending)
        elif pending.action == ROLLBACK and table.data_timeline.find(pending.requested_time) is None:
            finish_rollback(table, pending)
    compaction.finish_pending(table)
    cleaning.finish_pending(table)


def _undo_unless_pending(table: MetadataTable, recorded: Instant) -> None:
    on_data = table.data_timeline.find(recorded.requested_time)
    if on_data is None and not table.data_timeline.is_completed(recorded.requested_time):
        roll_back(table, recorded.requested_time, table.clock.next())
    elif on_data is None or on_data.completed:
        raise CorruptDataError(
            "an action completed on the table but not in its metadata table, where its files are missing",
            do_next="run binlake repair to rebuild the metadata table",
            instant=recorded.requested_time,
        )


def is_due(table: MetadataTable) -> bool:
    """Whether ``maintain`` has work to do; reads counters only."""
    return compaction.compaction_due(table) or any(i.action in (COMPACTION, CLEAN) for i in table.timeline.pending())


def maintain(table: MetadataTable) -> bool:
    """Compact if it is due, then clean and archive, after a commit of the data table; True if it was due.

    Call it under the table's lock. Raises StorageError: the commit stands, and the next call tries again.
    """
    compaction.finish_pending(table)
    cleaning.finish_pending(table)
    if not compaction.compaction_due(table):
        return False
    compaction.compact(table)
    cleaning.clean(table)
    archive(table)
    return True
