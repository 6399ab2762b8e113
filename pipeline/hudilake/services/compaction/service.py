"""Compaction from the schedule to the commit, all steps in one call."""

from __future__ import annotations

from hudilake.format.timeline.instant import Instant
from hudilake.services.compaction.config import CompactionConfig
from hudilake.services.compaction.job import MapTasks, prepare
from hudilake.services.compaction.pending import PATIENCE_S, carry_out, finish_pending
from hudilake.services.compaction.scheduling import due, schedule
from hudilake.table.table import HudiTable


def run(
    table: HudiTable,
    config: CompactionConfig,
    map_tasks: MapTasks,
    *,
    now: bool = False,
    patience_s: float = PATIENCE_S,
) -> list[Instant]:
    """Finish pending compactions, then compact if it is due; returns the compactions that completed.

    Args:
        table: open.
        config: the settings.
        map_tasks: runs the tasks.
        now: compact even if it is not due, and what a pending clustering of binlake will replace.
        patience_s: how long to wait for delta commits that were begun before the compaction.

    Errors as those of the steps.
    """
    completed_instants = finish_pending(table, config, map_tasks, patience_s)
    table.refresh()
    requested = schedule(table, config, all_groups=now) if now or due(table, config) is not None else None
    if requested is None:
        return completed_instants
    completed = carry_out(table, prepare(table, requested, config), map_tasks, patience_s)
    return completed_instants if completed is None else [*completed_instants, completed]
