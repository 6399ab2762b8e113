"""Another process that clusters a table while the stream writes it, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field

from binlake.decode.changes import SourceTable
from binlake.tables.lake import locking
from binlake.tables.lake_table import LakeTable
from binlake.tables.services.policy import clustering_config, clustering_of
from hudilake.format.timeline.instant import Instant
from hudilake.services.clustering.completion import ClusteringResult
from hudilake.services.clustering.job import ClusteringJob, UnitResult, execute, prepare, waiting
from hudilake.services.clustering.scheduling import schedule
from hudilake.services.planned import MapTasks
from hudilake.storage import open_storage
from tests.binlake.tables.clustered import ClusteredLake


@dataclass
class Clusterer:
    """One open table, and the clustering in hand. Steps that have nothing to do do nothing."""

    here: ClusteredLake
    table: LakeTable = field(init=False)
    job: ClusteringJob | None = None
    made: list[UnitResult] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        """A new process; what an earlier one was executing is dead."""
        if self.job is not None:
            self.table.hudi.ownership.end(self.job.time)
        self.job, self.made = None, []
        config = self.here.config
        rules = config.table_rules(SourceTable("shop", "a"))
        self.table = LakeTable.open(open_storage(str(self.here.place)), rules, locking(config.locking, "clusterer"))

    def plan(self) -> Instant | None:
        """Schedule a clustering, which anybody may execute."""
        planned = schedule(self.table.hudi, clustering_config(self.table.rules))
        if planned is not None:
            self.table.hudi.ownership.end(planned.requested_time)
        return planned

    def begin(self, map_tasks: MapTasks | None = None) -> None:
        """Execute the first plan that waits."""
        if self.job is not None:
            return
        self.table.hudi.refresh()
        for planned in waiting(self.table.hudi, of_hudi=True)[:1]:
            self.job = prepare(self.table.hudi, planned, clustering_config(self.table.rules))
            if self.job is not None:
                self.made = execute(self.job, map_tasks or self.here.gate)

    def end(self) -> ClusteringResult | None:
        """Complete it."""
        if self.job is None:
            return None
        job, self.job = self.job, None
        return clustering_of(self.table, self.here.gate).complete(job, self.made)

    def whole(self) -> ClusteringResult | None:
        """All steps."""
        self.plan()
        self.begin()
        return self.end()
