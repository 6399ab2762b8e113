"""Compaction from the schedule to the commit, all steps in one call."""

from __future__ import annotations

from pipeline.hudi.services.compaction.completion import UnsoundPlanError, complete, wait_for_older_writers
from pipeline.hudi.services.compaction.config import CompactionConfig
from pipeline.hudi.services.compaction.job import MapTasks, execute, prepare
from pipeline.hudi.services.compaction.pending import PATIENCE_S, finish_pending, unschedule
from pipeline.hudi.services.compaction.scheduling import due, schedule
from pipeline.hudi.table import HudiTable
from pipeline.hudi.timeline.instant import Instant


def run(
    table: HudiTable,
    config: CompactionConfig,
    map_tasks: MapTasks,
    *,
    now: bool = False,
    patience_s: float = PATIENCE_S,
) -> list[Instant]:
    """Finish what is pending, then compact if it is due; returns the compactions that completed.

    Args:
        table: open; the caller is its one compactor.
        config: the settings.
        map_tasks: runs the tasks.
        now: compact what there is, due or not.
        patience_s: how long to wait for delta commits that were begun before the compaction.

    Errors as those of the steps.
    """
    done = finish_pending(table, config, map_tasks, patience_s)
    table.refresh()
    requested = schedule(table, config) if now or due(table, config) is not None else None
    if requested is None:
        return done
    job = prepare(table, requested, config)
    made = execute(job, map_tasks)
    wait_for_older_writers(table, job.instant.requested_time, patience_s)
    try:
        return [*done, complete(table, job.instant, made)]
    except UnsoundPlanError:
        unschedule(table, job.instant)
        return done
