"""The states of a stream's tables in which no transaction is torn over them, by the commits of the tables alone.

With ``batch.transaction_consistent`` the commits of a batch become visible one after the other. Each records how far
the transaction topic was read when its batch ended, and where it began (``RecordedTransactions``). The place where a
batch began is a *cut*: all tables had everything before it. A table's state there is that of its newest commit that
records this place or an earlier one. It is none if

- a commit beyond it came before one that leads to it: a stream died in a batch, and cut it again nearer;
- its batch was split because a transaction was overdue;
- the table had more there than its commits still say: it was restored since, or its next commit does not say where its
  batch began, as that of a table that was behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from binlake.position.record_reader import RecordReader
from binlake.position.recorded import RecordedTransactions
from binlake.source.offsets import NO_OFFSETS, Offsets

#: Partition of the transaction topic -> offset.
Place = Mapping[int, int]


class HistoryEntry(Protocol):
    """A completed commit of a table, as ``hudilake.Commit``."""

    @property
    def requested(self) -> str:
        """When it began, 17 digits."""

    @property
    def completed(self) -> str:
        """When it became visible, 17 digits."""

    @property
    def extra(self) -> Mapping[str, str]:
        """The keys that its writer recorded."""


@dataclass(frozen=True)
class Cut:
    """A state of several tables between two transactions.

    Args:
        place: offsets of the transaction topic, by partition.
        commits: table -> the requested time of its newest commit there: read it as of that.
        positions: the offsets below which the tables have everything.
        completed: when the last of these commits became visible, 17 digits.
        transaction: the newest transaction before it, in the words of the connector; None if no commit ends there.
    """

    place: Place
    commits: Mapping[str, str]
    positions: Offsets
    completed: str
    transaction: str | None


@dataclass(frozen=True)
class _Waymark:
    commit: HistoryEntry
    note: RecordedTransactions
    positions: Offsets


@dataclass(frozen=True)
class _Way:
    """How a stream moved its position in a table.

    Args:
        marks: the commits that say where they end.
        starts: by each commit and restore, the oldest first: when it completed, and the place where its batch began;
            None if it does not say.
    """

    marks: Sequence[_Waymark]
    starts: Sequence[tuple[str, Place | None]]

    def stood_at(self, mark: _Waymark, place: Place) -> bool:
        """Whether the table had nothing more at a place than with that commit, the newest one that leads there."""
        if mark.note.offsets == place:
            return True
        begins = [began for completed, began in self.starts if completed > mark.commit.completed]
        return not begins or (begins[0] is not None and _leads_to(place, begins[0]))


def declared_cuts(
    stream: str,
    histories: Mapping[str, Sequence[HistoryEntry]],
    restores: Mapping[str, Sequence[str]] | None = None,
    newest: Place | None = None,
) -> list[Cut]:
    """The cuts that commits declare, the oldest first. Without ``newest``, the newest state of the tables becomes one
    with the next batch.

    Cuts before the first commit in one of the histories are left out: what was archived is not known.

    Args:
        stream: the stream's name.
        histories: the commits of each of its tables (``Table.history``).
        restores: when restores of the tables completed, 17 digits; None if no table was restored.
        newest: where its ledger says that all tables have everything, read before the histories; None if unknown.

    Raises UnsupportedError and ValueError for commit records that cannot be read.
    """
    placed = {table: _way(stream, commits, (restores or {}).get(table, ())) for table, commits in histories.items()}
    every = [one for way in placed.values() for one in way.marks]
    begins = (*(one.note.after for one in every), newest)
    places = {tuple(sorted(begin.items())) for begin in begins if begin is not None}
    cuts = (_cut(dict(place), placed, every) for place in sorted(places, key=lambda place: sum(n for _, n in place)))
    return [cut for cut in cuts if cut is not None]


def _cut(place: Place, placed: Mapping[str, _Way], every: Sequence[_Waymark]) -> Cut | None:
    within = {table: [m for m in way.marks if _leads_to(m.note.offsets, place)] for table, way in placed.items()}
    if not all(within.values()):
        return None
    last = max(one.commit.completed for mine in within.values() for one in mine)
    beyond = (one for one in every if not _leads_to(one.note.offsets, place))
    if any(one.commit.completed < last for one in beyond):
        return None
    if any(one.note.split and one.note.offsets == place for one in every):
        return None
    newest = {table: max(mine, key=lambda one: one.commit.requested) for table, mine in within.items()}
    if not all(placed[table].stood_at(one, place) for table, one in newest.items()):
        return None
    positions = NO_OFFSETS
    for one in newest.values():
        positions = positions.furthest(one.positions)
    ends = (one.note.last for one in every if one.note.offsets == place and one.note.last is not None)
    commits = {table: one.commit.requested for table, one in newest.items()}
    return Cut(place, commits, positions, last, next(ends, None))


def _way(stream: str, commits: Sequence[HistoryEntry], restores: Sequence[str]) -> _Way:
    """The commits by which a stream moved its position in a table, and what moved it back."""
    marks: list[_Waymark] = []
    starts: list[tuple[str, Place | None]] = [(completed, None) for completed in restores]
    for commit in commits:
        record = RecordReader.of_commit(commit.extra)
        if record.stream != stream or not record.ranges:
            continue
        note = record.transactions
        starts.append((commit.completed, note.after if note is not None else None))
        if note is not None:
            marks.append(_Waymark(commit, note, record.positions_of(stream)))
    return _Way(marks, sorted(starts, key=lambda one: one[0]))


def _leads_to(offsets: Place, place: Place) -> bool:
    return all(offset <= place.get(partition, 0) for partition, offset in offsets.items())
