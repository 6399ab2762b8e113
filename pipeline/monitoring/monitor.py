"""What a running stream measures of itself: metrics for Prometheus, and whether it is well.

All of it comes from what the process knows: the progress of its batches, its ledger, its open tables, and the ends of
the topics, which are asked for at intervals. A scrape reads memory alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pipeline.clock import monotonic_s
from pipeline.errors import BinlakeError
from pipeline.hudi.services.compaction.plan import pending_compactions
from pipeline.lake.lake import Lake
from pipeline.monitoring.exposition import Metrics
from pipeline.monitoring.progress import ProgressEvent, TableProgress
from pipeline.position.ledger import Ledger
from pipeline.source.ranges import Positions, merged

_SECONDS = (0.05, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300)
#: The fates of ``binlake_records_total``.
FATES = ("applied", "superseded", "filtered", "quarantined", "already_applied")
#: The table of records that belong to none.
NO_TABLE = "-"
#: How long a table's sizes are good for: they are counted between two batches.
_SIZES_EVERY_S = 15.0
_NAMED = 5


@dataclass(frozen=True)
class Health:
    """Whether a stream is well; if not, why."""

    reasons: tuple[str, ...] = ()

    @property
    def well(self) -> bool:
        """Whether there is nothing to say."""
        return not self.reasons


@dataclass
class _Known:
    """The stream from inside, once it is open."""

    lake: Lake
    ledger: Ledger


@dataclass
class _Moment:
    """What the last look saw. ``finished_s``: when the last batch was done, on the monotonic clock."""

    finished_s: float
    positions: Positions = field(default_factory=dict)
    ends: Positions = field(default_factory=dict)
    behind: tuple[str, ...] = ()


class Monitor:
    """The metrics of one stream. ``update`` is for the thread of the batches, everything else for any.

    Args:
        stalled_s: after how long without a finished batch a stream that lags is not well.
        clock: monotonic seconds.
    """

    def __init__(self, stalled_s: float, clock: Callable[[], float] = monotonic_s) -> None:
        self._stalled_s = stalled_s
        self._clock = clock
        self._known: _Known | None = None
        self._at = _Moment(clock())
        self._sizes_s: dict[str, float] = {}
        self.metrics = metrics = Metrics()
        m = metrics
        self._batches = m.counter("binlake_batches_total", "Batches finished.")
        self._batch = m.histogram("binlake_batch_seconds", "From the trigger to the last table's commit.", _SECONDS)
        self._stage = m.histogram("binlake_stage_seconds", "Time of a batch by stage.", _SECONDS, "stage")
        self._commit = m.histogram("binlake_commit_seconds", "From the trigger to a table's visible commit.", _SECONDS)
        self._age = m.gauge("binlake_last_batch_age_seconds", "Since the last batch finished, or since the start.")
        self._position = m.gauge("binlake_position", "The next offset that will be read.", "topic", "partition")
        self._lag = m.gauge("binlake_lag", "Offsets between position and end.", "topic", "partition")
        self._kafka = m.gauge("binlake_kafka_answers", "Whether Kafka told the ends of the topics when last asked.")
        self._healthy = m.gauge("binlake_healthy", "What /health says.")
        self._by_table(m)

    def _by_table(self, m: Metrics) -> None:
        self._records = m.counter("binlake_records_total", "Records by what became of them.", "table", "fate")
        self._commits = m.counter("binlake_commits_total", "Commits of a table.", "table")
        self._bytes = m.counter("binlake_written_bytes_total", "Bytes of the commits' files.", "table")
        self._errors = m.counter("binlake_table_errors_total", "Batches that a table could not commit.", "table")
        self._warnings = m.counter("binlake_table_warnings_total", "What went wrong beside commits.", "table")
        self._compactions = m.counter("binlake_compactions_total", "Compactions that completed.", "table")
        text = "Visible commit time minus the source's time of the oldest and the newest change, last commit."
        self._freshness = m.gauge("binlake_freshness_seconds", text, "table", "change")
        self._behind = m.gauge("binlake_table_behind", "Whether a table must be caught up.", "table")
        self._log_bytes = m.gauge("binlake_log_bytes", "Log files of the newest file slices.", "table")
        self._base_bytes = m.gauge("binlake_base_bytes", "Base files of the newest file slices.", "table")
        self._ratio = m.gauge("binlake_log_base_ratio", "Log bytes over base bytes.", "table")
        self._pending = m.gauge("binlake_pending_compactions", "Compactions that are not completed.", "table")

    def attach(self, lake: Lake, ledger: Ledger) -> None:
        """The stream is open: from now on its positions and tables are known."""
        with self.metrics.lock:
            self._known = _Known(lake, ledger)
            self._look(finished=False)

    def update(self, event: ProgressEvent) -> None:
        """Take in a finished batch, in the thread that ran it. Raises nothing of binlake's."""
        with self.metrics.lock:
            self._count(event)
            for p in event.partitions:
                ends = self._at.ends.setdefault(p.topic, {})
                ends[p.partition] = max(p.end, ends.get(p.partition, 0))
            self._look(finished=True)
        for part in event.tables:
            if part.commit_instant is not None:
                self._measure(part)

    def kafka_said(self, ends: Positions | None) -> None:
        """Take in the ends of the topics; None if Kafka gave no answer."""
        with self.metrics.lock:
            self._kafka.set(ends is not None)
            self._at.ends = merged(self._at.ends, ends or {})
            self._tell_lag()

    def positions(self) -> Positions:
        """Where the stream stands, as of the last look."""
        with self.metrics.lock:
            return {topic: dict(parts) for topic, parts in self._at.positions.items()}

    def health(self) -> Health:
        """Whether the stream gets on and no table is left behind."""
        with self.metrics.lock:
            reasons, age_s = [], self._clock() - self._at.finished_s
            lag = sum(self._lags().values())
            if lag and age_s > self._stalled_s:
                reasons.append(f"no batch has finished for {age_s:.0f} s, and {lag} offsets wait")
            if behind := self._at.behind:
                more = f" and {len(behind) - _NAMED} more" if len(behind) > _NAMED else ""
                reasons.append(f"behind: {', '.join(behind[:_NAMED])}{more}")
            return Health(tuple(reasons))

    def render(self) -> str:
        """The metrics of this moment, as Prometheus reads them."""
        with self.metrics.lock:
            self._age.set(self._clock() - self._at.finished_s)
            self._healthy.set(self.health().well)
            return self.metrics.render()

    # -- inside, with the lock held -------------------------------------------------------------------------------

    def _look(self, *, finished: bool) -> None:
        at, known = self._at, self._known
        if finished:
            at.finished_s = self._clock()
        if known is None:
            return
        at.positions = {topic: dict(parts) for topic, parts in known.ledger.positions.items()}
        before, at.behind = at.behind, tuple(sorted(map(str, known.ledger.behind)))
        for table in {*before, *at.behind}:
            self._behind.set(table in at.behind, table)
        for topic, parts in at.positions.items():
            for partition, offset in parts.items():
                self._position.set(offset, topic, str(partition))
        self._tell_lag()

    def _lags(self) -> dict[tuple[str, int], int]:
        return {
            (topic, partition): max(0, end - self._at.positions[topic][partition])
            for topic, parts in self._at.ends.items()
            for partition, end in parts.items()
            if partition in self._at.positions.get(topic, {})
        }

    def _tell_lag(self) -> None:
        for (topic, partition), lag in self._lags().items():
            self._lag.set(lag, topic, str(partition))

    def _count(self, event: ProgressEvent) -> None:
        self._batches.add(1)
        self._batch.observe(event.latency_ms / 1000)
        for stage, ms in event.stage_ms.items():
            self._stage.observe(ms / 1000, stage)
        self._records.add(sum(event.filtered.values()), NO_TABLE, "filtered")
        self._records.add(event.quarantined, NO_TABLE, "quarantined")
        for part in event.tables:
            self._count_table(part)

    def _count_table(self, part: TableProgress) -> None:
        name = part.table
        self._errors.add(part.error is not None, name)
        self._warnings.add(part.warning is not None, name)
        if part.error is not None:
            return  # its records come again when it is caught up
        for fate in FATES:
            self._records.add(getattr(part, fate), name, fate)
        self._compactions.add(part.compaction_instant is not None, name)
        if part.commit_instant is None:
            return
        self._commits.add(1, name)
        self._bytes.add(part.bytes_written, name)
        if part.commit_latency_ms is not None:
            self._commit.observe(part.commit_latency_ms / 1000)
        for change, ms in (("oldest", part.freshness_oldest_ms), ("newest", part.freshness_newest_ms)):
            if ms is not None:
                self._freshness.set(ms / 1000, name, change)

    # -- the thread of the batches --------------------------------------------------------------------------------

    def _measure(self, part: TableProgress) -> None:
        """Count a table's bytes, at intervals: its files are listed in memory where it has a metadata table, and
        are not counted where it has none."""
        name, now = part.table, self._clock()
        fresh = name in self._sizes_s and now - self._sizes_s[name] < _SIZES_EVERY_S
        if self._known is None or (fresh and part.compaction_instant is None):
            return
        path = next((path for source, path in self._known.ledger.tables.items() if str(source) == name), None)
        opened = self._known.lake.opened(path) if path is not None else None
        if opened is None:
            return
        self._sizes_s[name] = now
        try:
            pending = len(pending_compactions(opened.table.timeline))
            indexed = bool(opened.table.config.metadata_partitions)
            sizes = [(s.log_size, s.base_size) for s in opened.table.file_slices()] if indexed else None
        except BinlakeError:
            return  # the next batch tells, if it is more than a passing outage
        with self.metrics.lock:
            self._pending.set(pending, name)
            if sizes is not None:
                self._tell_sizes(name, sum(log for log, _ in sizes), sum(base for _, base in sizes))

    def _tell_sizes(self, name: str, log_bytes: int, base_bytes: int) -> None:
        self._log_bytes.set(log_bytes, name)
        self._base_bytes.set(base_bytes, name)
        if base_bytes:
            self._ratio.set(log_bytes / base_bytes, name)
        else:
            self._ratio.forget(name)
