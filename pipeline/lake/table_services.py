"""What is done to a table after its commits: its metadata table is tidied up, its log files are compacted, older file
slices are cleaned, and older instants go to the history.

A compaction has two ends that change the timeline, the schedule and the completion, and between them the work. Both
ends take place here, in the thread that commits the table, so that no commit of ours can come in between; the work is
done there too (inline), or in a thread of its own, on Spark, while commits go on (async). What a run leaves pending is
done again by the next: base files bear names that a second attempt uses again.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from pipeline.clock import monotonic_s
from pipeline.errors import BinlakeError
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
from pipeline.lake.lake_table import LakeTable
from pipeline.position.record_reader import RecordKey
from pipeline.settings import CompactionSettings, RetentionSettings, TableRules

#: How long a table is left alone after upkeep that failed.
_PAUSE_S = 60.0
#: Commits that stay in the active timeline beyond those that retention and compaction count there.
_SPARE_COMMITS = 20
#: Instants that go to the history together.
_ARCHIVED_AT_ONCE = 50


@dataclass(frozen=True)
class TableServicesOutcome:
    """What was done after a commit. ``compacted``: the instant of a compaction that completed. ``warning``: what could
    not be done; the commit stands, and it is tried again."""

    compacted: str | None = None
    warning: str | None = None


@dataclass
class _Running:
    job: CompactionJob
    files: Future[list[CompactedFile]]


@dataclass
class TableServices:
    """Looks after all tables of one stream. ``map_tasks``: where compactions work."""

    map_tasks: MapTasks
    _running: dict[str, _Running] = field(default_factory=dict)
    _paused_until: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="binlake-compaction")
    )

    def close(self) -> None:
        """Begin nothing more. What is under way stays pending on its table."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def after_commit(self, table: LakeTable) -> TableServicesOutcome:
        """To be called in the thread that commits the table, between two commits. Raises nothing of binlake's."""
        warning, path = table.table.maintain(), table.rules.path
        if monotonic_s() < self._paused_until.get(path, 0.0):
            return TableServicesOutcome(warning=warning)
        try:
            compacted = self._compact(table)
            if not _left_to_others(table.rules):
                retire(table.table, table.rules, clean=compacted is not None)
        except BinlakeError as error:
            self._paused_until[path] = monotonic_s() + _PAUSE_S
            return TableServicesOutcome(warning=f"the upkeep of the table failed: {error}")
        return TableServicesOutcome(compacted, warning)

    def compact_now(self, table: LakeTable) -> None:
        """Make base files of all log files, due or not, in the calling thread; between two commits. A table whose
        compaction is off or left to another process is left as it is. Errors as ``run``."""
        rule = table.rules.compaction
        if rule is None or _left_to_others(table.rules):
            return
        with self._lock:
            running = self._running.pop(table.rules.path, None)
        if running is not None:
            self._finish(table.table, running)
        run(table.table, compaction_config(table.rules, rule), self.map_tasks, now=True)

    def _compact(self, table: LakeTable) -> str | None:
        rule = table.rules.compaction
        if rule is None or _left_to_others(table.rules):
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


def _left_to_others(rules: TableRules) -> bool:
    return rules.compaction is not None and rules.compaction.mode == "process"


def retire(table: HudiTable, rules: TableRules, *, clean: bool) -> None:
    """Delete what is promised to nobody any more, and shorten the timeline, as the rules say.

    ``clean``: a compaction has completed, for nothing else makes a file slice superfluous. Errors as ``cleaning.clean``
    and ``archive``.
    """
    if clean:
        clean_if_due(table, rules)
    archive_if_long(table, rules)


def clean_if_due(table: HudiTable, rules: TableRules) -> Instant | None:
    """Delete the files that the retention promises to nobody; the clean, if there was one."""
    config = CleaningConfig.of(rules.retention) if rules.retention is not None else None
    return cleaning.clean(table, config) if config is not None and cleaning.due(table, config) else None


def archive_if_long(table: HudiTable, rules: TableRules) -> int:
    """Move instants to the history that the bounds leave no room for; how many."""
    rule = rules.retention
    return archive(table, archival_config(rules, rule), CleaningConfig.of(rule)) if rule is not None else 0


def archival_config(rules: TableRules, rule: RetentionSettings) -> ArchivalConfig:
    """The rules as archival takes them: what retention and the next compaction count stays active."""
    after = rules.compaction.after_commits if rules.compaction is not None else None
    least = max(rule.commits or 0, after or 0) + _SPARE_COMMITS
    return ArchivalConfig(least, least + _ARCHIVED_AT_ONCE, newest_only=(RecordKey.KEYLESS.value,))


def compaction_config(rules: TableRules, rule: CompactionSettings) -> CompactionConfig:
    """The rule as compaction takes it, with the table's codec."""
    return CompactionConfig.of(
        rule,
        compression=rules.compression,
        compression_level=rules.compression_level if rules.compression == "zstd" else None,
    )
