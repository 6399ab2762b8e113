"""Every operation on every kind of table, without Spark and Kafka.

The works are those that die at their storage calls in ``tests/programs/crash_points``; here they run to their end. They
compare our reader, hudi-rs, time travel, fsck and audit with what the source said.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hypothesis_profile import is_nightly
from tests.programs.crash_points.story import Place
from tests.whole.kinds.cells import KINDS, OPERATIONS, Cell, Kind


def cells() -> list[Cell]:
    """A usual run takes each operation on some kinds, and each kind with some operations; a nightly run takes all."""
    every = [
        (number, place, kind, operation)
        for place, kind in enumerate(KINDS)
        for number, operation in enumerate(OPERATIONS)
    ]
    step = 1 if is_nightly() else 5
    return [Cell(kind, operation) for number, place, kind, operation in every if (number + 3 * place) % step == 0]


def trouble(cell: Cell, place: Place) -> list[str]:
    """What is wrong after the operation, and after the batch that follows it."""
    work = cell.work
    work.prepare(place)
    work.do(place, place.open())
    return [*work.trouble(place), *work.go_on(place)]


@pytest.mark.parametrize("cell", cells(), ids=lambda cell: f"{cell.kind}-{cell.operation}")
def test_operations_know_kinds(tmp_path: Path, cell: Cell) -> None:
    assert trouble(cell, Place(str(tmp_path / "lake"))) == []


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
