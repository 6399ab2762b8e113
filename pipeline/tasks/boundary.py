"""Where a batch must end so that it holds whole transactions only.

The records planned for a batch are looked through for the transactions they are of, beside the BEGIN and END records of
the connector's transaction topic. A transaction is complete when every event that its END counts is among the records.
The batch takes the longest run of complete transactions, in binlog order; each topic partition is cut before its first
event of any other. What is left over stays below the stream's position, and is looked at again with the next batch: so
nothing has to be remembered but the position in the transaction topic, which is a position like any other.

A BEGIN without END, with another BEGIN after it, is a DDL statement if no row is of it; else a connector died there and
will send that transaction again, from its beginning or from somewhere in it. The rows of such a torn attempt wait until
a later attempt is complete. What belongs to which attempt is told by time, for the connector writes BEGIN first. A row
of a transaction whose BEGIN lies before the position in the topic is of one that was complete earlier (delivered again,
or met again after the ledger was lost), unless that was a torn attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
import numpy.typing as npt

from pipeline.decode.messages.transactions import Mark, Members
from pipeline.source.offsets import OffsetRange


@dataclass
class Survey:
    """What the records of a batch say of transactions. ``marks``: of the transaction topic, in order."""

    marks: list[Mark] = field(default_factory=list)
    members: list[Members] = field(default_factory=list)

    def add(self, other: Survey) -> None:
        """Take in another task's."""
        self.marks += other.marks
        self.members += other.members


@dataclass(frozen=True)
class Boundary:
    """A batch cut at a transaction boundary.

    Args:
        ranges: what the batch takes.
        last: the newest transaction that is in it; None if the transaction topic brought none.
        waiting: the oldest transaction that is not complete, with the number of records held back; None if none is.
        torn: transactions of which only torn attempts lie before the batch's end in the transaction topic.
        split: it ends anywhere, for that took too long.
    """

    ranges: list[OffsetRange]
    last: str | None = None
    waiting: tuple[str, int] | None = None
    torn: frozenset[str] = frozenset()
    split: bool = False

    @property
    def notices(self) -> tuple[str, ...]:
        """What people should know."""
        if self.waiting is None:
            return ()
        transaction, held = self.waiting
        if self.split:
            return (f"transaction {transaction} was overdue: the batch holds what there was of it",)
        return (f"{held} records wait for the end of transaction {transaction}",)


@dataclass(frozen=True)
class Passed:
    """What earlier batches took of the transaction topic: up to which time, which transactions ended at that very time,
    and which they left torn."""

    until_ms: int = 0
    ended: frozenset[str] = frozenset()
    torn: frozenset[str] = frozenset()


@dataclass
class _Attempt:
    """A BEGIN and what followed. ``end``: offset behind its END (or BEGIN), in ``partition`` of the transaction topic;
    ``end_ms``, ``counts`` None without END."""

    transaction: str
    begin_ms: int
    partition: int
    end: int
    end_ms: int | None = None
    counts: dict[str, int] | None = None


#: Whether the planned ranges hold all records of the data topics that are older than a time (ms).
Reached = Callable[[int], bool]


def boundary(
    ranges: Sequence[OffsetRange],
    survey: Survey,
    topic: str,
    consumed: Iterable[str],
    passed: Passed,
    reached: Reached,
    horizon_ms: float = inf,
) -> Boundary:
    """Cut the planned ranges.

    Args:
        ranges: what was planned, the transaction topic's partition among them if it has anything new.
        survey: of exactly these ranges.
        topic: the transaction topic.
        consumed: ``database.table`` of the tables that the stream's topics carry; events of others are not waited for.
        passed: what was taken of the transaction topic before.
        reached: asked only where a connector died or a DDL statement was sent.
        horizon_ms: BEGIN records from that time on may be lacking, where the transaction topic has several partitions.
    """
    attempts = _attempts(survey.marks)
    rows = _Rows(survey.members, attempts, passed)
    taken = _complete_run(attempts, rows, frozenset(consumed), passed, reached, horizon_ms)
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
    records = sum(len(r) for r in ranges if r.topic != topic) - sum(len(r) for r in cut if r.topic != topic)
    last = next((a.transaction for a in reversed(attempts[:taken]) if a.counts is not None), None)
    named = (waiting, records) if records and waiting is not None else None
    return Boundary([r for r in cut if len(r)], last, named, torn)


