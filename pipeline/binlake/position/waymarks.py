"""How a stream moved its position in one table: the commits that say where they begin and end.

``cuts`` puts the tables of a stream together. In a binlog the statements that a table's commits record, and the places
at which a first load or a repair has read its rows, are places too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from binlake.position.record_reader import RecordReader
from binlake.position.recorded import RecordedLoad, RecordedTransactions
from binlake.source.binlog.places import PARTITION, offset_at, offset_of, offset_of_order
from binlake.source.binlog.topic import is_binlog
from binlake.source.offsets import NO_OFFSETS, NO_RANGES, Offsets, Ranges

#: Partition of the transaction topic -> offset.
Place: TypeAlias = Mapping[int, int]


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
class QuarantinedPlace:
    """A record that a table lacks. ``since``: the commit that has brought it since, 17 digits; "" if none has."""

    topic: str
    partition: int
    offset: int
    since: str = ""


@dataclass(frozen=True)
class TableEvidence:
    """What is known of a table of a stream.

    Args:
        commits: in any order.
        restores: when restores of the table completed, 17 digits.
        reached: the table has everything before this place, as the ledger said before the commits were read; None if
            that is not known.
        transaction: the newest transaction before ``reached``.
        loaded: how far it was loaded from the source's server, also where the load's commits are archived.
        repaired: the place of its newest repair, as ``loaded``.
        dumped: how far replays of dumps have brought each topic, as ``loaded``.
        lacks: its records in quarantine.
        waiting: the places of statements that are not carried out.
        binlog: whether the places are those of a binlog.
    """

    commits: Sequence[HistoryEntry]
    restores: Sequence[str] = ()
    reached: Place | None = None
    transaction: str | None = None
    loaded: RecordedLoad | None = None
    repaired: str | None = None
    dumped: Offsets = NO_OFFSETS
    lacks: Sequence[QuarantinedPlace] = ()
    waiting: Sequence[int] = ()
    binlog: bool = False


@dataclass(frozen=True)
class Waymark:
    """A commit that says where it ends.

    Args:
        commit: the commit.
        ends: the table has everything before this place with it.
        note: what it records of transactions; None for the carrying out of a statement, and for a load.
        positions: the offsets below which the table has everything.
    """

    commit: HistoryEntry
    ends: Place
    note: RecordedTransactions | None
    positions: Offsets


@dataclass(frozen=True)
class _Start:
    """Where a commit, or a restore, began.

    Args:
        completed: when it became visible.
        place: None if it does not say.
        ranges: that it covers.
        carries: whether it carries statements out.
    """

    completed: str
    place: Place | None
    ranges: Ranges = NO_RANGES
    carries: bool = False


@dataclass(frozen=True)
class Way:
    """How a stream moved its position in a table.

    Args:
        evidence: what is known of the table.
        marks: the commits that say where they end, the oldest first.
        starts: of each commit and restore, the oldest first.
        floors: (requested time of a commit, place): the table has rows from up to that place since; the place is None
            if it is not known.
        dumps: (requested time of a commit, offsets): the table has records of dumps up to there since.
    """

    evidence: TableEvidence
    marks: Sequence[Waymark]
    starts: Sequence[_Start]
    floors: Sequence[tuple[str, Place | None]] = ()
    dumps: Sequence[tuple[str, Offsets]] = ()

    @staticmethod
    def of(stream: str, evidence: TableEvidence) -> Way:
        """By the commits of a table. Raises UnsupportedError, ValueError for records that cannot be read."""
        made = _WayBuilder(stream, evidence)
        for commit in sorted(evidence.commits, key=lambda one: one.requested):
            made.take(commit)
        return made.way()

    def state_at(self, place: Place, *, all_came: bool) -> Waymark | str:
        """The commit as of which the table is read at a place, or why there is none.

        ``all_came``: whether other tables say that all tables have everything before it.
        """
        mark = next((one for one in reversed(self.marks) if leads_to(one.ends, place)), None)
        if mark is None:
            return "it has no commit up to there: it came later, or older commits are archived"
        for requested, floor in self.floors:
            if requested <= mark.commit.requested and (floor is None or not leads_to(floor, place)):
                return "some of its rows were read at a later place, by a load or a repair"
        if any(
            requested <= mark.commit.requested and self._dumped_beyond(mark, ends) for requested, ends in self.dumps
        ):
            return "a replay has brought rows of it from later records of a dump"
        start = next((one for one in self.starts if one.completed > mark.commit.completed), None)
        if start is None:
            reached = self.evidence.reached
            if not all_came and (reached is None or not leads_to(place, reached)) and not _ends_at(mark, place):
                return "it has not come so far"
            if any(waiting < place.get(PARTITION, 0) for waiting in self.evidence.waiting):
                return "a statement from before it is not carried out yet"
        elif start.carries or not _ends_at(mark, place):
            if start.place is None:
                return "it was restored or caught up since, and nobody knows what it had there"
            if not leads_to(place, start.place):
                return "one commit of it has changes from before and from after it"
        if self._lacks_at(place, mark, start):
            return "a record of it is in quarantine (binlake replay brings it back)"
        return mark

    def _dumped_beyond(self, mark: Waymark, ends: Offsets) -> bool:
        """Whether a dump's records lie beyond those of the stream; of topics that the stream reads."""
        mine = self.marks[-1].positions
        return any(
            topic in mine and mark.positions.at(topic, partition) < end for topic, partition, end in ends.places()
        )

    def _lacks_at(self, place: Place, mark: Waymark, start: _Start | None) -> bool:
        """Whether a record from before a place may be in quarantine."""
        later = start.ranges.starts() if start is not None else NO_OFFSETS
        for one in self.evidence.lacks:
            if one.since and one.since <= mark.commit.requested:
                continue
            if is_binlog(one.topic):
                before = one.offset < place.get(one.partition, 0)
            else:
                before = not later.knows(one.topic, one.partition) or one.offset < later.at(one.topic, one.partition)
            if before:
                return True
        return False


