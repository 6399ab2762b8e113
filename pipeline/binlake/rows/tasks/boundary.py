"""Finds the offsets at which a batch must end so that it holds whole transactions only.

The records planned for a batch are examined for their transactions, together with the BEGIN and END records of the
connector's transaction topic. A transaction is complete when every event that its END counts is among the records. The
batch takes the longest run of complete transactions, in binlog order; each topic partition is cut before its first
event of any other transaction. The remaining records are not covered by the stream's position, and the next batch
examines them again. The only state is therefore the position in the transaction topic, which is stored as any other.

A BEGIN without END, with another BEGIN after it, is a DDL statement if it has no rows. Otherwise the connector died
there, and it will send that transaction again, from its beginning or from a point within it. The rows of such a torn
attempt wait until a later attempt is complete. Rows are assigned to attempts by time: the connector writes BEGIN first.
If the BEGIN of a row's transaction lies before the position in the topic, the transaction was complete earlier
(it is delivered again, or the ledger was lost), unless that attempt was torn.

A producer that dies has sent more to some partitions than to others, so any of the last records can be lost. END may be
there without all of its rows: such an attempt is torn, too, as soon as its transaction is sent again and nothing older
can come. Rows may be there without their BEGIN: if a batch passes their time, they are of a torn attempt.

A TRUNCATE waits for nothing: a source may be silent behind it, and no END follows. A batch that has one and not its
transaction, or the reverse, is *uneven*: it ends at no cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
import numpy.typing as npt

from binlake.decode.messages.transactions import Mark, Members, numbered
from binlake.source.offsets import OffsetRange
from hudilake.wording import counted


@dataclass
class Survey:
    """The transactions of a batch's records. ``marks``: BEGIN and END records of the transaction topic, in order;
    ``members``: the row events."""

    marks: list[Mark] = field(default_factory=list)
    members: list[Members] = field(default_factory=list)

    def add(self, other: Survey) -> None:
        """Add the survey of another task."""
        self.marks += other.marks
        self.members += other.members


@dataclass(frozen=True)
class Boundary:
    """A batch cut at a transaction boundary.

    Args:
        ranges: the ranges that the batch takes.
        last: the newest transaction in the batch; None if the transaction topic brought none, or if it is not known
            which one it is.
        waiting: the oldest incomplete transaction and the number of records held back; None if no record is held back.
        torn: transactions with torn attempts only before the batch's end in the transaction topic.
        split: whether the batch may end within a transaction, because one was overdue.
        ahead: the TRUNCATEs that were read and whose transactions were not, (transaction, ms).
        uneven: whether there are some, or a TRUNCATE was not taken whose transaction was.
    """

    ranges: list[OffsetRange]
    last: str | None = None
    waiting: tuple[str, int] | None = None
    torn: frozenset[str] = frozenset()
    split: bool = False
    ahead: frozenset[tuple[str, int]] = frozenset()
    uneven: bool = False

    @property
    def notices(self) -> tuple[str, ...]:
        """The notices for people."""
        if self.waiting is None:
            return ()
        transaction, held = self.waiting
        if self.split:
            return (f"transaction {transaction} was overdue: the batch holds what there was of it",)
        return (f"{counted(held, 'record', 'waits', 'wait')} for the end of transaction {transaction}",)


@dataclass(frozen=True)
class TransactionProgress:
    """The part of the transaction topic that earlier batches took: up to which time (ms), which transactions ended at
    exactly that time, and which are torn; and the TRUNCATEs that were read ``ahead`` of their transactions."""

    until_ms: int = 0
    ended: frozenset[str] = frozenset()
    torn: frozenset[str] = frozenset()
    ahead: frozenset[tuple[str, int]] = frozenset()


@dataclass
class _Attempt:
    """A BEGIN and its END. ``end``: the offset after the END (or after the BEGIN if there is no END) in ``partition``
    of the transaction topic; ``end_ms`` and ``counts`` are None without END."""

    transaction: str
    begin_ms: int
    partition: int
    end: int
    end_ms: int | None = None
    counts: dict[str, int] | None = None


#: (transaction, ms) of TRUNCATEs.
_Truncates = frozenset[tuple[str, int]]
#: Whether the planned ranges hold all records of the data topics that are older than a time (ms).
Reached = Callable[[int], bool]


def boundary(
    ranges: Sequence[OffsetRange],
    survey: Survey,
    topic: str,
    consumed: Iterable[str],
    passed: TransactionProgress,
    reached: Reached,
    horizon_ms: float = inf,
) -> Boundary:
    """Cut the planned ranges.

    Args:
        ranges: the planned ranges; they include the partitions of the transaction topic that have new records.
        survey: the survey of exactly these ranges.
        topic: the transaction topic.
        consumed: ``database.table`` of the tables in the stream's topics; a batch does not wait for events of others.
        passed: the part of the transaction topic that earlier batches took.
        reached: called only after a connector died or a DDL statement was sent.
        horizon_ms: BEGIN records from that time on may be missing, if the transaction topic has several partitions.
    """
    attempts = _attempts(survey.marks)
    rows = _AttemptRows(survey.members, attempts, passed)
    statements = {one.transaction for part in survey.members for one in part.truncates}
    statements |= {transaction for transaction, _ in passed.ahead}
    taken = _complete_run(attempts, rows, statements, frozenset(consumed), passed, reached, horizon_ms)
    while True:
        whole, torn = _settled(attempts, taken, passed)
        held = [rows.held(part, taken, whole, torn) for part in survey.members]
        behind = rows.first_behind(survey.members, held, taken)
        if behind is None:
            break
        taken = _apart(attempts, behind)
    waiting = attempts[taken].transaction if taken < len(attempts) else _oldest(survey.members, held)
    ends = {attempt.partition: attempt.end for attempt in attempts[:taken]}
    cut = [_until(r, ends.get(r.partition)) if r.topic == topic else _cut(r, survey.members, held) for r in ranges]
    torn |= rows.unannounced(survey.members, held, attempts[:taken])
    records = sum(len(r) for r in ranges if r.topic != topic) - sum(len(r) for r in cut if r.topic != topic)
    read, left = _truncates(survey.members, cut)
    read |= passed.ahead
    ended = {transaction for transaction, _ in read}
    last = _newest([one for one in attempts[:taken] if one.counts is not None or one.transaction in ended])
    named = (waiting, records) if records and waiting is not None else None
    ahead = read - _passed(read, attempts, taken, passed)
    uneven = bool(ahead or _passed(left, attempts, taken, passed))
    return Boundary([r for r in cut if len(r)], last, named, torn, ahead=ahead, uneven=uneven)


def _truncates(members: Sequence[Members], cut: Sequence[OffsetRange]) -> tuple[_Truncates, _Truncates]:
    """The TRUNCATEs that the batch takes, and the others."""
    ends = {(r.topic, r.partition): r.end for r in cut}
    taken: set[tuple[str, int]] = set()
    left: set[tuple[str, int]] = set()
    for part in members:
        for one in part.truncates:
            side = taken if one.offset < ends[part.topic, part.partition] else left
            side.add((one.transaction, one.timestamp_ms))
    return frozenset(taken), frozenset(left)


def _passed(truncates: _Truncates, attempts: Sequence[_Attempt], taken: int, passed: TransactionProgress) -> _Truncates:
    """Those whose transactions this batch or one before it takes. The connector writes BEGIN first."""
    listed, begun = ({one.transaction for one in some} for some in (attempts, attempts[:taken]))
    return frozenset(
        (transaction, ms)
        for transaction, ms in truncates
        if transaction in begun or (transaction not in listed and ms < passed.until_ms)
    )


def _attempts(marks: Sequence[Mark]) -> list[_Attempt]:
    """The attempts in the order of their BEGIN. The BEGIN of the first attempt may lie before the ranges: then some of
    its rows do too, and the batch takes the rows that are there. All BEGIN and END records of a transaction are in one
    partition, because their key is the transaction's id."""
    attempts_by_partition: dict[int, list[_Attempt]] = {}
    for mark in sorted(marks, key=lambda mark: (mark.partition, mark.offset)):
        mine, end = attempts_by_partition.setdefault(mark.partition, []), mark.offset + 1
        if mark.counts is None:
            mine.append(_Attempt(mark.transaction, mark.timestamp_ms, mark.partition, end))
        elif mine and mine[-1].transaction == mark.transaction and mine[-1].counts is None:
            mine[-1].counts, mine[-1].end, mine[-1].end_ms = dict(mark.counts), end, mark.timestamp_ms
        else:
            mine.append(_Attempt(mark.transaction, 0, mark.partition, end, mark.timestamp_ms, {}))
    return sorted((a for mine in attempts_by_partition.values() for a in mine), key=lambda attempt: attempt.begin_ms)