def _attempts(marks: Sequence[Mark]) -> list[_Attempt]:
    """In the order of their BEGIN. The BEGIN of the first may lie before: then some of its rows do too, and what there
    is of it is taken. All records of a transaction are in one partition, for its id is their key."""
    found: dict[int, list[_Attempt]] = {}
    for mark in sorted(marks, key=lambda mark: (mark.partition, mark.offset)):
        mine, end = found.setdefault(mark.partition, []), mark.offset + 1
        if mark.counts is None:
            mine.append(_Attempt(mark.transaction, mark.timestamp_ms, mark.partition, end))
        elif mine and mine[-1].transaction == mark.transaction and mine[-1].counts is None:
            mine[-1].counts, mine[-1].end, mine[-1].end_ms = dict(mark.counts), end, mark.timestamp_ms
        else:
            mine.append(_Attempt(mark.transaction, 0, mark.partition, end, mark.timestamp_ms, {}))
    return sorted((a for mine in found.values() for a in mine), key=lambda attempt: attempt.begin_ms)


def _apart(attempts: Sequence[_Attempt], at: int) -> int:
    """``at``, or the first attempt of the same millisecond where partitions give no order but that of time."""
    several = len({attempt.partition for attempt in attempts}) > 1
    while several and 0 < at < len(attempts) and attempts[at].begin_ms == attempts[at - 1].begin_ms:
        at -= 1
    return at


def _complete_run(
    attempts: Sequence[_Attempt],
    rows: _Rows,
    wanted: frozenset[str],
    passed: Passed,
    reached: Reached,
    horizon_ms: float,
) -> int:
    """How many attempts from the first on are complete or torn.

    END does not count what a torn attempt sent before: that must be there as well.
    """
    newest = {attempt.transaction: at for at, attempt in enumerate(attempts)}
    torn = set(passed.torn)
    for at, attempt in enumerate(attempts):
        if attempt.counts is not None:
            complete = all(rows.has_all(at, table, n) for table, n in attempt.counts.items() if table in wanted)
            complete = complete and (attempt.transaction not in torn or reached(attempt.begin_ms))
        elif newest[attempt.transaction] > at:
            torn.add(attempt.transaction)
            complete = True
        else:
            nothing = at + 1 < len(attempts) and not rows.any_of(attempt.transaction)
            complete = nothing and reached(attempts[at + 1].begin_ms)
        if not complete or attempt.begin_ms >= horizon_ms:
            return _apart(attempts, at)
    return len(attempts)


def _settled(attempts: Sequence[_Attempt], taken: int, passed: Passed) -> tuple[frozenset[str], frozenset[str]]:
    """The transactions that are whole with the taken attempts, and those that are torn yet."""
    newest = {attempt.transaction: at for at, attempt in enumerate(attempts)}
    whole = frozenset(a.transaction for a in attempts[:taken] if a.counts is not None)
    again = {a.transaction for at, a in enumerate(attempts[:taken]) if a.counts is None and newest[a.transaction] > at}
    return whole, (passed.torn | again) - whole


#: A row of an attempt before those listed, and of one after them.
_BEFORE, _AFTER = -1, -2