class _WayBuilder:
    def __init__(self, stream: str, evidence: TableEvidence) -> None:
        self._stream, self._evidence = stream, evidence
        self._marks: list[Waymark] = []
        self._starts = [_Start(completed, None) for completed in evidence.restores]
        self._floors: list[tuple[str, Place | None]] = []
        self._dumps: list[tuple[str, Offsets]] = []
        self._statements: set[int] | None = None

    def take(self, commit: HistoryEntry) -> None:
        """The next commit, by requested time."""
        record, binlog = RecordReader.of_commit(commit.extra), self._evidence.binlog
        moves = record.stream == self._stream and bool(record.ranges)
        if moves:
            note = record.transactions
            begins = note.after if note is not None else None
            self._starts.append(_Start(commit.completed, begins, record.ranges))
            if note is not None:
                self._marks.append(Waymark(commit, note.offsets, note, record.positions_of(self._stream)))
        if record.dumped:
            self._dumps.append((commit.requested, record.dumped))
        if binlog:
            self._take_read(commit, record)
            self._take_statements(commit, record, moves=moves)

    def _take_read(self, commit: HistoryEntry, record: RecordReader) -> None:
        """Rows that a load or a repair has read. The end of a load is a mark: the stream begins before it."""
        if (load := record.load) is not None and (place := _place_of_load(load)) is not None:
            self._marks.append(Waymark(commit, place, None, NO_OFFSETS))
        if (repaired := record.repaired) is not None:
            self._floors.append((commit.requested, _place_of_repair(repaired.position)))

    def _take_statements(self, commit: HistoryEntry, record: RecordReader, *, moves: bool) -> None:
        """A commit that carries statements out is a mark behind the last of them."""
        if (entries := record.ddl) is None:
            return
        known, self._statements = self._statements, {offset_of_order(entry.order) for entry in entries}
        new = self._statements - (known or set())
        if moves or not new or not self._marks:
            return
        before = self._marks[-1]
        if known is None and before.note is not None and before.note.after is not None:
            # those from before the newest batch were carried out before it, in commits that are archived
            began = before.note.after.get(PARTITION, 0)
            new = {one for one in new if one >= began} or {max(new)}
        self._starts.append(_Start(commit.completed, {PARTITION: min(new)}, carries=True))
        ends = {PARTITION: max(max(new) + 1, before.ends.get(PARTITION, 0))}
        self._marks.append(Waymark(commit, ends, None, before.positions))

    def way(self) -> Way:
        """All that was taken."""
        evidence, floors = self._evidence, self._floors
        if evidence.binlog and evidence.loaded is not None:
            floors = [*floors, ("", _place_of_load(evidence.loaded))]
        if evidence.binlog and evidence.repaired is not None and not self._floors:
            floors = [*floors, ("", _place_of_repair(evidence.repaired))]
        dumps = self._dumps or [("", evidence.dumped)]
        return Way(evidence, self._marks, sorted(self._starts, key=lambda one: one.completed), floors, dumps)


def leads_to(offsets: Place, place: Place) -> bool:
    """Whether one place is another one, or before it, in every partition."""
    return all(offset <= place.get(partition, 0) for partition, offset in offsets.items())


def _ends_at(mark: Waymark, place: Place) -> bool:
    return mark.note is not None and mark.note.offsets == place


def _place_of_load(load: RecordedLoad) -> Place | None:
    if not load.done or load.reached is None:
        return None
    return {PARTITION: offset_of(load.reached.file, load.reached.position)}


def _place_of_repair(position: str) -> Place:
    return {PARTITION: offset_at(position.partition(" ")[0])}
