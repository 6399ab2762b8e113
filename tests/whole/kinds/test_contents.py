"""One changed cell in any file of any kind of table is found from the table alone, and nothing is found without one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudilake.format.definition.kind import KnownIndex
from hudilake.policies import TableType
from hudilake.services.fsck import Severity
from hudilake.services.fsck.content import ContentsReport, check_contents
from hudilake.services.fsck.evidence import Evidence
from hudilake.storage.local import LocalStorage
from tests.hudilake.services.fsck.contents_plants import PLANTS, plant, unchanged
from tests.programs.crash_points.story import Place
from tests.selection import covered
from tests.whole.kinds.cells import KINDS, Cell, Kind

OPERATIONS = ("batches", "batches with upkeep")
CELLS = [(kind.type, kind.index, op) for kind in KINDS for op in OPERATIONS]


def contents(path: Path) -> ContentsReport:
    return check_contents(Evidence.gather(LocalStorage(path, fsync=False)))


@pytest.mark.first(1)
@pytest.mark.parametrize(("type_", "index", "operation"), covered(CELLS, 1))
def test_a_fault_in_any_file_is_found(tmp_path: Path, type_: TableType, index: KnownIndex, operation: str) -> None:
    cell, place = Cell(Kind(type_, index), operation), Place(str(tmp_path / "lake"))
    cell.work.prepare(place)
    cell.work.do(place, place.open())
    table = tmp_path / "lake" / "shop" / "accounts"
    evidence = Evidence.gather(LocalStorage(table, fsync=False))
    sound = check_contents(evidence)
    assert [f for f in sound.findings if f.severity is Severity.ERROR] == []
    assert sound.findings == []
    assert sound.proved
    planted = 0
    for number, file in enumerate(evidence.visible):
        path, kept = table / file.path, tmp_path / "kept"
        shutil.copy(path, kept)
        assert plant(path, unchanged) or path.stat().st_size
        assert contents(table).findings == []
        for change in PLANTS if number == 0 else PLANTS[number % len(PLANTS) :][:1]:
            if plant(path, change):
                planted += 1
                assert [f.path for f in contents(table).findings] == [file.path], change.__name__
            shutil.copy(kept, path)
        shutil.copy(kept, path)
    assert planted >= len(evidence.visible) // 2