def _apart(attempts: Sequence[_Attempt], at: int) -> int:
    """``at``; or, if several partitions are ordered by time only, the first attempt of the same millisecond."""
    several = len({attempt.partition for attempt in attempts}) > 1
    while several and 0 < at < len(attempts) and attempts[at].begin_ms == attempts[at - 1].begin_ms:
        at -= 1
    return at


def _newest(ended: Sequence[_Attempt]) -> str | None:
    """The newest of transactions that have ended. Their numbers tell, since a connector that died sends older ones
    again, and since the time does not order several partitions. None if names of different servers have one time."""
    if not ended:
        return None
    last = ended[-1]
    at_once = [attempt for attempt in ended if attempt.begin_ms == last.begin_ms]
    stem = numbered(last.transaction)[0]
    if len({a.partition for a in at_once}) > 1 and any(numbered(a.transaction)[0] != stem for a in at_once):
        return None
    return max((a.transaction for a in ended if numbered(a.transaction)[0] == stem), key=numbered)


def _complete_run(
    attempts: Sequence[_Attempt],
    rows: _AttemptRows,
    statements: Collection[str],
    wanted: frozenset[str],
    passed: TransactionProgress,
    reached: Reached,
    horizon_ms: float,
) -> int:
    """The number of attempts before the first one that is neither complete nor torn.

    END does not count the events that a torn attempt sent before; these events must be there as well. An END whose
    rows are lost is taken away from its attempt. ``statements``: the transactions of TRUNCATEs that are there.
    """
    again = _sent_again_ms(attempts)
    torn = set(passed.torn)
    for index, attempt in enumerate(attempts):
        if attempt.counts is not None:
            complete = all(rows.has_all(index, table, n) for table, n in attempt.counts.items() if table in wanted)
            complete = complete and (attempt.transaction not in torn or reached(attempt.begin_ms))
            if not complete and index in again and reached(again[index]):
                attempt.counts, complete = None, True
                torn.add(attempt.transaction)
        elif attempt.transaction in statements:
            complete = True
        else:
            nothing = not rows.any_of(attempt.transaction)
            complete = index in again or (nothing and index + 1 < len(attempts))
            # If it is a TRUNCATE, its record may have the time of the next BEGIN.
            complete = complete and (not nothing or reached(attempts[index + 1].begin_ms + 1))
            if complete and index in again:
                torn.add(attempt.transaction)
        if not complete or attempt.begin_ms >= horizon_ms:
            return _apart(attempts, index)
    return len(attempts)


