"""The metadata table's own upkeep, inline after a commit of the data table: compaction, cleaning, archival."""

from __future__ import annotations

from pipeline.errors import CorruptDataError
from pipeline.hudi.metadata.services import cleaning, compaction
from pipeline.hudi.metadata.services.archival import archive
from pipeline.hudi.metadata.services.rollback import finish_rollback, roll_back
from pipeline.hudi.metadata.table import MetadataTable
from pipeline.hudi.timeline.instant import CLEAN, COMPACTION, DELTA_COMMIT, ROLLBACK, Instant


def recover(table: MetadataTable) -> None:
    """At a writer's start, after the data table's pending commits are rolled back: finish or undo what is pending.

    Raises CorruptDataError for an action that completed on the data table without being noted here, StorageError.
    """
    for pending in table.timeline.pending():
        if pending.action == DELTA_COMMIT:
            _undo_unless_pending(table, pending)
        elif pending.action == ROLLBACK and table.data_timeline.find(pending.requested_time) is None:
            finish_rollback(table, pending)
    compaction.finish_pending(table)
    cleaning.finish_pending(table)


def _undo_unless_pending(table: MetadataTable, noted: Instant) -> None:
    on_data = table.data_timeline.find(noted.requested_time)
    if on_data is None and not table.data_timeline.is_completed(noted.requested_time):
        roll_back(table, noted.requested_time, table.clock.next())
    elif on_data is None or on_data.completed:
        raise CorruptDataError(
            "an action completed on the table but not in its metadata table, where its files are missing",
            do_next="run binlake repair to rebuild the metadata table",
            instant=noted.requested_time,
        )


def is_due(table: MetadataTable) -> bool:
    """Whether ``maintain`` has anything to do; looks at counters only."""
    return compaction.compaction_due(table) or any(i.action in (COMPACTION, CLEAN) for i in table.timeline.pending())


def maintain(table: MetadataTable) -> bool:
    """After a commit of the data table completed: compact if it is due, then clean and archive; True if it was.

    To be called under the table's lock. Raises StorageError: the commit stands, and the next call tries again.
    """
    compaction.finish_pending(table)
    cleaning.finish_pending(table)
    if not compaction.compaction_due(table):
        return False
    compaction.compact(table)
    cleaning.clean(table)
    archive(table)
    return True
