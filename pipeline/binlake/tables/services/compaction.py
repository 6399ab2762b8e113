"""Compaction by a running stream: between its batches (inline) or beside them (async).

A compaction changes the timeline twice, when it is scheduled and when it is completed; the work lies in between. Both
changes are made here, in the thread that commits the table, so that no commit of this process can interleave. The next
run repeats a compaction that a run leaves pending: a second attempt uses the same names of base files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from binlake.tables.lake_table import LakeTable
from binlake.tables.services.beside import Beside, Running
from binlake.tables.services.configs import compaction_config, compacts_here
from hudilake.services.compaction import (
    CompactedFile,
    CompactionConfig,
    CompactionJob,
    abandoned,
    due,
    execute,
    prepare,
    publish_or_unschedule,
    resume,
    run,
    schedule,
)
from hudilake.services.compaction.plan import pending_compactions
from hudilake.services.map_tasks import MapTasks
from hudilake.table.table import HudiTable


@dataclass
class StreamCompaction:
    """The compactions of all tables of one stream. ``map_tasks``: runs their work."""

    map_tasks: MapTasks
    beside: Beside[CompactionJob, list[CompactedFile]] = field(default_factory=lambda: Beside("compaction"))

    def go_on(self, table: LakeTable) -> str | None:
        """Do what is due. Returns the instant of a compaction that completed. Errors as those of the steps."""
        rule = table.rules.compaction
        if rule is None or not compacts_here(table):
            return None
        config = compaction_config(table.rules, rule)
        if rule.mode == "inline":
            return self._inline(table.table, config)
        return self._go_on_beside(table.table, table.rules.path, config)

    def now(self, table: LakeTable) -> None:
        """Compact all log files, due or not. Does nothing if the table is not compacted here. Errors as ``run``."""
        rule = table.rules.compaction
        if rule is None or not compacts_here(table):
            return
        running = self.beside.take(table.rules.path)
        if running is not None:
            _finish(table.table, running)
        run(table.table, compaction_config(table.rules, rule), self.map_tasks, now=True)

    def _inline(self, table: HudiTable, config: CompactionConfig) -> str | None:
        if due(table, config) is None and not pending_compactions(table.timeline):
            return None
        done = run(table, config, self.map_tasks)
        return done[-1].requested_time if done else None

    def _go_on_beside(self, table: HudiTable, path: str, config: CompactionConfig) -> str | None:
        if self.beside.is_at_work(path):
            return None
        running = self.beside.take(path)
        if running is not None:
            return _finish(table, running)
        for pending in abandoned(table):
            if (job := resume(table, pending, config)) is not None:
                self._start(path, job)
            return None
        if due(table, config) is not None and (requested := schedule(table, config)) is not None:
            self._start(path, prepare(table, requested, config))
        return None

    def _start(self, path: str, job: CompactionJob) -> None:
        self.beside.start(path, job, partial(execute, map_tasks=self.map_tasks))


def _finish(table: HudiTable, running: Running[CompactionJob, list[CompactedFile]]) -> str | None:
    try:
        made = running.files.result()
    except BaseException:
        table.ownership.end(running.job.instant.requested_time)
        raise
    completed = publish_or_unschedule(table, running.job, made)
    return completed.requested_time if completed is not None else None
