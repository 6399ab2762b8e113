"""The states of a lake in which no transaction is torn over its tables, found by the commits of the tables alone.

With ``batch.transaction_consistent`` a commit records how far the transaction topic was read when its batch ended
(``RecordedTransactions.offsets``). A *cut* is such a place in the topic: of each table the newest commit that records
it or an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

import hudilake
from binlake.position.record_reader import RecordReader
from binlake.source.offsets import NO_OFFSETS, Offsets
from hudilake.api.history import Commit
from tests.programs.tpcc.recording import STREAM

#: Partition of the transaction topic -> offset.
Place = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Cut:
    """A place in the transaction topic and the commits that lead to it.

    Args:
        place: offsets of the transaction topic.
        commits: the requested time of the newest commit of each table; None before its first.
        positions: what these have applied.
    """

    place: Place
    commits: Mapping[str, str | None]
    positions: Offsets


class CutReader:
    """The tables of a lake by name, and their rows as of cuts. Rows that were read once are kept.

    Args:
        lake: the directory of the database below the lake.
        tables: the names of its tables.
    """

    def __init__(self, lake: str, tables: Sequence[str]) -> None:
        self.tables = {name: hudilake.open_table(f"{lake}/{name}") for name in tables}
        self._rows: dict[tuple[str, str | None], pa.Table] = {}

    def cuts(self, snapshot: Offsets) -> list[Cut]:
        """All cuts that the commits name and that lie behind the connector's snapshot, the oldest first.

        Args:
            snapshot: the offsets after it. Its rows belong to no transaction, so states before its end are no cuts.
        """
        commits = {name: _placed(table.history()) for name, table in self.tables.items()}
        places = sorted({one.place for mine in commits.values() for one in mine}, key=lambda p: sum(dict(p).values()))
        cuts = []
        for place in places:
            newest = {name: _newest(mine, place) for name, mine in commits.items()}
            positions = NO_OFFSETS
            for one in newest.values():
                positions = positions.furthest(one.positions if one is not None else NO_OFFSETS)
            if not positions.short_of(snapshot):
                cuts.append(Cut(place, {name: one and one.requested for name, one in newest.items()}, positions))
        return cuts

    def rows(self, cut: Cut) -> dict[str, pa.Table]:
        """The rows of each table as of a cut."""
        return {name: self._read(name, instant) for name, instant in cut.commits.items()}

    def _read(self, name: str, instant: str | None) -> pa.Table:
        if (name, instant) not in self._rows:
            table = self.tables[name]
            rows = table.schema.empty_table() if instant is None else table.scan(as_of=instant).to_arrow()
            self._rows[name, instant] = rows
        return self._rows[name, instant]


@dataclass(frozen=True)
class _Placed:
    place: Place
    requested: str
    positions: Offsets


def _placed(history: Sequence[Commit]) -> list[_Placed]:
    """The commits of a stream, those that move its position."""
    placed = []
    for commit in history:
        record = RecordReader.of_commit(commit.extra)
        if record.transactions is not None and record.ranges:
            place = tuple(sorted(record.transactions.offsets.items()))
            placed.append(_Placed(place, commit.requested, record.positions_of(STREAM)))
    return placed


def _newest(commits: Sequence[_Placed], place: Place) -> _Placed | None:
    reached = dict(place)
    until = [one for one in commits if all(offset <= reached.get(p, 0) for p, offset in one.place)]
    return max(until, key=lambda one: one.requested, default=None)
