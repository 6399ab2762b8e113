"""The clustering of one table as a ``PlannedService``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.timeline.instant import Instant
from hudilake.services.clustering.completion import ClusteringResult, Keep, complete, give_up
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.job import ClusteringJob, UnitResult, execute, prepare, waiting
from hudilake.services.clustering.plan import plan
from hudilake.services.clustering.scheduling import busy, due, schedule
from hudilake.services.planned import MapTasks
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class Clustering:
    """A ``PlannedService``.

    Args:
        table: open.
        config: the settings.
        map_tasks: runs the tasks.
        keep: tells the table's index of keys before the instant completes; None for an index that looks at files.
        of_hudi: whether plans of Hudi that wait are carried out too.
        ended: takes in each clustering that has ended.
        in_order: table's root -> completion time of its newest commit when there was nothing to lay out. Services that
            share it look at such files again only after as many commits as make a clustering due.
    """

    table: HudiTable
    config: ClusteringConfig
    map_tasks: MapTasks
    keep: Keep | None = None
    of_hudi: bool = False
    ended: Callable[[ClusteringResult], None] = lambda _: None
    in_order: dict[str, str] = field(default_factory=dict)

    def refusal(self) -> str | None:
        """Why tables whose rows may not leave their file group have none."""
        refused = self.table.config.kind.refusal(TableOperation.CLUSTERING)
        return refused.why if refused is not None else None

    def waiting(self) -> list[Instant]:
        """Plans that nobody executes."""
        return waiting(self.table, of_hudi=self.of_hudi)

    def take_over(self, pending: Instant) -> ClusteringJob | None:
        """The units of the plan that still hold; None also if none does, and the plan was rolled back."""
        return self.prepare(pending)

    def due(self) -> str | None:
        """By commits or age."""
        return due(self.table, self.config.policy, self.in_order.get(self.table.storage.uri, ""))

    def schedule(self) -> Instant | None:
        """A plan of files that become better."""
        planned = schedule(self.table, self.config)
        if planned is None:
            newest = max((i.completion_time or "" for i in self.table.timeline.completed()), default="")
            self.in_order[self.table.storage.uri] = newest
        return planned

    def foresee(self) -> dict[str, int]:
        """What ``schedule`` would plan now: numbers of ``units`` and ``file_groups``, and ``bytes_read``."""
        units = plan(self.table, self.config, busy(self.table))
        groups = sum(len(unit.sources) for unit in units)
        return {"units": len(units), "file_groups": groups, "bytes_read": sum(unit.size for unit in units)}

    def prepare(self, requested: Instant) -> ClusteringJob | None:
        """The units of the plan that hold; None if none does, and the plan was rolled back."""
        return prepare(self.table, requested, self.config)

    def execute(self, job: ClusteringJob) -> list[UnitResult]:
        """Write the new files."""
        return execute(job, self.map_tasks)

    def complete(self, job: ClusteringJob, made: list[UnitResult]) -> ClusteringResult:
        """Publish the units that still hold; on an error the clustering is rolled back."""
        done = complete(self.table, job, made, self.keep)
        self.ended(done)
        return done

    def give_up(self, job: ClusteringJob) -> None:
        """Roll the clustering back."""
        give_up(self.table, job)

    def pending(self) -> list[str]:
        """Those of Hudi too."""
        return [one.instant.requested_time for one in self.table.state.planned()]
