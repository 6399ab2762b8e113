"""Cuts batches to whole transactions: surveys the planned ranges, cuts them, and handles overdue transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf

from binlake.decode.changes import RawRecords, SourceTable
from binlake.decode.messages.transactions import marks, members
from binlake.position.ledger import Ledger
from binlake.position.recorded import RecordedTransactions
from binlake.rows.tasks.boundary import Boundary, Survey, TransactionProgress, boundary
from binlake.settings import KafkaSettings, Settings
from binlake.source.fetch import fetch
from binlake.source.offsets import NO_OFFSETS, OffsetRange, Offsets, Ranges, topic_suffix
from binlake.source.positions import newest_read_ms, offset_at
from hudilake.clock import monotonic_s
from hudilake.errors import BadInputError

#: (topic, partition, time in ms) -> offset of the first record of that time or later.
OffsetAt = Callable[[str, int, int], int]
#: (transaction topic, offset ranges) -> the survey of the ranges.
Look = Callable[[str, Sequence[OffsetRange]], Survey]


def survey_records(topic: str, chunks: Iterable[RawRecords]) -> Survey:
    """The transaction survey of raw records; ``topic``: the transaction topic."""
    survey = Survey()
    for records in chunks:
        if records.topic == topic:
            survey.marks += marks(records)
        else:
            survey.members.append(members(records))
    return survey


def fetch_and_survey(kafka: Mapping[str, str], topic: str, ranges: Sequence[OffsetRange]) -> Iterator[Survey]:
    """``survey_records`` over offset ranges, in a task."""
    yield survey_records(topic, fetch(kafka, ranges, timeout_s=60.0, chunk_records=50_000))


def begin_transactions(kafka: KafkaSettings, ledger: Ledger, start: Offsets) -> Offsets:
    """``start`` with the start offsets of the transaction topic, for a stream that has positions of data topics only.

    This is the case if the settings begin to require whole transactions for a stream that has run without them. The
    transaction topic then starts at the time of the newest record that the stream has read. Older records that are not
    read yet are read without regard to transactions; from that time on transactions are whole.

    Raises TransientError, ConfigError.
    """
    topic = kafka.transaction_topic or ""
    read = Offsets({t: parts for t, parts in ledger.positions.items() if t != topic and any(parts.values())})
    if topic in ledger.positions or not read:
        return start
    config = kafka.client_properties()
    passed = replace(ledger.transactions, ms=newest_read_ms(config, read) + 1)
    ledger.note_transactions(passed)
    partitions = start.get(topic, {})
    return start.merge(Offsets.of_places((topic, p, offset_at(config, topic, p, passed.ms)) for p in partitions))


class Transactions:
    """Cuts the batches of one stream at transaction boundaries.

    ``ledger`` holds how far the transaction topic was read; ``survey`` and ``offset_at`` ask Kafka.
    """

    def __init__(self, settings: Settings, ledger: Ledger, survey: Look, offset_at: OffsetAt) -> None:
        self._rules = settings.batch
        self._topic = settings.kafka.transaction_topic or ""
        self._ledger = ledger
        self._look = survey
        self._offset_at = offset_at
        self._met: set[str] = set()
        self._waits_for: tuple[str, float] | None = None
        self._ends = NO_OFFSETS
        self.recorded: RecordedTransactions | None = None

    def has_stood(self, ends: Offsets) -> bool:
        """Whether the topics ended there at the last look, too: nothing comes behind what waits."""
        stood, self._ends = self._ends == ends, ends
        return stood

    def cut(self, planned: Sequence[OffsetRange], *, silent: bool = False) -> Boundary:
        """The part of the planned ranges that the batch takes. Sets ``recorded`` for the commit records of the batch.

        Args:
            planned: from the ledger's positions on.
            silent: whether the topics have ended there for a while, so that no record of the same millisecond comes.

        Raises BadInputError if rows carry no transaction metadata, or if a transaction is overdue and the settings do
        not allow a split.
        """
        survey = self._look(self._topic, planned)
        self._refuse_bare(survey)
        self._met.update(table for part in survey.members for _, table in part.kinds)
        consumed = {table for mark in survey.marks for table in mark.counts or {} if self._consumes(table, planned)}
        ledger = self._ledger
        if not ledger.transactions.ms and survey.marks:
            ledger.note_transactions(replace(ledger.transactions, ms=self._first_ms(survey, planned)))
        before = ledger.transactions
        passed = TransactionProgress(
            before.ms, frozenset(before.ended), frozenset(before.torn), frozenset(before.ahead)
        )
        made = boundary(
            planned,
            survey,
            self._topic,
            consumed,
            passed,
            partial(self._reached, planned),
            inf if silent else self._horizon_ms(survey, planned),
        )
        if made.waiting is None or not self._overdue(*made.waiting):
            return self._taken(made, survey)
        if self._rules.transaction_overdue == "stop":
            raise self._overdue_error(*made.waiting, planned)
        self._waits_for = None
        ahead = made.ahead | {(one.transaction, one.timestamp_ms) for part in survey.members for one in part.truncates}
        return self._taken(Boundary(list(planned), None, made.waiting, split=True, ahead=ahead), survey)

    def _first_ms(self, survey: Survey, planned: Sequence[OffsetRange]) -> int:
        """The time (ms) of the first record of the transaction topic; 0 while a partition of it has an older one that
        is not planned yet."""
        first = min(mark.timestamp_ms for mark in survey.marks)
        seen = {mark.partition for mark in survey.marks}
        starts = self._ledger.positions.merge(Ranges(planned).starts()).get(self._topic, {})
        others = [(p, start) for p, start in starts.items() if p not in seen]
        return 0 if any(self._offset_at(self._topic, p, first) > start for p, start in others) else first

    def _reached(self, planned: Sequence[OffsetRange], time_ms: int) -> bool:
        """Whether all data records older than a time (ms since the epoch) lie below the ends of the planned ranges."""
        reached = self._ledger.positions.merge(Ranges(planned).ends())
        return all(
            self._offset_at(topic, partition, time_ms) <= end
            for topic, partition, end in reached.places()
            if topic != self._topic
        )

    def _horizon_ms(self, survey: Survey, planned: Sequence[OffsetRange]) -> float:
        """The time (ms) up to which the planned ranges hold all records of the transaction topic. The topic may have
        several partitions, which are not planned up to the same time."""
        ends = self._ledger.positions.merge(Ranges(planned).ends()).get(self._topic, {})
        if len(ends) < 2:
            return inf
        newest = dict.fromkeys(ends, self._ledger.transactions.ms)
        for mark in survey.marks:
            newest[mark.partition] = max(newest[mark.partition], mark.timestamp_ms)
        last = max(newest.values())
        return min(last if self._offset_at(self._topic, p, last) <= end else newest[p] for p, end in ends.items())

    def _consumes(self, table: str, planned: Sequence[OffsetRange]) -> bool:
        if table in self._met:
            return True
        suffix = topic_suffix(SourceTable(*table.split(".", 1)))
        topics = {*self._ledger.positions, *(r.topic for r in planned)}
        return any(topic == suffix or topic.endswith(f".{suffix}") for topic in topics)

    def _taken(self, made: Boundary, survey: Survey) -> Boundary:
        """Note in the ledger, and for the commit records, how far the transaction topic was read."""
        until = self._ledger.positions.merge(Ranges(made.ranges).ends()).get(self._topic, {})
        passed = replace(self._ledger.transactions, torn=tuple(sorted(made.torn)), ahead=tuple(sorted(made.ahead)))
        marks = [mark for mark in survey.marks if mark.offset < until.get(mark.partition, 0)]
        if marks:
            newest_ms = max(mark.timestamp_ms for mark in marks)
            newest = [mark for mark in marks if mark.timestamp_ms == newest_ms]
            ended = tuple(mark.transaction for mark in newest if mark.counts is not None)
            passed = replace(passed, ms=newest_ms, ended=ended)
        self._ledger.note_transactions(passed)
        begins = dict(self._ledger.positions.get(self._topic, {})) if self._ledger.batch else None
        alone = bool(self._ledger.behind)
        self.recorded = RecordedTransactions(made.last, made.split or made.uneven, passed, dict(until), begins, alone)
        return made

    def note_of(self, source: SourceTable, ranges: Ranges, standing: Offsets) -> RecordedTransactions | None:
        """The note of a table's commit. A ledger that was worked out of the tables' commits may stand before what some
        of them have, until it has finished a batch; a table that is behind begins elsewhere."""
        note = self.recorded
        return note if note is None or source not in self._ledger.behind else replace(note, after=None)

    def _overdue(self, transaction: str, held: int) -> bool:
        if self._waits_for is None or self._waits_for[0] != transaction:
            self._waits_for = (transaction, monotonic_s())
        waited = monotonic_s() - self._waits_for[1]
        return held > self._rules.transaction_max_events or waited > self._rules.transaction_wait_seconds

    def _refuse_bare(self, survey: Survey) -> None:
        for part in survey.members:
            if part.bare is not None:
                raise BadInputError(
                    "a row event names no transaction, so the end of a transaction cannot be found",
                    do_next="set provide.transaction.metadata=true on the connector, or turn "
                    "batch.transaction_consistent off",
                    topic=part.topic,
                    partition=part.partition,
                    offset=part.bare,
                )

    def _overdue_error(self, transaction: str, held: int, planned: Sequence[OffsetRange]) -> BadInputError:
        rules = self._rules
        return BadInputError(
            f"transaction {transaction} is not complete, and {held} records wait for it: more than "
            f"batch.transaction_max_events ({rules.transaction_max_events}), or longer than "
            f"batch.transaction_wait_seconds ({rules.transaction_wait_seconds:g})",
            do_next="see whether the connector runs, and whether its transaction topic is the one in the settings; "
            "raise the bounds; or set batch.transaction_overdue: split to go on without whole transactions",
            transaction=transaction,
            offsets=", ".join(f"{r.topic}/{r.partition}:{r.start}..{r.end}" for r in planned[:4]),
        )
