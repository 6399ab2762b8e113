"""Undoes changes of one row: what the row is to become, and what stands in the way.

The changes are undone from the last to the first. The rule for one change is a merge of three: the row before the
change, the row after it, and the row now. What the change did is taken back where the row still is as the change left
it. Whatever differs was changed later and stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from binlake.proof.history.row_change import Row, RowChange

#: The least distance of two events in the binlog: the size of an event's header (MySQL's binlog format, version 4).
_EVENT_BYTES = 19


class Obstacle(StrEnum):
    """Why a row, or a column of it, is left as it is."""

    CHANGED_LATER = "changed later"
    INSERTED_LATER = "inserted again later"
    DELETED_LATER = "deleted later"
    REMOVED_LATER = "removed later by TRUNCATE, DROP TABLE or a statement about its partition"
    UNKNOWN_DELETE = "deleted, and the delete is no longer stored, so a later change may have deleted it"
    REVERTED_BEFORE = "an earlier transaction of the row was reverted, and its change would come back: name both"
    UNKNOWN_BEFORE = "Kafka no longer has the row's change before, which an earlier revert may have undone"
    NOT_AS_RECORDED = "the row is not as its changes and the recorded reverts make it"
    NOT_APPLIED = "the lake does not hold this change: quarantined, filtered, or not applied yet"


@dataclass(frozen=True)
class Present:
    """A row now.

    Args:
        values: the row; None if there is none.
        order: its ordering value, or that of the delete that is stored for it; None if nothing is stored.
        reverted: whether a revert has written it.
        removed_until: TRUNCATE or DROP TABLE has removed rows of this key up to this ordering value; -1 for none.
        reread: the ordering value at which an incremental snapshot has read the row last; None if none has. With the
            same values the row was read again, not changed.
        stands: the ordering value of the last change that stands, if those after it were reverted.
    """

    values: Row | None
    order: int | None
    reverted: bool = False
    removed_until: int = -1
    reread: int | None = None
    stands: int | None = None


@dataclass(frozen=True)
class Conflict:
    """A row (``column`` None) or a column of it that is left as it is."""

    obstacle: Obstacle
    column: str | None = None


@dataclass(frozen=True)
class Undone:
    """What becomes of a row.

    Args:
        now: the row now; None if there is none.
        then: the row after the revert; None if it is deleted.
        order: the ordering value of what is written: the next one after the row's present value.
        conflicts: what is left as it is.
        done_before: whether an earlier revert has undone these changes already.
        whole: whether all of the changes are undone, and not only columns of them.
    """

    now: Row | None
    then: Row | None
    order: int = -1
    conflicts: tuple[Conflict, ...] = ()
    done_before: bool = False
    whole: bool = False

    @property
    def changes_row(self) -> bool:
        """Whether the row gets other values."""
        return not same_row(self.now, self.then)

    @property
    def is_written(self) -> bool:
        """Whether the row is to be written: also with the values that it has, so that later reverts know that these
        changes are undone."""
        return self.whole or self.changes_row

    @property
    def cells(self) -> Mapping[str, tuple[Any, Any]]:
        """The columns that change: name -> (now, then)."""
        now, then = self.now or {}, self.then or {}
        names = dict.fromkeys([*now, *then])
        return {n: (now.get(n), then.get(n)) for n in names if not same(now.get(n), then.get(n))}


def undo(changes: Sequence[RowChange], present: Present, *, by_column: bool) -> Undone:
    """Undo changes of one row.

    Args:
        changes: of the row, each with its whole before image; as they happened, none twice.
        present: the row now.
        by_column: also set back columns of rows that were changed later, where the later changes left these columns
            alone. By default such a row is not touched, and a row that the changes inserted or deleted never is.

    The ordering value is the row's present one plus one. So the row wins over the undone changes when they are
    delivered again, which a later commit at the same value would not; and it loses to any later event of the source,
    because two events lie at least ``_EVENT_BYTES`` apart in the binlog.
    """
    if by_column and not (done := undo(changes, present, by_column=False)).conflicts:
        return done
    left = changes[: _undone_from(changes, present)] if present.stands is None else changes
    if not left:
        return Undone(present.values, present.values, done_before=True)
    updates_only = all(change.before is not None and change.after is not None for change in changes)
    obstacle = _obstacle(changes[-1], present, by_column=by_column and updates_only)
    if obstacle is not None and len(left) == len(changes):
        return Undone(present.values, present.values, conflicts=(Conflict(obstacle),))
    state = None if present.values is None else dict(present.values)
    conflicts: list[Conflict] = []
    for change in reversed(left):
        blocked = _take_back(change, state, by_column=by_column)
        if blocked is not None:
            return Undone(present.values, present.values, conflicts=(Conflict(blocked),))
        if change.after is None:
            state = dict(change.before or {})
        elif change.before is None:
            state = None
        elif state is not None:
            conflicts += _set_back(change.before, change.after, state)
    order = present.order + 1 if present.order is not None else -1
    return Undone(present.values, state, order, tuple(dict.fromkeys(conflicts)), whole=not by_column)


def _undone_from(changes: Sequence[RowChange], present: Present) -> int:
    """The number of the first change that an earlier revert has undone with all after it; their number if none is.

    Reverts write the ordering values that follow the one of the last change, or of a snapshot that has read the row
    again. No event of the source has one of these. They leave the row as it was before the first change that they undo.
    """
    if present.reverted and follows(present, (changes[-1].order, present.reread)):
        for index, change in enumerate(changes):
            if is_as(present.values, change.before):
                return index
    return len(changes)


def follows(present: Present, bases: Sequence[int | None]) -> bool:
    """Whether a row's ordering value is one that reverts write after one of some events."""
    order = present.order
    return order is not None and any(base is not None and base < order < base + _EVENT_BYTES for base in bases)


