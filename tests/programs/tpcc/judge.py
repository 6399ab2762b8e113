"""Whether the conditions hold in every cut of a lake. It stands alone: recorded and live runs are judged by it."""

from __future__ import annotations

from collections.abc import Sequence

from tests.programs.tpcc.conditions import broken
from tests.programs.tpcc.cuts import Cut, CutReader


def broken_cuts(reader: CutReader, cuts: Sequence[Cut]) -> list[str]:
    """What breaks in which cut, in words. Cuts from before a table's first commit must hold too."""
    told = []
    for number, cut in enumerate(cuts):
        found = broken(reader.rows(cut))
        told += [f"cut {number} of {len(cuts)} at {cut.place}: {name} {row}" for name, row in found.items()]
    return told
