"""The status of a stream and its tables, read from outside: from the ledger, the lease, Kafka and the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce

from binlake.decode.changes import SourceTable
from binlake.decode.formats.reader import not_carried
from binlake.decode.options import EventFormat
from binlake.hbase.derive.pairs import DerivedPair, pair_of_wide
from binlake.hbase.derive.touched import newest_moment
from binlake.position.compared import ComparedTables
from binlake.position.in_hand import WorkInHand, works_in_hand
from binlake.position.lease import SILENCE_S, StreamLease
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordReader
from binlake.position.recorded import Revert
from binlake.position.table_requests import Requests, load_requests
from binlake.schema.rules.undetermined import undetermined_columns
from binlake.settings import Settings
from binlake.source.binlog.topic import is_binlog
from binlake.source.offsets import NO_OFFSETS, Offsets
from binlake.source.source_log import source_log
from binlake.stream.monitoring.held import KafkaFacts
from binlake.stream.monitoring.writers import Writer, heartbeats, lock_holder, writer_of
from binlake.tables.bucket_sizes import BucketAdvice, bucket_advice, proposed
from binlake.tables.catalog import CatalogTable
from binlake.tables.ddl_topics import with_heard_topics
from binlake.tables.feeds import Feeds
from binlake.tables.quarantine import waiting_records
from hudilake.clock import now_ms, parse_instant
from hudilake.commit.compaction_plan import pending_compactions
from hudilake.errors import LakeError
from hudilake.read.table_reader import TableReader
from hudilake.services.rebucket.units import BucketChange
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable

#: Rows of base files are counted by their footers and the metadata table. Where there are log files too, keys must be
#: merged; up to so many bytes of such file slices, that takes about a second.
COUNT_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class WideStatus:
    """The position of a wide table.

    Args:
        cells: the table of cells.
        until: the completion time up to which its commits are derived; None if no derivation has ended.
        lag_ms: from there to the newest commit of the table of cells, in milliseconds; None if one of both is unknown.
        commits: the commits of the active timeline that are not derived.
        swept_ms: up to when expired cells are taken out, in ms since the epoch; 0 if they never were.
        state: ``ok``, ``behind``, ``under way`` (several portions), or ``declared anew``: every row will be derived.
    """

    cells: str
    until: str | None
    lag_ms: int | None
    commits: int
    swept_ms: int
    state: str


def wide_status(root: Storage, pair: DerivedPair) -> WideStatus | None:
    """The position of a wide table of a lake; None if one of the two tables does not exist. Changes nothing.

    Raises CorruptDataError, StorageError.
    """
    places = [root.sub(rules.path) for rules in (pair.cells_rules, pair.wide_rules)]
    if not all(HudiTable.exists(place) for place in places):
        return None
    cells, wide = map(HudiTable.open, places)
    note, newest = RecordReader.newest_of(wide).derived, newest_moment(cells)
    until = note.until.completed if note is not None and note.until is not None else None
    later = [w for w in cells.timeline.completed() if until is None or (w.completion_time or "") > until]
    waiting = [w for w in later if not (cells.timeline.is_compaction(w) or cells.timeline.is_clustering(w))]
    lag_ms = None
    if until is not None and newest is not None:
        lag_ms = max(0, parse_instant(newest.completed) - parse_instant(until))
    state = "behind" if waiting else "ok"
    if note is not None and note.under_way:
        state = "under way"
    elif note is not None and until is not None and note.fingerprint != pair.fingerprint:
        state = "declared anew"
    swept_ms = note.swept_ms if note is not None else 0
    return WideStatus(str(pair.cells), until, lag_ms, len(waiting), swept_ms, state)


@dataclass
class StreamStatus:
    """The status of a stream. ``ledger`` is None if the stream has none; ``lag`` is None if Kafka was not asked or did
    not answer (``kafka`` gives the reason). ``facts``: what Kafka says of the topics. ``requests``: about the tables.
    ``in_hand``: what the stream and other jobs are doing to the lake.
    """

    name: str
    run: Writer | None
    ledger: Ledger | None
    ends: Offsets | None = None
    kafka: str = ""
    facts: KafkaFacts | None = None
    requests: Requests = field(default_factory=dict)
    in_hand: list[WorkInHand] = field(default_factory=list)

    @property
    def in_bytes(self) -> bool:
        """Whether lags are bytes of a binlog, and no records."""
        return self.ledger is not None and any(map(is_binlog, self.ledger.positions))

    @property
    def lag(self) -> int | None:
        """The number of records not applied yet, of a binlog of bytes."""
        if self.ledger is None or self.ends is None:
            return None
        return self.lags().total

    def lags(self) -> Offsets:
        """The lag of every partition."""
        return (self.ends or NO_OFFSETS).minus(self.ledger.positions if self.ledger is not None else NO_OFFSETS)


@dataclass
class TableStatus:
    """The status of a table.

    Args:
        name: ``database.table``, as the source calls it now.
        path: of the table in the lake.
        former: its earlier names at the source, for people; "" if it never had another one.
        missing: why no table of the source feeds it, or some do not; "" if all do.
        commit: requested time of the last delta commit; None if there is none.
        age_ms: time since that commit became visible, in milliseconds.
        freshness_ms: its visible time minus the source's time of its newest change; None if that is not known.
        commit_rows: upserts and deletes that this commit wrote.
        counts: the fates of its records; empty for a commit of another writer.
        quarantined: its records in the quarantine that were not replayed.
        rows: the table's rows; None if counting would merge more bytes than were allowed.
        pending: compactions that are not completed.
        log_bytes, base_bytes: sizes in the newest file slices.
        unmerged_bytes: of those whose keys must be merged to count rows.
        behind: whether the stream has passed records that this table has not applied.
        state: ``ok``, ``behind``, ``paused``, ``stopped``, or ``loading``: its first load is not at its end.
        loaded_rows: the rows that this load has written so far; None for any other state.
        streamed: whether a batch of a stream has committed to it.
        verified: the ordering value up to which it is known to be as its source; None if it was never compared.
        differing: the rows that ``binlake verify`` last found different and did not repair; None if it never ran.
        lock: the holder of the table's lock.
        writers: the writers with a heartbeat.
        reverts: what ``binlake revert`` has undone; there the table differs from the source on purpose.
        advice: another number of buckets, if theirs are far larger or smaller than planned.
        resizes: buckets of hash rings to split and merge, by their sizes.
        target_bytes: the size that these are compared with.
        undetermined: columns whose values a statement of the source left open, each with the reason and the statement.
        unmatched: deletes and former halves of updates, of a table without a key, that found no row of their content.
        finding: the same for people; "" if there is none.
        not_carried: what the format of the table's changes does not carry, as far as the settings tell; "" for nothing.
        derived: how far a wide table follows its table of cells; None for any other table.
    """

    name: str
    path: str = ""
    former: str = ""
    missing: str = ""
    commit: str | None = None
    age_ms: int | None = None
    freshness_ms: int | None = None
    rows: int | None = None
    commit_rows: int = 0
    quarantined: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    log_bytes: int = 0
    base_bytes: int = 0
    unmerged_bytes: int = 0
    behind: bool = False
    state: str = "ok"
    loaded_rows: int | None = None
    streamed: bool = False
    verified: int | None = None
    differing: int | None = None
    lock: Writer | None = None
    writers: list[Writer] = field(default_factory=list)
    reverts: tuple[Revert, ...] = ()
    advice: BucketAdvice | None = None
    resizes: list[BucketChange] = field(default_factory=list)
    target_bytes: int = 0
    undetermined: list[str] = field(default_factory=list)
    unmatched: int = 0
    finding: str = ""
    not_carried: str = ""
    derived: WideStatus | None = None


def stream_status(settings: Settings, kafka_timeout_s: float | None) -> StreamStatus:
    """The status of the stream.

    ``kafka_timeout_s``: how long Kafka may take; with None it is not asked. Raises CorruptDataError, StorageError.
    """
    state = open_storage(settings.state_uri, settings.state_options())
    beat = StreamLease(state, settings.name).holder()
    status = StreamStatus(
        settings.name, writer_of(beat, SILENCE_S) if beat is not None else None, Ledger.load(state, settings.name)
    )
    status.requests = load_requests(state)
    status.in_hand = works_in_hand(state)
    if kafka_timeout_s is not None and status.ledger is not None:
        try:
            status.facts = kafka_facts(settings, status.ledger, kafka_timeout_s)
            status.ends = status.facts.ends
        except LakeError as error:
            status.kafka = error.what
    return status


def kafka_facts(settings: Settings, ledger: Ledger, timeout_s: float) -> KafkaFacts:
    """What Kafka, or the server of a binlog, says of the stream's topics. Raises TransientError, ConfigError."""
    log = source_log(settings)
    behind = reduce(Offsets.earliest, ledger.behind.values(), NO_OFFSETS)
    return KafkaFacts(
        log.ends(ledger.positions, timeout_s),
        log.firsts(behind, timeout_s),
        log.retention_ms(behind),
        log.bytes_behind(ledger.behind),
    )


