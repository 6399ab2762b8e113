"""The tables of TPC-C in a lake, and their rows in each cut behind the connector's snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

import hudilake
from binlake.position.cuts import Cut, declared_cuts
from binlake.source.offsets import Offsets
from tests.programs.tpcc.conditions import broken
from tests.programs.tpcc.recording import STREAM


class CutReader:
    """The tables of a lake by name, and their rows as of cuts. Rows that were read once are kept.

    Args:
        lake: the directory of the database below the lake.
        tables: the names of its tables.
    """

    def __init__(self, lake: str, tables: Sequence[str]) -> None:
        self.tables = {name: hudilake.open_table(f"{lake}/{name}") for name in tables}
        self._rows: dict[tuple[str, str], pa.Table] = {}

    def cuts(self, snapshot: Offsets) -> list[Cut]:
        """The cuts that the lake declares, the oldest first.

        Args:
            snapshot: the offsets after the connector's snapshot. Its rows belong to no transaction, so states before
                its end are left out.
        """
        cuts = declared_cuts(STREAM, {name: table.history() for name, table in self.tables.items()})
        mine = Offsets({t: parts for t, parts in snapshot.items() if t.rpartition(".")[2] in self.tables})
        return [cut for cut in cuts if not cut.positions.short_of(mine)]

    def rows(self, cut: Cut) -> dict[str, pa.Table]:
        """The rows of each table as of a cut."""
        return {name: self._read(name, commit) for name, commit in cut.commits.items()}

    def broken(self, cuts: Sequence[Cut]) -> list[str]:
        """What breaks in which cut, in words."""
        told = []
        for number, cut in enumerate(cuts):
            for name, row in broken(self.rows(cut)).items():
                told.append(f"cut {number} of {len(cuts)} at {dict(cut.place)}: {name} {row}")
        return told

    def _read(self, name: str, commit: str) -> pa.Table:
        if (name, commit) not in self._rows:
            self._rows[name, commit] = self.tables[name].scan(as_of=commit).to_arrow()
        return self._rows[name, commit]
