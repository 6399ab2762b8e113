"""An erasure that dies before and after its storage calls: who erases the same row again goes on, and nothing is left.

A reader beside it has the rows with the row or without it, or an error, at every call.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

import hudilake
from hudilake import Table
from hudilake.errors import LakeError
from hudilake.services.erasure.traces import scan
from hudilake.table.table import HudiTable
from tests.hudilake.api.tables import Row, assert_holds, keyed
from tests.hudilake.failing_storage import Killed
from tests.hudilake.lake import storage_at
from tests.hudilake.metadata.below import Counting, Dying
from tests.hudilake.services.erasure.test_erasure import ERASED, aged, quarry
from tests.hypothesis_profile import is_nightly

KINDS = {"merge on read": {}, "copy on write": {"type": "copy_on_write"}}
CHANGES = ("create", "write", "delete", "delete_tree")


def sampled(calls: list[tuple[str, str]]) -> list[int]:
    """The calls that change something; in a usual run some of each method."""
    changing = [at for at, (method, _) in enumerate(calls) if method in CHANGES]
    return changing if is_nightly() else changing[:: max(1, len(changing) // 6)]


def rows_of(table: Table) -> list[Row]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda one: int(one["id"]))


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_death_at_any_call(tmp_path: Path, kind: str) -> None:
    made = keyed(tmp_path / "made", **KINDS[kind])
    live = aged(made, commits=5)
    whole = rows_of(made)
    without = [one for one in whole if one["id"] != ERASED]
    shutil.copytree(tmp_path / "made", tmp_path / "count")
    counting = Counting(storage_at(tmp_path / "count"))
    Table(HudiTable.open(counting)).erase([{"id": ERASED}])
    chosen = sampled(counting.calls)
    assert len(chosen) >= 5
    for turn, at in enumerate(chosen):
        place = tmp_path / f"{at}"
        shutil.copytree(tmp_path / "made", place)
        dying = Dying(storage_at(place), at=at, before=turn % 2 == 0)
        with pytest.raises(Killed):
            Table(HudiTable.open(dying)).erase([{"id": ERASED}])
        with contextlib.suppress(LakeError):  # a reader that meets a file that goes has an error, and no other rows
            assert rows_of(hudilake.open_table(str(place))) in (whole, without), counting.calls[at]
        again = hudilake.open_table(str(place))
        done = again.erase([{"id": ERASED}])
        assert done.is_done, (counting.calls[at], done.scan)
        assert all(held.gone_ms is not None for held in done.record.files)
        assert scan(again.internal.storage, quarry(again)).is_clean
        assert_holds(again, [one for one in live.values() if one["id"] != ERASED])
        shutil.rmtree(place)
