"""The table services after a commit of a stream: metadata table, compaction, clustering, cleaning, and archival.

A compaction or a clustering changes the timeline when it is planned and when it completes; the work lies in between.
Both changes are made in the thread that commits the table, so that no commit of this process can interleave; the work
is done there too (inline) or in a thread beside the commits (async). Commits meanwhile may change file groups that a
clustering has planned: the clustering gives way.

Where columns take other types, hudi-rs 0.5.0 reads a file slice only if its log files agree in the types of all columns
(measured; the base file may differ). So log files are ended before: by a compaction, or in one commit of the table
where nobody compacts it, or another process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from binlake.position.commit_record import CommitRecord
from binlake.rows.merging.write import write_anew
from binlake.rows.upsert.route import KEY, Counts
from binlake.tables.lake_table import LakeTable
from binlake.tables.services.policy import (
    clustering_of,
    clusters_here,
    compaction_of,
    compacts_here,
    left_to_others,
    retire,
)
from hudilake.clock import monotonic_s
from hudilake.commit.intent import WHOLE_TABLE
from hudilake.errors import LakeError
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.instant import COMPLETED_ACTIONS
from hudilake.read.slice import read_deletes, read_file_slice
from hudilake.services.clustering.job import ClusteringJob, UnitResult
from hudilake.services.compaction import CompactedFile, CompactionJob
from hudilake.services.planned import MapTasks, PlannedService, ServiceReport, ServiceSteps, run_planned
from hudilake.write.group_writer import GroupWriter

Job = TypeVar("Job")
Made = TypeVar("Made")

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


@dataclass(frozen=True)
class _StreamJob(Generic[Job, Made]):
    """A job under way, and what it will have made."""

    job: Job
    made: Future[Made]


@dataclass
class StreamService(Generic[Job, Made]):
    """A planned service of all tables of a stream: at most one job for each table, one after the other.

    ``name``: of the service, for its thread.
    """

    name: str
    _running: dict[str, _StreamJob[Job, Made]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pool: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"binlake-{self.name}")

    def go_on(self, service: PlannedService[Job, Made], path: str, *, inline: bool) -> str | None:
        """Do what is due for a table, between two of its commits. Returns the instant of a job that completed.

        Args:
            service: of the table.
            path: the table's.
            inline: whether the work is done in this thread, or else beside it.

        Raises as the service's methods.
        """
        if self.is_at_work(path):
            return None
        if self._has(path):
            return self.end(service, path)
        if inline:
            return self._inline(service, path)
        job = self._next(service)
        if job is not None:
            with self._lock:
                self._running[path] = _StreamJob(job, self._pool.submit(service.execute, job))
        return None

    def end(self, service: PlannedService[Job, Made], path: str) -> str | None:
        """Wait for the job of a table, if it has one, and complete it. Returns its instant if it completed."""
        with self._lock:
            running = self._running.pop(path, None)
        if running is None:
            return None
        try:
            made = running.made.result()
        except BaseException:
            service.give_up(running.job)
            raise
        outcome = service.complete(running.job, made)
        return outcome.instant if outcome.completed else None

    def is_at_work(self, path: str) -> bool:
        """Whether a table's job has not ended yet."""
        with self._lock:
            running = self._running.get(path)
            return running is not None and not running.made.done()

    def __iter__(self) -> Iterator[Future[Made]]:
        """What the jobs under way will have made."""
        with self._lock:
            return iter([running.made for running in self._running.values()])

    def close(self) -> None:
        """Begin no more jobs. Those that are running stay pending on their tables."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _has(self, path: str) -> bool:
        with self._lock:
            return path in self._running

    def _inline(self, service: PlannedService[Job, Made], path: str) -> str | None:
        if service.due() is None and not service.waiting():
            return None
        report = ServiceReport(path)
        service.table.refresh()
        run_planned(service, ServiceSteps(), report)
        return report.completed[-1] if report.completed else None

    def _next(self, service: PlannedService[Job, Made]) -> Job | None:
        """A job that was left by another process, or a new one if it is due."""
        for pending in service.waiting():
            return service.take_over(pending)
        requested = service.schedule() if service.due() is not None else None
        return service.prepare(requested) if requested is not None else None


@dataclass
class TableServices:
    """Runs the services of all tables of one stream. ``map_tasks``: runs their work."""

    map_tasks: MapTasks
    compaction: StreamService[CompactionJob, list[CompactedFile]] = field(
        default_factory=lambda: StreamService("compaction")
    )
    clustering: StreamService[ClusteringJob, list[UnitResult]] = field(
        default_factory=lambda: StreamService("clustering")
    )
    #: Table's root -> completion time of its newest commit when a clustering had nothing to lay out.
    _in_order: dict[str, str] = field(default_factory=dict)
    _paused_until: dict[str, float] = field(default_factory=dict)
    _commits: dict[str, int] = field(default_factory=dict)

    def close(self) -> None:
        """Begin no more services. Those that are running stay pending on their tables."""
        self.compaction.close()
        self.clustering.close()

    def after_commit(self, table: LakeTable) -> TableServicesOutcome:
        """Run the due services. Call it in the thread that commits the table, between two commits. Raises no
        LakeError."""
        before = table.hudi.timeline.latest_time()
        outcome = self._run(table)
        if table.hudi.timeline.latest_time() != before:
            ended = table.hudi.timeline.completed_actions(COMPLETED_ACTIONS)
            table.registrar.completed(table.storage.uri, ended[-1].requested_time)
        return outcome

    def _run(self, table: LakeTable) -> TableServicesOutcome:
        warning, path = table.hudi.maintain(), table.rules.path
        if monotonic_s() < self._paused_until.get(path, 0.0):
            return TableServicesOutcome(warning=warning)
        try:
            compacted, clustered = self._compact(table), self._cluster(table)
            if not left_to_others(table.rules):
                ended = compacted is not None or clustered is not None
                retire(table.hudi, table.rules, clean=ended or self._copied_often(table))
        except LakeError as error:
            self._paused_until[path] = monotonic_s() + _PAUSE_S
            return TableServicesOutcome(warning=f"the upkeep of the table failed: {error}")
        return TableServicesOutcome(compacted, clustered, warning)

    def end_logs(self, table: LakeTable, stream: str) -> None:
        """Leave no log file in the table's newest file slices, in the calling thread: before columns take other types.
        Call it between two commits. Log files are compacted, due or not; where the table's compaction is off or left to
        another process, a commit of ``stream`` writes their slices anew. Raises as ``run_planned``."""
        if not compacts_here(table):
            end_logs(table, stream)
            return
        service = replace(compaction_of(table, self.map_tasks), all_groups=True)
        self.compaction.end(service, table.rules.path)
        table.hudi.refresh()
        run_planned(service, ServiceSteps(now=True), ServiceReport(table.rules.path))

    def _compact(self, table: LakeTable) -> str | None:
        rule = table.rules.compaction
        if rule is None or not compacts_here(table):
            return None
        inline = rule.mode == "inline"
        return self.compaction.go_on(
            compaction_of(table, self.map_tasks, inline=inline), table.rules.path, inline=inline
        )

    def _cluster(self, table: LakeTable) -> str | None:
        if not clusters_here(table):
            return None
        service = replace(clustering_of(table, self.map_tasks), in_order=self._in_order)
        return self.clustering.go_on(service, table.rules.path, inline=table.rules.clustering.mode == "inline")

    def _copied_often(self, table: LakeTable) -> bool:
        """Whether a table whose commits rewrite base files has had enough of them to look for superfluous slices: every
        commit may make some, and to look for them lists the table's files."""
        if not table.hudi.config.kind.rewrites:
            return False
        count = self._commits[table.rules.path] = self._commits.get(table.rules.path, -1) + 1
        return count % _COMMITS_A_CLEAN == 0