def table_status(
    place: CatalogTable,
    ledger: Ledger | None,
    heartbeat_timeout_s: float,
    feeds: Feeds | None = None,
    compared: ComparedTables | None = None,
    *,
    count_bytes: float = COUNT_BYTES,
    opened: HudiTable | None = None,
) -> TableStatus:
    """The status of a table. Changes nothing. Raises CorruptDataError, StorageError, UnsupportedError.

    Args:
        place: of the table.
        ledger: of the stream.
        heartbeat_timeout_s: after so many seconds a writer is dead.
        feeds: what feeds the tables of the stream.
        compared: which tables are known to be as their source.
        count_bytes: rows are counted if no more bytes than these must be merged for it.
        opened: the table, if it is open already.
    """
    table = opened or HudiTable.open(place.storage)
    status = TableStatus(
        place.name, place.rules.path, place.former, behind=ledger is not None and place.source in ledger.behind
    )
    status.state = state_of(place.source, ledger)
    if feeds is not None:
        status.missing = "; ".join(f"{one.name}: {one.missing}" for one in feeds.of(place.source) if one.missing)
    newest = next((i for i in reversed(table.timeline.completed()) if i.action == table.state.action), None)
    if newest is not None and newest.completion_time is not None:
        body, visible = table.timeline.commit_metadata(newest), parse_instant(newest.completion_time)
        status.commit, status.age_ms = newest.requested_time, now_ms() - visible
        status.commit_rows = sum(stat.num_writes + stat.num_deletes for stat in body.stats)
        record = RecordReader.of_commit(body.extra)
        counts, times = record.counts, record.source_times
        status.counts = vars(counts) if counts is not None else {}
        status.freshness_ms = visible - times[1] if times is not None else None
    recorded = RecordReader.newest_of(table)
    if recorded.unfinished_load is not None:
        status.state, status.loaded_rows = "loading", recorded.unfinished_load.rows
    status.streamed = any((recorded.positions or {}).values())
    until = (compared or ComparedTables()).until(place.rules.path, recorded.truncates)
    status.verified = until if until >= 0 else None
    status.differing = compared.differing.get(place.rules.path) if compared is not None else None
    status.undetermined = [str(one) for one in undetermined_columns(recorded.ddl or (), until)]
    keyless = recorded.keyless
    if keyless is not None:
        status.unmatched, status.finding = keyless.unmatched, keyless.finding or ""
    status.pending = [i.requested_time for i in pending_compactions(table.timeline)]
    slices = table.file_slices()
    status.advice = bucket_advice(table, slices)
    status.target_bytes = place.rules.files.target_bytes
    status.resizes = proposed(table, status.target_bytes, slices)
    for piece in slices:
        status.log_bytes += piece.log_size
        status.base_bytes += piece.base_size
    status.unmerged_bytes = sum(piece.base_size + piece.log_size for piece in slices if piece.log_size)
    if status.unmerged_bytes <= count_bytes:
        status.rows = TableReader(table).count()
    status.reverts = recorded.reverts
    status.lock = lock_holder(place.storage)
    status.writers = heartbeats(place.storage, heartbeat_timeout_s)
    return status


