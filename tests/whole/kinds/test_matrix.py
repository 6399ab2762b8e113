"""Every operation on every kind of table, without Spark and Kafka; ``make test`` takes each operation,
each index and each type in one case at least.

The works are those that die at their storage calls in ``tests/programs/crash_points``; here they run to their end. They
compare our reader, hudi-rs, time travel, fsck and audit with what the source said.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.format.definition.kind import KnownIndex
from hudilake.policies import TableType
from tests.programs.crash_points.story import Place
from tests.selection import covered
from tests.whole.kinds.cells import KINDS, OPERATIONS, Cell, Kind

CELLS = [(kind.type, kind.index, operation) for kind in KINDS for operation in OPERATIONS]


def trouble(cell: Cell, place: Place) -> list[str]:
    """What is wrong after the operation, and after the batch that follows it."""
    work = cell.work
    work.prepare(place)
    work.do(place, place.open())
    return [*work.trouble(place), *work.go_on(place)]


@pytest.mark.full
@pytest.mark.parametrize(("type_", "index", "operation"), covered(CELLS, 1))
def test_operations_know_kinds(tmp_path: Path, type_: TableType, index: KnownIndex, operation: str) -> None:
    assert trouble(Cell(Kind(type_, index), operation), Place(str(tmp_path / "lake"))) == []


def test_a_lost_row_is_seen(tmp_path: Path) -> None:
    """The control: a base file that is put back to what it was makes the matrix fail."""
    cell, place = Cell(Kind("copy_on_write", "simple"), "batches"), Place(str(tmp_path / "lake"))
    work = cell.work
    work.prepare(place)
    work.do(place, place.open())
    assert work.trouble(place) == []
    files = sorted((tmp_path / "lake" / "shop" / "accounts").rglob("*.parquet"), key=lambda file: file.name[-22:])
    same = [file for file in files if file.name.split("_")[0] == files[-1].name.split("_")[0]]
    files[-1].write_bytes(same[0].read_bytes())
    assert work.trouble(place) != []