def _sent_again_ms(attempts: Sequence[_Attempt]) -> dict[int, int]:
    """By attempt the time of the next BEGIN of its transaction, if there is one."""
    next_ms: dict[str, int] = {}
    again = {}
    for index in reversed(range(len(attempts))):
        transaction = attempts[index].transaction
        if transaction in next_ms:
            again[index] = next_ms[transaction]
        next_ms[transaction] = attempts[index].begin_ms
    return again


def _settled(
    attempts: Sequence[_Attempt], taken: int, passed: TransactionProgress
) -> tuple[frozenset[str], frozenset[str]]:
    """The transactions that are whole with the taken attempts, and those that are still torn."""
    newest = {attempt.transaction: index for index, attempt in enumerate(attempts)}
    whole = frozenset(a.transaction for a in attempts[:taken] if a.counts is not None)
    again = {
        a.transaction for index, a in enumerate(attempts[:taken]) if a.counts is None and newest[a.transaction] > index
    }
    return whole, (passed.torn | again) - whole


#: The attempt of a row that belongs to an attempt before the listed ones, or after them.
_BEFORE, _AFTER = -1, -2


class _AttemptRows:
    """The row events, by the attempt that sent them."""

    def __init__(self, members: Sequence[Members], attempts: Sequence[_Attempt], passed: TransactionProgress) -> None:
        self._passed = passed
        self._listed: dict[str, list[int]] = {}
        for index, attempt in enumerate(attempts):
            self._listed.setdefault(attempt.transaction, []).append(index)
        self._attempts = attempts
        self._attempt_of = {id(part): self._assigned(part) for part in members}
        self._orders: dict[tuple[int, str], set[int]] = {}
        self._seen: set[str] = set()
        for part in members:
            self._note(part)

    def _assigned(self, part: Members) -> npt.NDArray[np.int64]:
        """The attempt of each row, by time: the connector writes BEGIN, then the rows, then END."""
        attempt = np.full(len(part.codes), _BEFORE, dtype=np.int64)
        by_code = np.argsort(part.codes, kind="stable")
        bounds = np.searchsorted(part.codes[by_code], np.arange(len(part.kinds) + 1))
        for code, (transaction, _) in enumerate(part.kinds):
            mine = by_code[bounds[code] : bounds[code + 1]]
            for index in self._listed.get(transaction, ()):
                begin_ms, end_ms = self._attempts[index].begin_ms, self._attempts[index].end_ms
                attempt[mine[attempt[mine] == _AFTER]] = _BEFORE  # of an attempt whose BEGIN is lost
                attempt[mine[part.timestamps_ms[mine] >= begin_ms]] = index
                if end_ms is not None:
                    attempt[mine[part.timestamps_ms[mine] > end_ms]] = _AFTER
        return attempt

    def _note(self, part: Members) -> None:
        places = zip(self._attempt_of[id(part)].tolist(), part.codes.tolist(), part.orders.tolist(), strict=True)
        for attempt, code, order in places:
            self._orders.setdefault((attempt, part.kinds[code][1]), set()).add(order)
        self._seen.update(transaction for transaction, _ in part.kinds)

    def any_of(self, transaction: str) -> bool:
        """Whether the transaction has any row."""
        return transaction in self._seen

    def has_all(self, attempt: int, table: str, count: int) -> bool:
        """Whether rows 1 to ``count`` of the attempt in that table are among the records."""
        there = self._orders.get((attempt, table), set())
        return len(there) >= count and all(n in there for n in range(1, count + 1))

    def held(self, part: Members, taken: int, whole: frozenset[str], torn: frozenset[str]) -> npt.NDArray[np.bool_]:
        """A mask of the rows that have to wait: rows of attempts that are not taken, and rows of torn attempts."""
        attempt = self._attempt_of[id(part)]
        is_torn = np.array([t in torn for t, _ in part.kinds], dtype=bool)[part.codes]
        is_whole = np.array([t in whole for t, _ in part.kinds], dtype=bool)[part.codes]
        is_listed = np.array([t in self._listed for t, _ in part.kinds], dtype=bool)[part.codes]
        has_ended = np.array([t in self._passed.ended for t, _ in part.kinds], dtype=bool)[part.codes]
        until_ms = self._passed.until_ms
        is_older = (part.timestamps_ms < until_ms) & ~is_listed | (part.timestamps_ms == until_ms) & has_ended
        before = (attempt == _BEFORE) & (is_whole | is_older)
        free = (((attempt >= 0) & (attempt < taken)) | before) & ~is_torn
        return np.asarray(~free, dtype=np.bool_)

    def unannounced(
        self, members: Sequence[Members], held: Sequence[npt.NDArray[np.bool_]], taken: Sequence[_Attempt]
    ) -> frozenset[str]:
        """The transactions of rows that have to wait, that are older than the newest taken record of the transaction
        topic, and that no BEGIN has announced."""
        until_ms = max((a.begin_ms if a.end_ms is None else a.end_ms for a in taken), default=0)
        transactions: set[str] = set()
        for part, waits in zip(members, held, strict=True):
            late = waits & (self._attempt_of[id(part)] == _BEFORE) & (part.timestamps_ms < until_ms)
            transactions.update(part.kinds[code][0] for code in np.unique(part.codes[late]).tolist())
        return frozenset(transactions)

    def first_behind(self, members: Sequence[Members], held: Sequence[npt.NDArray[np.bool_]], taken: int) -> int | None:
        """The first taken attempt with a row after a row that has to wait; None if there is none.

        A connector that died left rows of a torn attempt before the rows that it sent afterwards. These later rows can
        be taken only together with a whole attempt at the torn transaction.
        """
        attempt_indices = []
        for place in {(part.topic, part.partition) for part in members}:
            mine = [(p, w) for p, w in zip(members, held, strict=True) if (p.topic, p.partition) == place]
            firsts = [int(part.offsets[waits][0]) for part, waits in mine if waits.any()]
            for part, _ in mine if firsts else ():
                attempt = self._attempt_of[id(part)][part.offsets >= min(firsts)]
                attempt_indices += attempt[(attempt >= 0) & (attempt < taken)].tolist()
        return min(attempt_indices, default=None)


def _oldest(members: Sequence[Members], held: Sequence[npt.NDArray[np.bool_]]) -> str | None:
    """The transaction of the oldest row that is held back."""
    oldest_rows = [
        (int(part.timestamps_ms[index]), part.kinds[part.codes[index]][0])
        for part, waits in zip(members, held, strict=True)
        for index in np.flatnonzero(waits)[:1]
    ]
    return min(oldest_rows)[1] if oldest_rows else None


def _until(planned: OffsetRange, until: int | None) -> OffsetRange:
    end = planned.start if until is None else min(planned.end, max(planned.start, until))
    return OffsetRange(planned.topic, planned.partition, planned.start, end)


def _cut(planned: OffsetRange, members: Sequence[Members], held: Sequence[npt.NDArray[np.bool_]]) -> OffsetRange:
    """The part of the range before its first row that is held back."""
    firsts = [
        int(part.offsets[waits][0])
        for part, waits in zip(members, held, strict=True)
        if (part.topic, part.partition) == (planned.topic, planned.partition) and waits.any()
    ]
    return OffsetRange(planned.topic, planned.partition, planned.start, min(firsts, default=planned.end))