@dataclass(frozen=True)
class StatusSources:
    """What the status of each table of a stream is worked out from, read once for all of them.

    Whoever shows a table asks here, so that all say the same of it.

    The settings of a stream, its lake's root, and what its state says of all tables.

    ``waiting``: quarantined records that were not replayed, by ``database.table``.
    """

    settings: Settings
    root: Storage
    ledger: Ledger | None
    feeds: Feeds
    compared: ComparedTables
    waiting: Counter[str]

    @staticmethod
    def load(settings: Settings, ledger: Ledger | None, waiting: Counter[str] | None = None) -> StatusSources:
        """Read them; ``waiting``: the quarantined records, if they are known. Raises CorruptDataError, StorageError."""
        root = open_storage(settings.lake.uri, settings.lake.storage_options())
        settings = with_heard_topics(settings, root)
        state = open_storage(settings.state_uri, settings.state_options())
        return StatusSources(
            settings,
            root,
            ledger,
            Feeds.load(settings, root),
            ComparedTables.load(state),
            waiting_records(settings, root) if waiting is None else waiting,
        )

    def of(
        self,
        place: CatalogTable,
        count_bytes: float = COUNT_BYTES,
        opened: HudiTable | None = None,
    ) -> TableStatus:
        """The status of a table; arguments and errors as ``table_status``."""
        settings = self.settings
        timeout_s = settings.locking.heartbeat_timeout_seconds
        table = table_status(
            place, self.ledger, timeout_s, self.feeds, self.compared, count_bytes=count_bytes, opened=opened
        )
        table.quarantined = self.waiting[str(place.source)]
        if (pair := pair_of_wide(settings, place.source)) is not None:
            table.derived = wide_status(self.root, pair)
        form = EventFormat(settings.source.format)
        table.not_carried = not_carried(form, None, ddl_topics=bool(settings.kafka.ddl_topics)) or ""
        return table


def no_ledger_words(tables: Collection[TableStatus]) -> str:
    """What is said of a stream that has no ledger, by the tables of its lake."""
    if any(table.streamed for table in tables):
        return "it has no ledger, though its tables have batches: the next run takes its position from the tables"
    if tables:
        return "it has finished no batch yet: its tables are loaded, and the first run goes on from there"
    return "it has finished no batch yet"


def state_of(source: SourceTable, ledger: Ledger | None) -> str:
    """The state of a table by the ledger alone: ``ok``, ``behind``, ``paused`` or ``stopped``."""
    if ledger is None or source not in ledger.behind:
        return "ok"
    return "paused" if source in ledger.paused else "stopped" if source in ledger.stopped else "behind"
