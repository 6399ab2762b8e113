"""Clustering of a table from a process of its own (``binlake cluster``). A stream may write the table at the same time.

The timeline is changed under the table's lock. Plans that another live process executes are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from binlake.settings import TableRules
from binlake.tables.catalog import CatalogTable
from binlake.tables.lake_table import LakeTable
from binlake.tables.services.clustering import carry_out
from binlake.tables.services.configs import clustering_config, clusters
from hudilake.clock import monotonic_s
from hudilake.errors import BinlakeError
from hudilake.format.definition import kind_support
from hudilake.format.timeline.instant import Instant
from hudilake.locking.ownership import Locking
from hudilake.services.clustering.completion import Clustered
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.job import prepare, waiting
from hudilake.services.clustering.plan import Unit, plan
from hudilake.services.clustering.scheduling import busy, due, schedule
from hudilake.services.map_tasks import MapTasks


@dataclass(frozen=True)
class Wanted:
    """What is asked for. ``now``: cluster what would become better, due or not. ``schedule``, ``execute``: the two
    steps. ``dry_run``: only say what would be laid out."""

    now: bool = False
    schedule: bool = True
    execute: bool = True
    dry_run: bool = False


@dataclass
class Report:
    """What was done for a table.

    Args:
        table: the table's name.
        due: why a clustering was planned; None if none was.
        scheduled: the instant of the clustering that was planned.
        completed: the clusterings that completed, also those that another process had planned.
        pending: clusterings that are still pending: another process executes them, or execution was not asked for.
        units, file_groups, bytes_read: what a dry run would lay out.
        replaced, made, rows, bytes_written: totals of the completed clusterings: file groups, rows and bytes.
        gave_way: how many units were left out, because commits changed their file groups meanwhile.
        seconds: the total time.
        skipped: why the table is never clustered; None if it can be.
        error: the error that ended it early.
    """

    table: str
    due: str | None = None
    scheduled: str | None = None
    completed: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    units: int = 0
    file_groups: int = 0
    bytes_read: int = 0
    replaced: int = 0
    made: int = 0
    rows: int = 0
    bytes_written: int = 0
    gave_way: int = 0
    seconds: float = 0.0
    skipped: str | None = None
    error: BinlakeError | None = None

    def count(self, done: Clustered) -> None:
        """Add a clustering that has ended."""
        if done.completed:
            self.completed.append(done.instant)
        self.replaced += done.replaced
        self.made += done.made
        self.rows += done.rows
        self.bytes_written += done.bytes_written
        self.gave_way += done.gave_way

    def foresee(self, units: list[Unit]) -> None:
        """Add what would be laid out."""
        self.units = len(units)
        self.file_groups = sum(len(unit.sources) for unit in units)
        self.bytes_read = sum(unit.size for unit in units)


def cluster(place: CatalogTable, locking: Locking, map_tasks: MapTasks, wanted: Wanted) -> Report:
    """Cluster a table as far as it is asked for. A BinlakeError is put into the report and not raised.

    Args:
        place: the table.
        locking: how the table is shared with its writers.
        map_tasks: runs the work.
        wanted: what is asked for.
    """
    started, report = monotonic_s(), Report(place.name)
    try:
        _cluster(place, locking, map_tasks, wanted, report)
    except BinlakeError as error:
        report.error = error
    report.seconds = monotonic_s() - started
    return report


def _cluster(place: CatalogTable, locking: Locking, map_tasks: MapTasks, wanted: Wanted, report: Report) -> None:
    rules = place.rules
    table = LakeTable.look(place.storage, rules) if wanted.dry_run else LakeTable.open(place.storage, rules, locking)
    hudi, config = table.table, clustering_config(rules)
    if (refusal := kind_support.refusal(hudi.config.kind, kind_support.Operation.CLUSTERING)) is not None:
        report.skipped = refusal.why
        return
    if wanted.dry_run:
        report.due = _reason(table, rules, config, wanted)
        if report.due is not None:
            report.foresee(plan(hudi, config, busy(hudi)))
        return
    if wanted.execute:
        for left in waiting(hudi, of_hudi=True):
            _carry_out(table, left, config, map_tasks, report)
    if wanted.schedule and (requested := _scheduled(table, rules, config, wanted, report)) is not None:
        if wanted.execute:
            _carry_out(table, requested, config, map_tasks, report)
        else:
            hudi.ownership.end(requested.requested_time)  # so that another process may execute it
    report.pending = [one.instant.requested_time for one in hudi.planned()]


def _reason(table: LakeTable, rules: TableRules, config: ClusteringConfig, wanted: Wanted) -> str | None:
    if wanted.now:
        return "asked for"
    return due(table.table, config.policy) if clusters(rules) else None


def _scheduled(
    table: LakeTable, rules: TableRules, config: ClusteringConfig, wanted: Wanted, report: Report
) -> Instant | None:
    reason = _reason(table, rules, config, wanted)
    requested = schedule(table.table, config) if reason is not None else None
    if requested is not None:
        report.due, report.scheduled = reason, requested.requested_time
    return requested


def _carry_out(
    table: LakeTable, requested: Instant, config: ClusteringConfig, map_tasks: MapTasks, report: Report
) -> None:
    """Execute a plan and complete it."""
    job = prepare(table.table, requested, config)
    if job is not None:
        report.count(carry_out(table, job, map_tasks))