def end_logs(table: LakeTable, stream: str) -> int:
    """Write the slices that have log files anew, one after the other. Returns how many there were.

    Args:
        table: open.
        stream: of the commit, which covers no offsets.

    Raises LakeError; the table is unchanged then.
    """
    with table.hudi.exclusively():
        table.refresh(stream)
        pieces = [piece for piece in table.rows.changeable() if piece.log_files]
        if not pieces or table.source is None:
            return 0
        context = table.begin(table.hudi.schema, WHOLE_TABLE)
        with table.undone_on_error(context.instant):
            writer = table.rows.group_writer(context)
            results = [result for piece in pieces for result in _anew(table, writer, piece)]
            table.commit(context, results, CommitRecord(stream, 0, Counts(), table.source, table.origin))
    return len(pieces)


def _anew(table: LakeTable, writer: GroupWriter, piece: FileSlice) -> list[WriteResult]:
    rows = read_file_slice(table.hudi, piece, [KEY, *table.hudi.schema.names])
    deletes = read_deletes(table.hudi, piece)  # older rows that come late must not return
    kept = deletes.sort_by(KEY) if len(deletes) else None
    return write_anew(
        table.storage, writer, FileGroupWrite(piece.partition_path, piece.file_id, rows.sort_by(KEY), kept)
    )
