"""What a watch has seen of a stream and its tables, as values that pages and the terminal are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from binlake.decode.changes import SourceTable
from binlake.position.last_words import LastWords
from binlake.position.ledger import Ledger
from binlake.stream.monitoring.held import HeldTable, KafkaFacts
from binlake.stream.monitoring.status import StreamStatus, TableStatus
from hudilake.clock import now_ms
from hudilake.errors import LakeError
from hudilake.format.timeline.instant import timeline_directory
from hudilake.storage import Storage


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """What tells two states of a timeline apart: how many files it has, and the first and the last name of them."""

    files: int
    names: int

    @staticmethod
    def of(storage: Storage) -> TimelineMark:
        """The mark of the table at a storage's root, by one listing. Raises StorageError."""
        names = sorted(file.path for file in storage.list(timeline_directory(2)))
        return TimelineMark(len(names), hash(tuple(names)))


@dataclass(frozen=True, slots=True)
class LookedTable:
    """A table at its last look.

    Args:
        path: below the lake's root.
        name: ``database.table`` as the source calls it now; the path if it was never opened.
        source: the name that its commits record; None if it was never opened.
        mark: of its timeline, before the look; None before the first one.
        status: None if it could not be read, or was not looked at yet.
        error: why it could not be read.
        looked_ms: when, in ms since the epoch.
        waiting: records in Kafka that it has not applied; None if that is not known.
        counted_ms: when its rows were counted, in ms since the epoch, if they are those of an earlier look.
        ages: ``behind_ms`` of the last hour, a value each half minute.
        lock_since_ms: when its lock was first seen with its present holder, in ms since the epoch; None if it is free.
        by_ledger: its state by the ledger alone, before its first look.
    """

    path: str
    name: str
    source: SourceTable | None
    mark: TimelineMark | None
    status: TableStatus | None
    error: LakeError | None
    looked_ms: int
    waiting: int | None = None
    lock_since_ms: int | None = None
    counted_ms: int | None = None
    ages: tuple[int | None, ...] = ()
    by_ledger: str = "unread"

    @property
    def state(self) -> str:
        """``ok``, ``behind``, ``paused``, ``stopped``, ``loading``, ``unreadable``; ``unread`` before the first look,
        if the ledger does not name another one."""
        if self.error is not None:
            return "unreadable"
        return self.status.state if self.status is not None else self.by_ledger

    @property
    def age_ms(self) -> int | None:
        """The time since its last commit became visible, in ms."""
        if self.status is None or self.status.age_ms is None:
            return None
        return self.status.age_ms + now_ms() - self.looked_ms

    @property
    def behind_ms(self) -> int | None:
        """How old the newest change of the source in the table is, in ms: what a reader of the table misses at most."""
        if self.status is None or self.status.freshness_ms is None or self.age_ms is None:
            return None
        return self.status.freshness_ms + self.age_ms


@dataclass(frozen=True)
class StreamView:
    """A stream at the last look.

    Args:
        name: of the stream.
        conf: its settings file.
        stream: None before the first look.
        held: the tables that do not go on with the others.
        tables: by path.
        unseen: tables that the next looks take in.
        last_words: how its last run ended; None if it runs, or nobody knows.
        lags: of the last hour, a value each half minute; None where Kafka gave no answer.
        quarantined: records in quarantine that were not replayed, those of no table among them.
        looked_ms: when, in ms since the epoch.
        error: why the stream's state could not be read; the other values are of an earlier look.
        version: grows with every look.
    """

    name: str
    conf: str
    stream: StreamStatus | None = None
    held: tuple[HeldTable, ...] = ()
    tables: Mapping[str, LookedTable] = field(default_factory=dict)
    unseen: int = 0
    last_words: LastWords | None = None
    lags: tuple[int | None, ...] = ()
    quarantined: int = 0
    looked_ms: int = 0
    error: LakeError | None = None
    version: int = 0

    @property
    def state(self) -> str:
        """``running``, ``died`` (its run left a lease and is gone), ``stopped``, or ``unknown`` before a look."""
        if self.stream is None or self.error is not None:
            return "unknown"
        run = self.stream.run
        if run is None:
            return "failed" if self.last_words is not None and self.last_words.what else "stopped"
        return "running" if run.alive else "died"

    def table(self, name: str) -> LookedTable | None:
        """The table of a name."""
        return next((one for one in self.tables.values() if one.name == name), None)


def waits_for(source: SourceTable, ledger: Ledger | None, kafka: KafkaFacts | None) -> int | None:
    """The records in the topics of a table that it has not applied, of a binlog the bytes; None if Kafka gave no answer
    or the topics of the table are not known."""
    applied = ledger.applied(source) if ledger is not None else None
    if ledger is None or kafka is None or not applied:
        return None
    if source in ledger.behind:
        return kafka.behind(source, ledger.behind[source])
    start = ledger.positions.within(applied)
    return kafka.ends.within(start).minus(start).total
