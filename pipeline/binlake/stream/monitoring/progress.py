"""The progress of a running stream after every batch: plain values, for a display, a log or a test.

Every record is counted once: for every table
``events_read = applied + superseded + filtered + quarantined + already_applied``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DerivedRows:
    """What was derived for a wide table.

    Args:
        rows: rows of the store that were derived.
        upserts: wide rows that were written.
        deletes: rows that were deleted because none of their cells is visible.
        faults: cells and rows without a place in the table, which went to the quarantine.
        took_ms: the time in milliseconds.
    """

    rows: int
    upserts: int
    deletes: int
    faults: int
    took_ms: float


@dataclass(frozen=True, slots=True)
class TableProgress:
    """One table's part of a batch. A wide table has no records of its own: all counts of records are 0.

    Args:
        table: ``database.table`` at the source.
        events_read: records of this table in the batch.
        applied: rows the commit upserts or deletes.
        superseded: changes that lost to a newer one of the same key within the batch.
        filtered: records that rightly change no row (tombstones, heartbeats).
        quarantined: records that cannot be applied.
        already_applied: records below the offsets that the table has committed before.
        commit_instant: the completed instant; None if the table made no commit.
        commit_latency_ms: from the batch's trigger to the visible commit.
        freshness_oldest_ms, freshness_newest_ms: visible commit time minus the source's timestamp of the oldest and
            the newest change applied; None where the source gives no time.
        bytes_written: size of the files of the commit.
        offsets: topic -> partition -> [first, end]: the covered offsets of the topics that brought records.
        derived: what was derived for a wide table; None for any other table.
        compaction_instant, clustering_instant: a compaction and a clustering that completed after this commit; None if
            none did.
        error: why this table could not commit; the other tables did.
        warning: what failed besides the commit; the commit stays.
    """

    table: str
    events_read: int = 0
    applied: int = 0
    superseded: int = 0
    filtered: int = 0
    quarantined: int = 0
    already_applied: int = 0
    commit_instant: str | None = None
    commit_latency_ms: float | None = None
    freshness_oldest_ms: int | None = None
    freshness_newest_ms: int | None = None
    bytes_written: int = 0
    compaction_instant: str | None = None
    clustering_instant: str | None = None
    error: str | None = None
    warning: str | None = None
    offsets: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    derived: DerivedRows | None = None

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> TableProgress:
        """The reverse of ``dataclasses.asdict``. Raises TypeError for unknown or missing fields."""
        derived = data.get("derived")
        return TableProgress(**{**data, "derived": None if derived is None else DerivedRows(**derived)})


@dataclass(frozen=True, slots=True)
class DdlProgress:
    """A DDL statement that was judged for a table before the batch.

    ``place``: its position in the source's log. ``verdicts``: the verdict of each clause. ``instant``: the commit that
    carried it out and records it; None if it failed, or if the lake has no such table yet. ``error``: why it failed; it
    is tried again. ``undetermined``: the columns whose values in rows from before it the log does not determine, and
    why.
    """

    table: str
    place: str = ""
    statement: str = ""
    verdicts: Sequence[str] = ()
    instant: str | None = None
    error: str | None = None
    undetermined: Sequence[str] = ()

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.table}: DDL could not be carried out yet: {self.error}"
        return f"{self.table}: {self.place} {self.statement}: {'; '.join(self.verdicts)}"


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """The stream's position in a topic partition (the next offset to read), and the partition's end as last read."""

    topic: str
    partition: int
    position: int
    end: int

    @property
    def lag(self) -> int:
        """The number of offsets between the position and the end of the partition."""
        return max(0, self.end - self.position)


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """One finished batch.

    Args:
        batch_id: Spark's number of the batch.
        latency_ms: from the trigger to the last table's visible commit.
        stage_ms: time by stage, milliseconds. In sequence: ``plan`` (from the trigger on, Spark's part), ``tasks``,
            ``commit``, ``derive`` (wide tables). Within tasks, of the longest task: ``fetch``, ``decode``, ``route``,
            and ``write`` if tasks write. Within commit, of the longest table: ``tag`` (where rows are, if the index is
            looked up), ``write`` (merge, encode, sync), ``publish`` (metadata table, instant).
        tables: one entry for every table the batch touched.
        partitions: the position in every topic partition after the batch.
        filtered: records of no table that rightly change nothing (transaction, DDL, notifications), by kind.
        quarantined: records that could not even be assigned to a table.
        notices: further notices for people, each reported once (a topic's new partition, for example).
        ddl: statements that were judged before the batch.
        by_template: records that templates have read, of all that its tasks have read.
    """

    batch_id: int
    latency_ms: float
    stage_ms: Mapping[str, float] = field(default_factory=dict)
    tables: tuple[TableProgress, ...] = ()
    partitions: tuple[PartitionProgress, ...] = ()
    filtered: Mapping[str, int] = field(default_factory=dict)
    quarantined: int = 0
    notices: tuple[str, ...] = ()
    ddl: tuple[DdlProgress, ...] = ()
    by_template: int = 0

    @property
    def lag(self) -> int:
        """The number of records not read yet, over all partitions; of a binlog, of bytes."""
        return sum(p.lag for p in self.partitions)

    @property
    def events_read(self) -> int:
        """The number of records in the batch, including those of no table."""
        return sum(t.events_read for t in self.tables) + sum(self.filtered.values()) + self.quarantined

    def to_json(self) -> dict[str, Any]:
        """The event as JSON types with these field names; ``from_json`` reads it back."""
        return {**dataclasses.asdict(self), "stage_ms": dict(self.stage_ms), "filtered": dict(self.filtered)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ProgressEvent:
        """The reverse of ``to_json``. Raises TypeError for unknown or missing fields."""
        tables = tuple(map(TableProgress.from_json, data["tables"]))
        partitions = tuple(PartitionProgress(**p) for p in data["partitions"])
        parsed = {"tables": tables, "partitions": partitions, "notices": tuple(data.get("notices", ()))}
        parsed["ddl"] = tuple(DdlProgress(**ddl) for ddl in data.get("ddl", ()))
        return ProgressEvent(**{**data, **parsed})


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """What a finished batch took. ``stage_ms``: see ``ProgressEvent``; a plain object of JSON."""

    batch: int
    records: int
    latency_ms: float
    stage_ms: Mapping[str, float]

    @staticmethod
    def of(event: ProgressEvent) -> BatchTimes:
        """The times of a batch."""
        return BatchTimes(event.batch_id, event.events_read, event.latency_ms, dict(event.stage_ms))


#: The function that ``run_stream`` calls after every batch, in the driver's batch thread.
OnProgress = Callable[[ProgressEvent], None]
