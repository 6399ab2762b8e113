"""The table services after a commit: metadata table, compaction, clustering, cleaning, and archival."""

from __future__ import annotations

from dataclasses import dataclass, field

from binlake.tables.lake_table import LakeTable
from binlake.tables.services.clustering import StreamClustering
from binlake.tables.services.compaction import StreamCompaction
from binlake.tables.services.configs import compacts_here, left_to_others
from binlake.tables.services.ended_logs import end_logs
from binlake.tables.services.upkeep import retire
from hudilake.clock import monotonic_s
from hudilake.errors import BinlakeError
from hudilake.format.timeline.instant import COMPLETED_ACTIONS
from hudilake.services.map_tasks import MapTasks

#: How long no service runs on a table after one has failed.
_PAUSE_S = 60.0
#: A copy-on-write table is cleaned after so many commits, and after the first one of a process.
_COMMITS_A_CLEAN = 10


@dataclass(frozen=True)
class TableServicesOutcome:
    """The outcome of the services after a commit. ``compacted``, ``clustered``: the instants of a compaction and of a
    clustering that completed. ``warning``: the service that failed; the commit stays, and the service is tried
    again."""

    compacted: str | None = None
    clustered: str | None = None
    warning: str | None = None


@dataclass
class TableServices:
    """Runs the services of all tables of one stream. ``map_tasks``: runs their work."""

    map_tasks: MapTasks
    compaction: StreamCompaction = field(init=False)
    clustering: StreamClustering = field(init=False)
    _paused_until: dict[str, float] = field(default_factory=dict)
    _commits: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.compaction = StreamCompaction(self.map_tasks)
        self.clustering = StreamClustering(self.map_tasks)

    def close(self) -> None:
        """Begin no more services. Those that are running stay pending on their tables."""
        self.compaction.beside.close()
        self.clustering.beside.close()

    def after_commit(self, table: LakeTable) -> TableServicesOutcome:
        """Run the due services. Call it in the thread that commits the table, between two commits. Raises no
        BinlakeError."""
        before = table.table.timeline.latest_time()
        outcome = self._run(table)
        if table.table.timeline.latest_time() != before:
            ended = table.table.timeline.completed_actions(COMPLETED_ACTIONS)
            table.registrar.completed(table.storage.uri, ended[-1].requested_time)
        return outcome

    def _run(self, table: LakeTable) -> TableServicesOutcome:
        warning, path = table.table.maintain(), table.rules.path
        if monotonic_s() < self._paused_until.get(path, 0.0):
            return TableServicesOutcome(warning=warning)
        try:
            compacted = self.compaction.go_on(table)
            clustered = self.clustering.go_on(table)
            if not left_to_others(table.rules):
                ended = compacted is not None or clustered is not None
                retire(table.table, table.rules, clean=ended or self._copied_often(table))
        except BinlakeError as error:
            self._paused_until[path] = monotonic_s() + _PAUSE_S
            return TableServicesOutcome(warning=f"the upkeep of the table failed: {error}")
        return TableServicesOutcome(compacted, clustered, warning)

    def end_logs(self, table: LakeTable, stream: str) -> None:
        """Leave no log file in the table's newest file slices, in the calling thread: before columns take other types.
        Call it between two commits. Log files are compacted, due or not; where the table's compaction is off or left to
        another process, a commit of ``stream`` writes their slices anew. Errors as ``run``."""
        if compacts_here(table):
            self.compaction.now(table)
        else:
            end_logs(table, stream)

    def _copied_often(self, table: LakeTable) -> bool:
        """Whether a table whose commits rewrite base files has had enough of them to look for superfluous slices: every
        commit may make some, and to look for them lists the table's files."""
        kind = table.table.config.kind
        if not (kind.copies or kind.looks_up):
            return False
        count = self._commits[table.rules.path] = self._commits.get(table.rules.path, -1) + 1
        return count % _COMMITS_A_CLEAN == 0