class _Rows:
    """The row events, by the attempt at their transaction that they are of."""

    def __init__(self, members: Sequence[Members], attempts: Sequence[_Attempt], passed: Passed) -> None:
        self._passed = passed
        self._listed: dict[str, list[int]] = {}
        for at, attempt in enumerate(attempts):
            self._listed.setdefault(attempt.transaction, []).append(at)
        self._attempts = attempts
        self._attempt_of = {id(part): self._assigned(part) for part in members}
        self._orders: dict[tuple[int, str], set[int]] = {}
        self._seen: set[str] = set()
        for part in members:
            self._note(part)

    def _assigned(self, part: Members) -> npt.NDArray[np.int64]:
        """By their times: the connector writes BEGIN, the rows, END."""
        attempt = np.full(len(part.codes), _BEFORE, dtype=np.int64)
        by_code = np.argsort(part.codes, kind="stable")
        bounds = np.searchsorted(part.codes[by_code], np.arange(len(part.kinds) + 1))
        for code, (transaction, _) in enumerate(part.kinds):
            mine = by_code[bounds[code] : bounds[code + 1]]
            for at in self._listed.get(transaction, ()):
                begin_ms, end_ms = self._attempts[at].begin_ms, self._attempts[at].end_ms
                attempt[mine[part.timestamps_ms[mine] >= begin_ms]] = at
                if end_ms is not None:
                    attempt[mine[part.timestamps_ms[mine] > end_ms]] = _AFTER
        return attempt

    def _note(self, part: Members) -> None:
        places = zip(self._attempt_of[id(part)].tolist(), part.codes.tolist(), part.orders.tolist(), strict=True)
        for attempt, code, order in places:
            self._orders.setdefault((attempt, part.kinds[code][1]), set()).add(order)
        self._seen.update(transaction for transaction, _ in part.kinds)

    def any_of(self, transaction: str) -> bool:
        """Whether any row is of the transaction."""
        return transaction in self._seen

    def has_all(self, attempt: int, table: str, count: int) -> bool:
        """Whether rows 1 to ``count`` of the attempt in that table are there."""
        there = self._orders.get((attempt, table), set())
        return len(there) >= count and all(n in there for n in range(1, count + 1))

    def held(self, part: Members, taken: int, whole: frozenset[str], torn: frozenset[str]) -> npt.NDArray[np.bool_]:
        """Which rows have to wait: those of attempts that are not taken, and of torn ones."""
        attempt = self._attempt_of[id(part)]
        is_torn = np.array([t in torn for t, _ in part.kinds], dtype=bool)[part.codes]
        is_whole = np.array([t in whole or t in self._passed.ended for t, _ in part.kinds], dtype=bool)[part.codes]
        before = (attempt == _BEFORE) & (is_whole | (part.timestamps_ms < self._passed.until_ms))
        free = (((attempt >= 0) & (attempt < taken)) | before) & ~is_torn
        return np.asarray(~free, dtype=np.bool_)

    def first_behind(self, members: Sequence[Members], held: Sequence[npt.NDArray[np.bool_]], taken: int) -> int | None:
        """The first of the taken attempts with a row that lies behind one that has to wait; None if there is none.

        A connector that died has left rows of a torn attempt before those of transactions that it sent again: they can
        be taken only together with a whole attempt at that one.
        """
        found = []
        for place in {(part.topic, part.partition) for part in members}:
            mine = [(p, w) for p, w in zip(members, held, strict=True) if (p.topic, p.partition) == place]
            firsts = [int(part.offsets[waits][0]) for part, waits in mine if waits.any()]
            for part, _ in mine if firsts else ():
                attempt = self._attempt_of[id(part)][part.offsets >= min(firsts)]
                found += attempt[(attempt >= 0) & (attempt < taken)].tolist()
        return min(found, default=None)


def _oldest(members: Sequence[Members], held: Sequence[npt.NDArray[np.bool_]]) -> str | None:
    """The transaction of the oldest row that is held back."""
    found = [
        (int(part.timestamps_ms[at]), part.kinds[part.codes[at]][0])
        for part, waits in zip(members, held, strict=True)
        for at in np.flatnonzero(waits)[:1]
    ]
    return min(found)[1] if found else None


def _until(planned: OffsetRange, until: int | None) -> OffsetRange:
    end = planned.start if until is None else min(planned.end, max(planned.start, until))
    return OffsetRange(planned.topic, planned.partition, planned.start, end)


def _cut(planned: OffsetRange, members: Sequence[Members], held: Sequence[npt.NDArray[np.bool_]]) -> OffsetRange:
    """The range up to its first row that is held back."""
    firsts = [
        int(part.offsets[waits][0])
        for part, waits in zip(members, held, strict=True)
        if (part.topic, part.partition) == (planned.topic, planned.partition) and waits.any()
    ]
    return OffsetRange(planned.topic, planned.partition, planned.start, min(firsts, default=planned.end))
