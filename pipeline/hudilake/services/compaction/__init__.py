"""Compaction: log files become base files, on a schedule, in steps that can each be repeated.

1. ``schedule`` writes ``<t>.compaction.requested`` with the plan: which files of which file groups. From then on delta
   commits that complete belong to the next file slice of those groups, whatever their requested time.
2. ``execute`` writes one base file for each operation, in tasks that need nothing but the plan.
3. ``complete`` records the files in the metadata table, then creates ``<t>_<completion>.commit``.

``run`` compacts if it is due; ``finish_pending`` continues after a crash. Steps 1 and 3 change the timeline, under the
table's lock. Step 2 may run in another thread or process while the table's writer continues; a heartbeat shows other
processes that the compaction is running.
"""

from hudilake.commit.compaction_plan import CompactionPlan, Operation
from hudilake.services.compaction.completion import (
    OlderWriterError,
    UnsoundPlanError,
    complete,
    wait_for_older_writers,
)
from hudilake.services.compaction.config import CompactionConfig
from hudilake.services.compaction.job import CompactionJob, MapTasks, execute, prepare
from hudilake.services.compaction.pending import (
    abandoned,
    publish_or_unschedule,
    resume,
    unschedule,
)
from hudilake.services.compaction.scheduling import due, schedule
from hudilake.services.compaction.service import Compaction, finish_pending, run
from hudilake.services.compaction.task import CompactedFile, CompactionContext, compact_file_group

__all__ = [
    "CompactedFile",
    "Compaction",
    "CompactionConfig",
    "CompactionContext",
    "CompactionJob",
    "CompactionPlan",
    "MapTasks",
    "OlderWriterError",
    "Operation",
    "UnsoundPlanError",
    "abandoned",
    "compact_file_group",
    "complete",
    "due",
    "execute",
    "finish_pending",
    "prepare",
    "publish_or_unschedule",
    "resume",
    "run",
    "schedule",
    "unschedule",
    "wait_for_older_writers",
]