def is_as(state: Row | None, image: Row | None) -> bool:
    """Whether a row has the values of an image, or both are none."""
    if state is None or image is None:
        return state is image
    return all(same(state.get(name), value) for name, value in image.items())


def _obstacle(last: RowChange, present: Present, *, by_column: bool) -> Obstacle | None:
    """Why the row cannot be touched at all."""
    if last.removed or last.order <= present.removed_until:
        return Obstacle.REMOVED_LATER
    if present.order is None:
        return Obstacle.UNKNOWN_DELETE if last.after is None else Obstacle.DELETED_LATER
    order = present.order if present.stands is None else present.stands
    if order < last.order:
        return Obstacle.NOT_APPLIED
    if order == last.order:
        return None
    if last.after is None:
        return Obstacle.INSERTED_LATER if present.values is not None else Obstacle.DELETED_LATER
    if present.values is None:
        return Obstacle.DELETED_LATER
    if present.reread == present.order and is_as(present.values, last.after):
        return None
    return None if by_column else Obstacle.CHANGED_LATER


def _take_back(change: RowChange, state: Row | None, *, by_column: bool) -> Obstacle | None:
    """Why a change cannot be taken back from a state of the row."""
    if change.after is None:
        return None if state is None else Obstacle.INSERTED_LATER
    if state is None:
        return Obstacle.DELETED_LATER
    return None if is_as(state, change.after) or (by_column and change.before is not None) else Obstacle.CHANGED_LATER


def _set_back(before: Row, after: Row, state: dict[str, Any]) -> list[Conflict]:
    """Set back in ``state`` the columns that a change has changed; the columns that were changed later."""
    conflicts = []
    for name, value in after.items():
        if same(before.get(name), value):
            continue
        if same(state.get(name), value):
            state[name] = before.get(name)
        elif not same(state.get(name), before.get(name)):
            conflicts.append(Conflict(Obstacle.CHANGED_LATER, name))
    return conflicts


def same_row(some: Row | None, others: Row | None) -> bool:
    """Whether two rows have the same values; a column that one lacks is null."""
    if some is None or others is None:
        return some is others
    return all(same(some.get(name), others.get(name)) for name in {*some, *others})


def same(one: object, other: object) -> bool:
    """Whether two values of a column are the same; NaN is the same as NaN, and 0.0 is not -0.0."""
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return one == other
