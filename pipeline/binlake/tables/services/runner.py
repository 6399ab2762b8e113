"""Runs services over tables of a lake from a process of their own: each by the rules of its table, under its lock.

A stream may write the tables at the same time. The timeline is changed under the table's lock; plans that another live
process executes are left alone. A table that fails is reported and stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from binlake.settings import RetentionSettings
from binlake.tables.catalog import CatalogTable
from binlake.tables.lake_table import LakeTable
from binlake.tables.presence import judged
from binlake.tables.services.policy import (
    archival_config,
    archive_if_long,
    clean_if_due,
    clustering_of,
    clusters,
    compaction_of,
)
from hudilake.clock import monotonic_s
from hudilake.commit.clean import read_plan
from hudilake.errors import LakeError
from hudilake.format.files.names import in_partition
from hudilake.locking.ownership import Locking
from hudilake.services.archival import archivable
from hudilake.services.cleaning import CleaningConfig, clean, plan_clean
from hudilake.services.planned import MapTasks, ServiceReport, ServiceSteps, one_by_one, run_planned
from hudilake.table.directory import BrokenTable
from hudilake.table.table import HudiTable

#: Runs a service for a table and puts what it does into the report. Raises LakeError.
Service = Callable[[CatalogTable, ServiceReport], None]


def run_service(tables: Iterable[CatalogTable | BrokenTable], service: Service) -> Iterator[ServiceReport]:
    """Run a service over tables, one after the other; yields the report of each, with its error if it failed."""
    for place in tables:
        began, report = monotonic_s(), ServiceReport(place.name)
        try:
            if isinstance(place, BrokenTable):
                raise place.error
            service(place, report)
        except LakeError as error:
            report.error = judged(place.storage, error) if isinstance(place, CatalogTable) else error
        report.seconds = monotonic_s() - began
        yield report


@dataclass(frozen=True)
class LakeServices:
    """The services of a process, each a ``Service``.

    Args:
        locking: how the tables are shared with their writers.
        steps: what is wanted of each service.
        map_tasks: runs the work of compactions and clusterings.
    """

    locking: Locking
    steps: ServiceSteps
    map_tasks: MapTasks = one_by_one

    def compact(self, place: CatalogTable, report: ServiceReport) -> None:
        """Compact; then see to the metadata table, clean and archive, unless plans alone are wanted.

        A table without compaction in its rules is compacted only if it is asked for by ``steps.now``.
        """
        table = self._open(place)
        service = compaction_of(table, self.map_tasks)
        report.skipped = service.refusal()
        if report.skipped is None:
            run_planned(service, self._steps(asked=place.rules.compaction is not None), report)
        if self.steps.execute:
            report.warning = table.hudi.maintain()
            if (done := clean_if_due(table.hudi, place.rules)) is not None:
                report.counts["cleaned"] = read_plan(place.storage, done).count
            report.counts["archived"] = archive_if_long(table.hudi, place.rules)

    def cluster(self, place: CatalogTable, report: ServiceReport) -> None:
        """Cluster, plans of Hudi too; or say what would be laid out.

        A table without clustering in its rules is clustered only if it is asked for by ``steps.now``.
        """
        table = LakeTable.look(place.storage, place.rules) if self.steps.dry_run else self._open(place)
        service = clustering_of(table, self.map_tasks, of_hudi=True)
        steps = self._steps(asked=clusters(place.rules))
        report.skipped = service.refusal()
        if report.skipped is not None:
            return
        if not steps.dry_run:
            run_planned(service, steps, report)
        else:
            report.dry_run = True
            report.due = "asked for" if steps.now else service.due() if steps.schedule else None
            report.counts |= service.foresee() if report.due is not None else {}

    def clean(self, place: CatalogTable, report: ServiceReport) -> None:
        """Delete the files that the retention does not need; ``steps.dry_run``: only name them."""
        rule = _retention(place, report)
        if rule is None:
            return
        config, plan = CleaningConfig.of(rule), None
        report.dry_run = self.steps.dry_run
        if report.dry_run:
            plan = plan_clean(HudiTable.open(place.storage), config)
        elif (done := clean(self._open(place).hudi, config)) is not None:
            plan = read_plan(place.storage, done)
        if plan is not None:
            report.names += [in_partition(path, name) for path, names in plan.files.items() for name in names]
            report.retained = plan.retained.requested_time if plan.retained is not None else None
        report.counts["files"] = len(report.names)

    def archive(self, place: CatalogTable, report: ServiceReport) -> None:
        """Move the instants that the retention does not need to the history; ``steps.dry_run``: only name them."""
        rule = _retention(place, report)
        if rule is None:
            return
        report.dry_run = self.steps.dry_run
        if report.dry_run:
            table = HudiTable.open(place.storage)
            bounds = archival_config(place.rules, rule).around(table.timeline, CleaningConfig.of(rule))
            report.names += [instant.file_name for instant in archivable(table, bounds)]
            report.counts["instants"] = len(report.names)
        else:
            report.counts["instants"] = archive_if_long(self._open(place).hudi, place.rules)

    def _open(self, place: CatalogTable) -> LakeTable:
        return LakeTable.open(place.storage, place.rules, self.locking)

    def _steps(self, *, asked: bool) -> ServiceSteps:
        """The steps for a table whose rules have the service or not."""
        return self.steps if asked or self.steps.now else replace(self.steps, schedule=False)


def _retention(place: CatalogTable, report: ServiceReport) -> RetentionSettings | None:
    """The retention of a table; None without one, which the report then says."""
    if place.rules.retention is None:
        report.skipped = "the settings give it no retention (retention: null)"
    return place.rules.retention
