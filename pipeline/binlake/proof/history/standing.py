"""Which changes of a row stand, and what a revert makes of the row then.

The model: the lake has applied the source's changes of a row and the reverts one after the other. A revert undoes the
changes of its transactions if no other change that stands follows the first of them, and the one before the first
stands; otherwise it leaves the row. What has been undone is no later change. The row is as it was before the first of
the undone changes at its end. A row that does not agree with this model was written by something else: it is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from binlake.position.recorded import NAMED_TRANSACTIONS, Revert
from binlake.proof.history.commits import CommitLog
from binlake.proof.history.row_change import Identity, RowChange
from binlake.proof.history.undo import Conflict, Obstacle, Present, Undone, follows, is_as, undo


@dataclass(frozen=True)
class Past:
    """The changes of a row that the topics hold, each as it was first delivered.

    Args:
        changes: as they happened.
        whole: whether the topics hold every record that the table has applied.
        reread: the newest row of a snapshot; None if no snapshot has read the row.
    """

    changes: tuple[RowChange, ...]
    whole: bool
    reread: RowChange | None = None


def undo_in_past(
    changes: Sequence[RowChange],
    past: Past,
    present: Present,
    reverts: Sequence[Revert],
    log: CommitLog,
    *,
    by_column: bool,
) -> Undone:
    """Undo changes of a row as ``undo``, by what stands of all of its changes.

    ``reverts``: those that may have written the row. ``log``: of its table.
    """
    row = _History.of(past, present, reverts, log)
    chosen = [change.identity for change in changes]
    if row is None or not set(chosen) <= set(row.names):
        done = undo(changes, present, by_column=by_column)
        columns = by_column and present.reverted  # the record of a revert by columns does not say which went back
        if done.changes_row and not columns:
            return _left(present, Obstacle.NOT_AS_RECORDED)
        return replace(done, whole=False)
    stands = row.stands
    first = min((index for index in range(stands) if row.names[index] in chosen), default=None)
    if first is None:
        return Undone(present.values, present.values, done_before=True)
    run = range(first, stands)
    between = any(row.names[index] not in chosen and index not in row.undone for index in run)
    taken = [row.changes[index] for index in run if row.names[index] in chosen or not between]
    if stands < len(row.changes):
        present = replace(present, stands=row.changes[stands - 1].order)
    done = undo(taken, present, by_column=by_column)
    if between:  # of the row's history, only columns are undone
        done = replace(done, whole=False)
    obstacle = row.obstacle_below(first)
    if obstacle is None and between and not by_column:
        obstacle = Obstacle.CHANGED_LATER
    if obstacle is None or (done.conflicts and not done.changes_row):
        return done
    return _left(present, obstacle)


def _left(present: Present, obstacle: Obstacle) -> Undone:
    return Undone(present.values, present.values, conflicts=(Conflict(obstacle),))


@dataclass(frozen=True)
class _History:
    """The applied changes of a row and the numbers of those that are undone; ``instants``: when they were applied."""

    changes: Sequence[RowChange]
    instants: Sequence[str]
    undone: frozenset[int]
    reverts: Sequence[Revert]
    whole: bool

    @staticmethod
    def of(past: Past, present: Present, reverts: Sequence[Revert], log: CommitLog) -> _History | None:
        """The history of a row; None if the row is not what it says, or if the time of a change is not known."""
        changes = [c for c in past.changes if present.order is None or c.order <= present.order]
        instants = [_applied(change, log) for change in changes]
        read = "" if past.reread is None else _applied(past.reread, log)
        known = [instant for instant in instants if instant is not None]
        if not changes or len(known) < len(changes) or read is None:
            return None
        later = sorted((r for r in reverts if r.instant > read), key=lambda revert: revert.instant)
        row = _History(changes, known, _undone(changes, known, later), later, past.whole)
        return row if row._agrees(present, past.reread) else None

    @property
    def names(self) -> list[Identity]:
        """The changes by their identities."""
        return [change.identity for change in self.changes]

    @property
    def stands(self) -> int:
        """The number of the first of the undone changes at the end."""
        return _first_of_end(len(self.changes), self.undone)

    def _agrees(self, present: Present, reread: RowChange | None) -> bool:
        """Whether the row is as the history says."""
        if self.stands == len(self.changes):
            return not present.reverted
        bases = self.changes[-1].order, None if reread is None else reread.order
        undone = self.changes[self.stands]
        return undone.whole and follows(present, bases) and is_as(present.values, undone.before)

    def obstacle_below(self, first: int) -> Obstacle | None:
        """Whether a change's before image holds what a revert has undone, or may have undone."""
        earlier = self.instants[first - 1] if first else ""
        between = [revert for revert in self.reverts if earlier < revert.instant < self.instants[first]]
        if first - 1 in self.undone or (first and any(_names_not_all(revert) for revert in between)):
            return Obstacle.REVERTED_BEFORE
        return Obstacle.UNKNOWN_BEFORE if not first and between and not self.whole else None


def _undone(changes: Sequence[RowChange], instants: Sequence[str], reverts: Sequence[Revert]) -> frozenset[int]:
    """The numbers of the changes that reverts have undone."""
    undone: frozenset[int] = frozenset()
    for revert in reverts:
        seen = sum(instant < revert.instant for instant in instants)
        chosen = {index for index in range(seen) if not changes[index].trace.names.isdisjoint(revert.transactions)}
        stands = _first_of_end(seen, undone)
        wanted = {index for index in chosen if index < stands}
        if wanted and min(wanted) - 1 not in undone and set(range(min(wanted), stands)) <= undone | wanted:
            undone |= wanted
    return undone


def _first_of_end(count: int, undone: frozenset[int] | set[int]) -> int:
    while count and count - 1 in undone:
        count -= 1
    return count


def _names_not_all(revert: Revert) -> bool:
    """Whether a revert may have undone transactions that its record does not name."""
    return not 0 < len(revert.transactions) < NAMED_TRANSACTIONS


def _applied(change: RowChange, log: CommitLog) -> str | None:
    commit = log.covering(change.topic, change.partition, change.offset)
    return None if commit is None else commit.instant
