"""Cells and rules that Hypothesis draws: few rows, columns, timestamps and sequence ids, so that they meet."""

from __future__ import annotations

from hypothesis import strategies as st

from binlake.hbase.settings.families import FamilyRule
from binlake.hbase.settings.rules import CellsRule
from tests.binlake.hbase.rules.reference import Cell

FAMILIES = ("d", "s")
NOW_MS = 60
_TIMES = st.integers(0, NOW_MS)


@st.composite
def cells(draw: st.DrawFn, kinds: tuple[str, ...] = ("Put",) * 6, ranges: bool = True) -> Cell:
    """A cell: a value about every second time."""
    every = (*kinds, "Delete", "DeleteColumn", "DeleteFamily", "DeleteFamilyVersion", *(["DeleteRange"] * ranges))
    kind = draw(st.sampled_from(every))
    row, family = draw(st.sampled_from("ab")), draw(st.sampled_from(FAMILIES))
    qualifier = "" if kind in ("DeleteFamily", "DeleteFamilyVersion") else draw(st.sampled_from(("", "p", "q")))
    timestamp = draw(_TIMES if draw(st.booleans()) else st.integers(0, 6))
    if kind == "DeleteRange":
        kind += f":{draw(st.integers(0, timestamp))}"
    return Cell(row, family, qualifier, timestamp, kind, draw(st.integers(1, 12)), draw(_TIMES))


def keyed(drawn: list[Cell]) -> list[Cell]:
    """The newest of each key, as a table has them."""
    return list({cell.key: cell for cell in sorted(drawn, key=lambda cell: cell.order)}.values())


def tables(most: int = 40, ranges: bool = True) -> st.SearchStrategy[list[Cell]]:
    """Cells of one table."""
    return st.lists(cells(ranges=ranges), max_size=most).map(keyed)


def rules(lateness_ms: int = 20) -> st.SearchStrategy[CellsRule]:
    """Rules of the families."""

    def family(name: str) -> st.SearchStrategy[FamilyRule]:
        return st.builds(
            FamilyRule,
            name=st.just(name),
            versions=st.integers(1, 3),
            ttl_ms=st.none() | st.integers(1, 70),
            min_versions=st.integers(0, 2),
            keep_deleted=st.booleans(),
            by_sequence=st.booleans(),
        )

    return st.builds(CellsRule, families=st.tuples(*map(family, FAMILIES)), lateness_ms=st.just(lateness_ms))
