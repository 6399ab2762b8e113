"""The table services after a commit: maintenance of the metadata table, compaction, cleaning, and archival.

A compaction changes the timeline twice, when it is scheduled and when it is completed; the work lies in between. Both
changes are made here, in the thread that commits the table, so that no commit of this process can interleave. The work
runs in the same thread (inline), or in a thread of its own on Spark while commits continue (async). The next run
repeats a compaction that a run leaves pending: a second attempt uses the same names of base files.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from pipeline.clock import monotonic_s
from pipeline.errors import BinlakeError
from pipeline.hudi.definition.merging import Merging
from pipeline.hudi.services import cleaning
from pipeline.hudi.services.archival import ArchivalConfig, archive
from pipeline.hudi.services.cleaning import CleaningConfig
from pipeline.hudi.services.compaction import (
    CompactedFile,
    CompactionConfig,
    CompactionJob,
    MapTasks,
    abandoned,
    due,
    execute,
    prepare,
    publish_or_unschedule,
    resume,
    run,
    schedule,
)
from pipeline.hudi.services.compaction.plan import pending_compactions
from pipeline.hudi.table.table import HudiTable
from pipeline.hudi.timeline.instant import Instant
from pipeline.lake.definition import bloom_fpp, order_of_files
from pipeline.lake.lake_table import LakeTable
from pipeline.merging.tombstone_upkeep import tidy
from pipeline.position.record_reader import RecordKey
from pipeline.settings import CompactionSettings, RetentionSettings, TableRules

#: How long no service runs on a table after one has failed.
_PAUSE_S = 60.0
#: A copy-on-write table is cleaned after so many commits, and after the first one of a process.
_COMMITS_A_CLEAN = 10
#: Commits that stay in the active timeline beyond those that retention and compaction count there.
_SPARE_COMMITS = 20
#: Number of instants that are moved to the history together.
_ARCHIVED_AT_ONCE = 50


@dataclass(frozen=True)
class TableServicesOutcome:
    """The outcome of the services after a commit. ``compacted``: the instant of a compaction that completed.
    ``warning``: the service that failed; the commit stays, and the service is tried again."""

    compacted: str | None = None
    warning: str | None = None


@dataclass
class _Running:
    job: CompactionJob
    files: Future[list[CompactedFile]]


@dataclass
class TableServices:
    """Runs the services of all tables of one stream. ``map_tasks``: runs the work of compactions."""

    map_tasks: MapTasks
    _running: dict[str, _Running] = field(default_factory=dict)
    _paused_until: dict[str, float] = field(default_factory=dict)
    _commits: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="binlake-compaction")
    )

    def close(self) -> None:
        """Begin no more services. Compactions that are running stay pending on their tables."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def after_commit(self, table: LakeTable) -> TableServicesOutcome:
        """Run the due services. Call it in the thread that commits the table, between two commits. Raises no
        BinlakeError."""
        warning, path = table.table.maintain(), table.rules.path
        if monotonic_s() < self._paused_until.get(path, 0.0):
            return TableServicesOutcome(warning=warning)
        try:
            compacted = self._compact(table)
            if not _left_to_others(table.rules):
                retire(table.table, table.rules, clean=compacted is not None or self._copied_often(table))
        except BinlakeError as error:
            self._paused_until[path] = monotonic_s() + _PAUSE_S
            return TableServicesOutcome(warning=f"the upkeep of the table failed: {error}")
        return TableServicesOutcome(compacted, warning)

    def compact_now(self, table: LakeTable) -> None:
        """Compact all log files into base files, due or not, in the calling thread. Call it between two commits. Does
        nothing if the table's compaction is off or left to another process. Errors as ``run``."""
        rule = table.rules.compaction
        if rule is None or _left_to_others(table.rules) or _copies(table.table):
            return
        with self._lock:
            running = self._running.pop(table.rules.path, None)
        if running is not None:
            self._finish(table.table, running)
        run(table.table, compaction_config(table.rules, rule), self.map_tasks, now=True)

    def _copied_often(self, table: LakeTable) -> bool:
        """Whether a table whose commits rewrite base files has had enough of them to look for superfluous slices: every
        commit may make some, and to look for them lists the table's files."""
        if not (_copies(table.table) or table.table.config.kind.looks_up):
            return False
        count = self._commits[table.rules.path] = self._commits.get(table.rules.path, -1) + 1
        return count % _COMMITS_A_CLEAN == 0

    def _compact(self, table: LakeTable) -> str | None:
        rule = table.rules.compaction
        if rule is None or _left_to_others(table.rules) or _copies(table.table):
            return None
        config = compaction_config(table.rules, rule)
        if rule.mode == "inline":
            return self._compact_inline(table.table, config)
        return self._compact_beside(table.table, table.rules.path, config)

    def _compact_inline(self, table: HudiTable, config: CompactionConfig) -> str | None:
        if due(table, config) is None and not pending_compactions(table.timeline):
            return None
        done = run(table, config, self.map_tasks)
        return done[-1].requested_time if done else None

    def _compact_beside(self, table: HudiTable, path: str, config: CompactionConfig) -> str | None:
        with self._lock:
            running = self._running.get(path)
            if running is not None:
                if not running.files.done():
                    return None
                del self._running[path]
        if running is not None:
            return self._finish(table, running)
        for pending in abandoned(table):
            if (job := resume(table, pending, config)) is not None:
                self._start(path, job)
            return None
        if due(table, config) is not None and (requested := schedule(table, config)) is not None:
            self._start(path, prepare(table, requested, config))
        return None

    def _start(self, path: str, job: CompactionJob) -> None:
        with self._lock:
            self._running[path] = _Running(job, self._pool.submit(execute, job, self.map_tasks))

    def _finish(self, table: HudiTable, running: _Running) -> str | None:
        try:
            made = running.files.result()
        except BaseException:
            table.ownership.end(running.job.instant.requested_time)
            raise
        completed = publish_or_unschedule(table, running.job, made)
        return completed.requested_time if completed is not None else None


