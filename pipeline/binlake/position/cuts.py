"""The states of a stream's tables in which no transaction is torn over them, by the commits of the tables alone.

Commits of a batch become visible one after the other. Each records how far the transaction topic was read when its
batch ended, and where it began (``RecordedTransactions``). A place of the transaction topic between two transactions is
a *cut*: the state of each table there is that of its newest commit that ends at this place or before it, if its next
commit begins there or later. Of tables without a next commit the ledger says how far they have come. A binlog is its
own transaction topic, so any place of it can be asked for. A table has no state at a place if

- a commit of it has changes from both sides of the place, as where a stream died in a batch and cut it again nearer;
- it was restored since, or its next commit does not say where it began, as that of a table that was behind;
- it has not come so far, has no commit so early (it came later, or its commits are archived), or waits for a statement;
- rows of it were read at a later place, by a first load or a repair; or a record of it is in quarantine.

No table has one inside a transaction that a batch has split.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from binlake.decode.messages.transactions import numbered
from binlake.position.record_reader import RecordReader
from binlake.position.waymarks import HistoryEntry, Place, TableEvidence, Way, leads_to
from binlake.source.binlog.topic import is_binlog
from binlake.source.offsets import NO_OFFSETS, Offsets


@dataclass(frozen=True)
class Cut:
    """A state of several tables between two transactions.

    Args:
        place: offsets of the transaction topic, by partition.
        commits: table -> the requested time of its newest commit there: read it as of that.
        positions: the offsets below which the tables have everything.
        completed: when the last of these commits became visible, 17 digits.
        transaction: the newest transaction before it, in the words of the connector; None if no commit ends there.
        missing: the tables that have no state there -> why.
    """

    place: Place
    commits: Mapping[str, str]
    positions: Offsets
    completed: str
    transaction: str | None
    missing: Mapping[str, str] = field(default_factory=dict)


def declared_cuts(
    stream: str,
    histories: Mapping[str, Sequence[HistoryEntry]],
    restores: Mapping[str, Sequence[str]] | None = None,
    newest: Place | None = None,
) -> list[Cut]:
    """The cuts of all tables that commits declare, the oldest first. Without ``newest``, the newest state of the tables
    becomes one with the next batch.

    Cuts before the first commit in one of the histories are left out: what was archived is not known.

    Args:
        stream: the stream's name.
        histories: the commits of each of its tables (``Table.history``).
        restores: when restores of the tables completed, 17 digits; None if no table was restored.
        newest: where its ledger says that all tables have everything, read before the histories; None if unknown.

    Raises UnsupportedError and ValueError for commit records that cannot be read.
    """
    commits_of = {table: list(commits) for table, commits in histories.items()}
    binlog = any(_of_binlog(commit) for commits in commits_of.values() for commit in commits)
    evidence = {
        table: TableEvidence(commits, restores=(restores or {}).get(table, ()), reached=newest, binlog=binlog)
        for table, commits in commits_of.items()
    }
    return [cut for cut in Moments(stream, evidence).cuts() if not cut.missing]


class Moments:
    """The states of a stream's tables.

    Args:
        stream: the stream's name.
        tables: what is known of each table.

    Raises UnsupportedError and ValueError for commit records that cannot be read.
    """

    def __init__(self, stream: str, tables: Mapping[str, TableEvidence]) -> None:
        self._ways = {table: Way.of(stream, known) for table, known in tables.items()}
        notes = [mark.note for way in self._ways.values() for mark in way.marks if mark.note is not None]
        self._ends = [note for note in notes if not note.split]
        self._splits = [note.offsets for note in notes if note.split]
        self._begins = [note.after for note in notes if note.after is not None]
        self._all_came = [note.after for note in notes if note.after is not None and not note.alone]
        before = {_key(note.after): note.before for note in notes if note.after is not None and note.before}
        self._names = before | _names_of(
            {_key(note.offsets): note.last for note in self._ends if note.last is not None}
        )
        for known in tables.values():
            if known.reached is not None and known.transaction is not None:
                self._names.setdefault(_key(known.reached), known.transaction)
        self._reached = [known.reached for known in tables.values() if known.reached is not None]

    @cached_property
    def places(self) -> Sequence[Place]:
        """The places between two batches that are known, the earliest first."""
        keys = {_key(place) for place in (*self._begins, *self._reached)}
        return [dict(key) for key in sorted(keys, key=lambda key: sum(offset for _, offset in key))]

    @cached_property
    def transactions(self) -> Mapping[str, Place]:
        """The places right behind transactions."""
        return {name: dict(key) for key, name in self._names.items()}

    def cuts(self, tables: Sequence[str] | None = None) -> list[Cut]:
        """The states at all known places, the oldest first; those without any table are left out. ``tables``: those
        that matter; None for all. A state that is the same as the one before it is left out."""
        cuts: list[Cut] = []
        for place in self.places:
            cut = self.at(place, tables)
            if not cut.commits:
                continue
            if cuts and (cuts[-1].commits, cuts[-1].missing.keys()) == (cut.commits, cut.missing.keys()):
                cuts.pop()
            cuts.append(cut)
        return cuts

    def at(self, place: Place, tables: Collection[str] | None = None) -> Cut:
        """The states at a place between two transactions. ``tables``: those that matter; None for all. The cut is
        complete, and has the positions, of all tables that have a state there."""
        asked = self._ways.keys() if tables is None else tables
        if self._is_torn(place):
            return Cut(place, {}, NO_OFFSETS, "", None, dict.fromkeys(asked, "a batch has split a transaction there"))
        all_came = any(leads_to(place, one) for one in self._all_came)
        states = {table: way.state_at(place, all_came=all_came) for table, way in self._ways.items()}
        marks = {table: state for table, state in states.items() if not isinstance(state, str)}
        positions = NO_OFFSETS
        for mark in marks.values():
            positions = positions.furthest(mark.positions)
        return Cut(
            place,
            {table: mark.commit.requested for table, mark in marks.items() if table in asked},
            positions,
            max((mark.commit.completed for mark in marks.values()), default=""),
            self._names.get(_key(place)),
            {table: state for table, state in states.items() if isinstance(state, str) and table in asked},
        )

    def _is_torn(self, place: Place) -> bool:
        """Whether a place may lie inside a transaction that was split: no whole one has ended since."""
        return any(
            leads_to(split, place)
            and not any(
                leads_to(split, end.offsets) and end.offsets != split and leads_to(end.offsets, place)
                for end in self._ends
            )
            for split in self._splits
        )


def _names_of(ends: Mapping[tuple[tuple[int, int], ...], str]) -> dict[tuple[tuple[int, int], ...], str]:
    """The newest transaction before each place, without the places behind transactions that a connector has sent again:
    the state there is that of a newer one."""
    newest: dict[str, int] = {}
    names = {}
    for place in sorted(ends, key=lambda key: sum(offset for _, offset in key)):
        stem, number = numbered(ends[place])
        if number > newest.get(stem, -1):
            names[place], newest[stem] = ends[place], number
    return names


def _of_binlog(commit: HistoryEntry) -> bool:
    return any(is_binlog(one.topic) for one in RecordReader.of_commit(commit.extra).ranges)


def _key(place: Place) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(place.items()))
