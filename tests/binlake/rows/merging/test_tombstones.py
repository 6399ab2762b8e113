"""Tombstones keep late events out over compactions, restarts, rollbacks and restores, and are kept in few files."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlake.rows.merging import tombstone_upkeep
from binlake.rows.merging.tombstone_upkeep import tidy
from binlake.rows.merging.tombstones import Tombstones
from hudilake.format.files.names import TOMBSTONES_PATH
from hudilake.services.restore import restore
from tests.binlake.rows.merging.stitched import Event, Model, merging
from tests.binlake.rows.merging.stitched_table import StitchedTable
from tests.binlake.rows.merging.test_stitched_table import judged


def files(here: StitchedTable) -> list[str]:
    """The files of tombstones."""
    return [info.path for info in here.table.storage.walk(TOMBSTONES_PATH)]


def kept(here: StitchedTable) -> int:
    """The number of tombstones that count."""
    table = here.table.hudi
    found = [Tombstones(table.storage, table.timeline).of(i) for i in table.storage.list_dirs(TOMBSTONES_PATH)]
    return sum(len(rows) for rows in found if rows is not None)


def test_many_files_become_one_and_late_events_stay_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tombstone_upkeep, "MOST_FILES", 3)
    here, model = StitchedTable.at(tmp_path, merging(), 5), Model(merging())
    for at in range(12):
        batch = [Event(1, at % 4, 10 + at, None), Event(0, 7, at, {"a": at})]
        here.run(batch)
        model.take(batch)
    assert len(files(here)) <= 2 * 4
    here.restart()
    late = [Event(1, key, 5, {"c": 1}) for key in range(4)]
    here.run(late)
    model.take(late)
    judged(here, model)
    assert kept(here) == 4


def test_old_tombstones_go(tmp_path: Path) -> None:
    here = StitchedTable.at(tmp_path, merging())
    here.run([Event(1, 1, 10, None), Event(1, 2, 10, None)])
    tidy(here.table.hudi, 1)
    assert kept(here) == 2
    tidy(here.table.hudi, -1)
    assert files(here) == []


def test_a_delete_that_was_rolled_back_leaves_no_tombstone(tmp_path: Path) -> None:
    here, model = StitchedTable.at(tmp_path, merging()), Model(merging())
    here.run([Event(0, 1, 1, {"a": 1})])
    instant = here.leave_behind([Event(0, 1, 5, None)])
    assert len(files(here)) == 1
    here.table.hudi.abort(instant)
    here.restart()
    batch = [Event(0, 1, 2, {"a": 2})]
    here.run(batch)
    model.take(batch)
    judged(here, model)
    tidy(here.table.hudi, 24)
    assert files(here) == []


def test_a_restore_takes_tombstones_back(tmp_path: Path) -> None:
    here, model = StitchedTable.at(tmp_path, merging()), Model(merging())
    first = [Event(0, 1, 1, {"a": 1}), Event(1, 2, 9, None)]
    outcome = here.run(first)
    model.take(first)
    here.run([Event(0, 1, 5, None), Event(1, 2, 12, None)])
    tidy(here.table.hudi, 24)
    assert outcome.instant is not None
    restore(here.table.hudi, outcome.instant)
    here.restart()
    batch = [Event(0, 1, 2, {"a": 2}), Event(1, 2, 10, {"c": 3}), Event(1, 2, 8, {"c": 4})]
    here.run(batch)
    model.take(batch)
    judged(here, model)