def _copies(table: HudiTable) -> bool:
    """Whether every commit is what a compaction is elsewhere: it leaves no log files, and makes slices superfluous."""
    return table.config.kind.copies


def _left_to_others(rules: TableRules) -> bool:
    return rules.compaction is not None and rules.compaction.mode == "process"


def retire(table: HudiTable, rules: TableRules, *, clean: bool) -> None:
    """Delete files that the retention no longer keeps, and shorten the timeline, according to the rules.

    ``clean``: whether a compaction has completed, or a commit of a copy-on-write table: only these make a file slice
    superfluous. Errors as ``cleaning.clean`` and ``archive``.
    """
    if clean:
        _tidy_tombstones(table, rules)
        clean_if_due(table, rules)
    archive_if_long(table, rules)


def clean_if_due(table: HudiTable, rules: TableRules) -> Instant | None:
    """Delete the files that the retention no longer keeps. Returns the clean's instant; None if there was none."""
    config = CleaningConfig.of(rules.retention) if rules.retention is not None else None
    return cleaning.clean(table, config) if config is not None and cleaning.due(table, config) else None


def archive_if_long(table: HudiTable, rules: TableRules) -> int:
    """Move the instants beyond the bounds to the history. Returns their number."""
    rule = rules.retention
    if rule is None:
        return 0
    bounds = archival_config(rules, rule)
    if len(table.timeline.completed()) > bounds.max_commits:
        _tidy_tombstones(table, rules)  # those of instants that were rolled back would count after the archival
    return archive(table, bounds, CleaningConfig.of(rule))


def _tidy_tombstones(table: HudiTable, rules: TableRules) -> None:
    if Merging.of(table.config).by_writer or table.config.kind.copies or table.config.kind.looks_up:
        tidy(table, (rules.compaction or CompactionSettings()).tombstone_retention_hours)


def archival_config(rules: TableRules, rule: RetentionSettings) -> ArchivalConfig:
    """The archival configuration: instants that retention and the next compaction count stay active."""
    after = rules.compaction.after_commits if rules.compaction is not None else None
    least = max(rule.commits or 0, after or 0) + _SPARE_COMMITS
    return ArchivalConfig(least, least + _ARCHIVED_AT_ONCE, newest_only=(RecordKey.KEYLESS.value,))


def compaction_config(rules: TableRules, rule: CompactionSettings) -> CompactionConfig:
    """The compaction configuration of a rule, with the table's codec."""
    return CompactionConfig.of(
        rule.model_copy(
            update={"bloom_filter_fpp": bloom_fpp(rules, rule), "order_by": order_of_files(rules, rule)},
        ),
        compression=rules.compression,
        compression_level=rules.compression_level if rules.compression == "zstd" else None,
    )
