"""Measures a running stream: metrics for Prometheus, and the stream's health.

All values come from the process itself: the progress of its batches, its ledger, its open tables, and the ends of the
topics, which Kafka is asked for at intervals. A scrape reads memory only.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass

from prometheus_client import Counter

from binlake.position.ledger import Ledger
from binlake.rows.upsert.outcomes import DELIVERED_OUTCOMES
from binlake.source.offsets import NO_OFFSETS, Offsets
from binlake.stream.monitoring.metrics import Children, StreamMetrics
from binlake.stream.monitoring.progress import BatchTimes, ProgressEvent, TableProgress
from binlake.tables.lake import Lake
from hudilake.clock import monotonic_s
from hudilake.commit.compaction_plan import pending_compactions
from hudilake.errors import LakeError
from lakemetastore.service.monitoring import Health

_log = logging.getLogger(__name__)

#: The table label of records that belong to no table.
NO_TABLE = "-"
#: How long a table's sizes stay valid: they are counted between two batches.
_SIZES_EVERY_S = 15.0
_NAMED = 5
#: Batches whose times are kept.
BATCHES = 60


@dataclass
class _OpenStream:
    """The lake and the ledger of an open stream."""

    lake: Lake
    ledger: Ledger


@dataclass
class _Moment:
    """The state at the last reading. ``finished_s``: when the last batch finished, on the monotonic clock."""

    finished_s: float
    positions: Offsets = NO_OFFSETS
    ends: Offsets = NO_OFFSETS
    behind: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()


class Monitor:
    """The metrics of one stream. ``update`` is for the thread of the batches, all other methods for any thread.

    Args:
        stalled_s: a stream with a lag is not healthy if no batch has finished for this time (seconds).
        clock: monotonic seconds.
    """

    def __init__(self, stalled_s: float, clock: Callable[[], float] = monotonic_s) -> None:
        self._stalled_s = stalled_s
        self._clock = clock
        self._known: _OpenStream | None = None
        self._at = _Moment(clock())
        self._sizes_s: dict[str, float] = {}
        #: The path of each table, which it keeps.
        self._paths: dict[str, str] = {}
        self._batches: deque[BatchTimes] = deque(maxlen=BATCHES)
        self._lock = threading.RLock()  # guards the last reading
        self.metrics = StreamMetrics()

    def attach(self, lake: Lake, ledger: Ledger) -> None:
        """Attach the lake and the ledger of an open stream: its positions and tables are known from now on."""
        with self._lock:
            self._known = _OpenStream(lake, ledger)
            self._look(finished=False)

    def update(self, event: ProgressEvent) -> None:
        """Take in a finished batch, in the thread that ran it. Raises no LakeError."""
        with self._lock:
            self._count(event)
            self._batches.append(BatchTimes.of(event))
            ends = Offsets.of_places((p.topic, p.partition, p.end) for p in event.partitions)
            self._at.ends = self._at.ends.furthest(ends)
            self._look(finished=True)
        for part in event.tables:
            if part.commit_instant is not None:
                self._measure(part)

    def kafka_said(self, ends: Offsets | None) -> None:
        """Take in the ends of the topics; None if Kafka gave no answer."""
        with self._lock:
            self.metrics.kafka_answers(ends is not None)
            self._at.ends = self._at.ends.merge(ends or NO_OFFSETS)

    def positions(self) -> Offsets:
        """The positions of the stream at the last reading."""
        with self._lock:
            return self._at.positions

    def health(self) -> Health:
        """The health of the stream: batches finish or there is no lag, and no table is behind that is not paused."""
        with self._lock:
            reasons, age_s = [], self._clock() - self._at.finished_s
            lag = self._lags().total
            if lag and age_s > self._stalled_s:
                reasons.append(f"no batch has finished for {age_s:.0f} s, and {lag} offsets wait")
            waits = set(self._at.behind) - {*self._at.paused, *self._at.stopped}
            for word, tables in (("behind", sorted(waits)), ("stopped", self._at.stopped)):
                more = f" and {len(tables) - _NAMED} more" if len(tables) > _NAMED else ""
                if tables:
                    reasons.append(f"{word}: {', '.join(tables[:_NAMED])}{more}")
            return Health(tuple(reasons))

    def batches(self) -> list[dict[str, object]]:
        """The times of the last batches as JSON types, the newest at the end: what ``/batches.json`` gives."""
        with self._lock:
            return [asdict(one) for one in self._batches]

    def render(self) -> str:
        """The present metrics in Prometheus' text format."""
        with self._lock:
            self.metrics.age_seconds.set(self._clock() - self._at.finished_s)
            self.metrics.healthy.set(self.health().well)
            self._set_positions()
            if self._known is not None:
                self.metrics.registered(self._known.lake.registrar.counts())
        return self.metrics.render()  # without the lock, so that no batch waits for it

    # -- private, with the lock held ------------------------------------------------------------------------------

    def _look(self, *, finished: bool) -> None:
        looked, known = self._at, self._known
        if finished:
            looked.finished_s = self._clock()
        if known is None:
            return
        looked.positions = known.ledger.positions
        before = {*looked.behind, *looked.paused, *looked.stopped}
        looked.behind, looked.paused, looked.stopped = (
            tuple(sorted(map(str, tables)))
            for tables in (known.ledger.behind, known.ledger.paused, known.ledger.stopped)
        )
        for table in {*before, *looked.behind}:
            self.metrics.behind.labels(table).set(table in looked.behind)
            self.metrics.paused.labels(table).set(table in looked.paused)
            self.metrics.stopped.labels(table).set(table in looked.stopped)

    def _lags(self) -> Offsets:
        return self._at.ends.within(self._at.positions).minus(self._at.positions)

    def _set_positions(self) -> None:
        for topic, partition, offset in self._at.positions.places():
            self.metrics.position.labels(topic, partition).set(offset)
        for topic, partition, lag in self._lags().places():
            self.metrics.lag.labels(topic, partition).set(lag)

    def _count(self, event: ProgressEvent) -> None:
        metrics = self.metrics
        metrics.batches.inc()
        metrics.by_template.inc(event.by_template)
        metrics.batch_seconds.observe(event.latency_ms / 1000)
        for stage, ms in event.stage_ms.items():
            metrics.stage_seconds[stage,].observe(ms / 1000)
        _add(metrics.records, sum(event.filtered.values()), NO_TABLE, "filtered")
        _add(metrics.records, event.quarantined, NO_TABLE, "quarantined")
        for part in event.tables:
            self._count_table(part)

    def _count_table(self, part: TableProgress) -> None:
        name, metrics = part.table, self.metrics
        _add(metrics.errors, part.error is not None, name)
        _add(metrics.warnings, part.warning is not None, name)
        if part.error is not None:
            return  # the table reads its records again when it is caught up
        if part.derived is None:
            for fate in DELIVERED_OUTCOMES:
                _add(metrics.records, getattr(part, fate), name, fate)
        else:
            _add(metrics.derived, part.derived.upserts, name, "written")
            _add(metrics.derived, part.derived.deletes, name, "deleted")
            _add(metrics.derived, part.derived.faults, name, "quarantined")
        _add(metrics.compactions, part.compaction_instant is not None, name)
        _add(metrics.clusterings, part.clustering_instant is not None, name)
        if part.commit_instant is None:
            return
        _add(metrics.commits, 1, name)
        _add(metrics.written_bytes, part.bytes_written, name)
        if part.commit_latency_ms is not None:
            metrics.commit_seconds.observe(part.commit_latency_ms / 1000)
        for change, ms in (("oldest", part.freshness_oldest_ms), ("newest", part.freshness_newest_ms)):
            if ms is not None:
                metrics.freshness[name, change].set(ms / 1000)

    # -- the thread of the batches --------------------------------------------------------------------------------

    def _measure(self, part: TableProgress) -> None:
        """Count a table's bytes at intervals. With a metadata table its files are listed in memory; without one they
        are not counted."""
        name, now = part.table, self._clock()
        fresh = name in self._sizes_s and now - self._sizes_s[name] < _SIZES_EVERY_S
        if self._known is None or (fresh and part.compaction_instant is None):
            return
        if name not in self._paths:
            self._paths = {str(source): path for source, path in self._known.ledger.tables.items()}
        path = self._paths.get(name)
        opened = self._known.lake.opened(path) if path is not None else None
        if opened is None:
            return
        with self._lock:
            self.metrics.unmatched.labels(name).set(opened.keyless.unmatched if opened.keyless is not None else 0)
        self._sizes_s[name] = now
        try:
            pending = len(pending_compactions(opened.hudi.timeline))
            indexed = bool(opened.hudi.config.metadata_partitions)
            sizes = [(s.log_size, s.base_size) for s in opened.hudi.file_slices()] if indexed else None
        except LakeError as error:  # the next batch fails too, unless the outage is short
            _log.debug(
                "%s: its files cannot be counted: %s", name, error, extra={"event": "not_counted", "table": name}
            )
            return
        with self._lock:
            self.metrics.pending.labels(name).set(pending)
            if sizes is not None:
                self._tell_sizes(name, sum(log for log, _ in sizes), sum(base for _, base in sizes))

    def _tell_sizes(self, name: str, log_bytes: int, base_bytes: int) -> None:
        metrics = self.metrics
        metrics.log_bytes.labels(name).set(log_bytes)
        metrics.base_bytes.labels(name).set(base_bytes)
        if base_bytes:
            metrics.log_base_ratio.labels(name).set(log_bytes / base_bytes)
        else:
            metrics.log_base_ratio.remove(name)


def _add(counters: Children[Counter], amount: int, *labels: str) -> None:
    counter = counters[labels]  # creates the counter, so that it shows 0 before the first count
    if amount:
        counter.inc(amount)
