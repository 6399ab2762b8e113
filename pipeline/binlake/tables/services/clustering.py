"""Clustering by a running stream: between its batches (inline) or beside them (async).

As with compaction, the timeline is changed in the thread that commits the table; the work lies in between. Commits of
the stream may change planned file groups meanwhile: the clustering gives way.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from binlake.tables.lake_table import LakeTable
from binlake.tables.services.beside import Beside
from binlake.tables.services.configs import clustering_config, clusters_here
from hudilake.format.timeline.instant import Instant
from hudilake.services.clustering.completion import Clustered, complete, give_up
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.job import ClusteringJob, execute, prepare, waiting
from hudilake.services.clustering.scheduling import due, schedule
from hudilake.services.clustering.task import LaidOut
from hudilake.services.map_tasks import MapTasks

_log = logging.getLogger(__name__)


@dataclass
class StreamClustering:
    """The clusterings of all tables of one stream. ``map_tasks``: runs their work."""

    map_tasks: MapTasks
    beside: Beside[ClusteringJob, list[LaidOut]] = field(default_factory=lambda: Beside("clustering"))
    #: By path of a table, the completion time of its newest commit when there was nothing to lay out.
    _in_order: dict[str, str] = field(default_factory=dict)

    def go_on(self, table: LakeTable) -> str | None:
        """Do what is due. Returns the instant of a clustering that completed. Errors as those of the steps."""
        path, hudi = table.rules.path, table.table
        if not clusters_here(table) or self.beside.is_at_work(path):
            return None
        running = self.beside.take(path)
        if running is not None:
            try:
                made = running.files.result()
            except BaseException:
                give_up(hudi, running.job)
                raise
            return _told(publish(table, running.job, made))
        config = clustering_config(table.rules)
        planned = next(iter(waiting(hudi, of_hudi=False)), None) or self._planned(table, config)
        job = prepare(hudi, planned, config) if planned is not None else None
        if job is None:
            return None
        if table.rules.clustering.mode == "inline":
            return _told(carry_out(table, job, self.map_tasks))
        self.beside.start(path, job, partial(execute, map_tasks=self.map_tasks))
        return None

    def _planned(self, table: LakeTable, config: ClusteringConfig) -> Instant | None:
        """A new plan, if one is due; files that are in order are looked at again only after as many commits."""
        path, hudi = table.rules.path, table.table
        if due(hudi, config.policy, self._in_order.get(path, "")) is None:
            return None
        planned = schedule(hudi, config)
        if planned is None:
            self._in_order[path] = max(i.completion_time or "" for i in hudi.timeline.completed())
        return planned


def carry_out(table: LakeTable, job: ClusteringJob, map_tasks: MapTasks) -> Clustered:
    """Execute a clustering and complete it, in the calling thread. It is rolled back if it fails. Errors as those of
    the steps."""
    try:
        made = execute(job, map_tasks)
    except BaseException:
        give_up(table.table, job)
        raise
    return publish(table, job, made)


def publish(table: LakeTable, job: ClusteringJob, made: Sequence[LaidOut]) -> Clustered:
    """Complete a clustering whose files are written, and tell the table's index of them. Errors as ``complete``."""
    done = complete(table.table, job, made, table.rows.keep_keys)
    fields = {"event": "clustered", "table": table.rules.path, **vars(done)}
    text = "%s: clustering %s: %d file groups became %d, %d rows; %d units gave way to commits"
    _log.info(text, table.rules.path, done.instant, done.replaced, done.made, done.rows, done.gave_way, extra=fields)
    return done


def _told(done: Clustered) -> str | None:
    return done.instant if done.completed else None
