"""The rows that are kept from commit to commit are those of the file slices, whatever becomes of the files."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest

from binlake.rows.merging.row_states import SliceRowStates
from binlake.rows.merging.state_cache import ROWS, ROWS_BYTES, KeptRows, StateCache
from binlake.rows.upsert.target import ORDER_FIELD
from hudilake import open_table
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.policies import Conflicts
from hudilake.services.restore import restore
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.rows.merging.stitched import TYPES, Event, merging
from tests.binlake.rows.merging.stitched_table import StitchedTable
from tests.binlake.rows.merging.test_stitched_table import Source
from tests.hudilake.failing_storage import CountingStorage
from tests.hypothesis_profile import scaled

COLUMNS = (*TYPES, *(one.order_field for one in merging().groups))
STEPS = ("commit", "commit", "commit", "other", "undone", "restart", "compact", "restore")


def states(here: StitchedTable, kept: StateCache[KeptRows]) -> SliceRowStates:
    """What rows are now."""
    here.table.refresh(here.stream)
    return replace(here.table.rows.row_states(here.table.hudi.schema), kept=kept)


def rows_of(states: SliceRowStates, columns: Iterable[str]) -> list[dict[str, Any]]:
    """All rows, by file group and key."""
    return [
        row
        for file_id in sorted(states.slices)
        for row in states.live(file_id, tuple(columns)).sort_by(RECORD_KEY_FIELD).to_pylist()
    ]


@pytest.mark.parametrize("seed", range(scaled(12, least=4)))
@pytest.mark.parametrize("conflicts", get_args(Conflicts))
def test_they_are_those_of_the_files(tmp_path: Path, seed: int, conflicts: Conflicts) -> None:
    """Commits of this writer and another, some undone; compactions, restores; other columns that are asked for."""
    here, other = (StitchedTable.at(tmp_path, merging(), conflicts=conflicts, stream=name) for name in ("a", "b"))
    source, chance, kept = Source(seed), random.Random(seed), StateCache[KeptRows](ROWS_BYTES)
    done = [here.run(source.batch()).instant]
    for _ in range(14):
        match step := chance.choice(STEPS):
            case "commit" | "other":
                done.append((here if step == "commit" else other).run(source.batch()).instant)
            case "undone":
                here.table.hudi.abort(here.leave_behind(source.batch()))
            case "restart":
                here.restart()
            case "compact":
                open_table(here.uri).compact()
            case "restore" if newest := [one for one in done if one][-2:]:
                del done[done.index(newest[0]) + 1 :]
                restore(here.table.hudi, newest[0])
                here.restart()
                other.restart()
        for columns in (chance.sample(COLUMNS, chance.randint(1, len(COLUMNS))), COLUMNS):
            told = rows_of(states(here, StateCache(0)), columns)
            assert rows_of(states(here, kept), columns) == told, step
            assert rows_of(here.table.rows.row_states(here.table.hudi.schema), columns) == told, step


def test_a_log_file_is_read_once(tmp_path: Path) -> None:
    """The control of the test above: what is kept is used."""
    here, source, kept = StitchedTable.at(tmp_path, merging()), Source(1), StateCache[KeptRows](ROWS_BYTES)
    read = list[str]()
    for _ in range(6):
        here.run(source.batch())
        now = states(here, kept)
        counting = CountingStorage(now.storage)
        rows_of(replace(now, storage=counting), COLUMNS)
        read += [path for method, path in counting.calls if method == "read" and ".log." in path]
    logs = [file.path for piece in states(here, kept).slices.values() for file in piece.log_files]
    assert sorted(read) == sorted(logs)
    assert len(logs) > len(states(here, kept).slices)


def test_a_log_file_of_this_process_is_not_read(tmp_path: Path) -> None:
    """Only where all of its rows are whole."""
    here = StitchedTable(open_storage(tmp_path.as_uri(), {"fsync": "false"}), merging(), buckets=1)
    here.run([Event(0, key, 1, {"a": key}) for key in range(5)])
    kept = states(here, ROWS)
    rows_of(kept, COLUMNS)
    for key, is_whole in ((7, True), (1, False)):  # a row that goes on living is partial
        here.run([Event(1, key, 2, {"c": key})])
        now = states(here, ROWS)
        counting = CountingStorage(now.storage)
        assert rows_of(replace(now, storage=counting), COLUMNS) == rows_of(states(here, StateCache(0)), COLUMNS)
        read = [path for method, path in counting.calls if method == "read" and ".log." in path]
        assert len(read) == (0 if is_whole else 1)


def test_the_rows_of_many_file_groups_take_no_more_than_the_process_has(tmp_path: Path) -> None:
    here, source, kept = StitchedTable.at(tmp_path, merging()), Source(2), StateCache[KeptRows](1000)
    for _ in range(12):
        here.run(source.batch())
        assert rows_of(states(here, kept), COLUMNS) == rows_of(states(here, StateCache(0)), COLUMNS)
        assert kept.nbytes <= 1000


def test_a_row_that_no_merging_writer_wrote_loses_to_a_delete(tmp_path: Path) -> None:
    """The rows that are kept do not show the delete: the slice is read whole."""
    root = open_storage(tmp_path.as_uri(), {"fsync": "false"})
    here, kept = StitchedTable(root, merging(), buckets=1), StateCache[KeptRows](ROWS_BYTES)
    here.run([Event(0, 1, 1, {"a": 1}), Event(0, 2, 1, {"a": 2})])
    here.run([Event(0, 2, 3, None)])
    (file_id,) = states(here, kept).slices
    assert [row["id"] for row in rows_of(states(here, kept), COLUMNS)] == [1]
    foreign = HudiTable.open(here.table.storage)
    context = foreign.write_context(foreign.begin())
    rows = pa.table({RECORD_KEY_FIELD: ["2", "3"], "id": [2, 3], "a": [6, 7], ORDER_FIELD: [4, 4]})
    foreign.commit(
        context.instant, [write_file_group(foreign.storage, context, FileGroupWrite("", file_id, rows, None))]
    )
    assert rows_of(states(here, StateCache(0)), ["id", "a"]) == [
        {RECORD_KEY_FIELD: "1", "id": 1, "a": 1},
        {RECORD_KEY_FIELD: "3", "id": 3, "a": 7},
    ]
    assert rows_of(states(here, kept), COLUMNS) == rows_of(states(here, StateCache(0)), COLUMNS)
