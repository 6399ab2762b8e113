"""Random histories with partial rows: binlake's readers and hudi-rs show the model's rows after every step."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.format.files.log_events import LogEvents
from hudilake.read import TableReader
from hudilake.read.versions import group_files, read_versions
from hudilake.services.fsck import fsck
from tests.hudilake.lake import storage_at
from tests.hudilake.partial_rows.conditions import Row, condition
from tests.hudilake.partial_rows.histories import History
from tests.hudilake.partial_rows.lake import COLUMNS, Lake
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same, read_ourselves

STEPS = 12


def judge(lake: Lake) -> None:
    """Our reader, hudi-rs, fsck."""
    assert_same("binlake", read_ourselves(lake.path), lake.rows(), COLUMNS)
    assert_same("hudi-rs", hudi_rs.snapshot(lake.path), lake.rows(), COLUMNS)
    assert [f for f in fsck(storage_at(lake.path)).findings if f.severity == "error"] == []


def judge_times(lake: Lake) -> None:
    """Time travel to commits."""
    for instant in list(lake.pictures)[::3]:
        picture = lake.pictures[instant]
        assert_same(f"binlake as of {instant}", read_ourselves(lake.path, instant), picture, COLUMNS)
        assert_same(f"hudi-rs as of {instant}", hudi_rs.as_of(lake.path, instant), picture, COLUMNS)


def judge_steps(history: History) -> None:
    """A whole history."""
    for _ in history.steps(STEPS):
        judge(history.lake)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(scaled(40, least=4, divisor=10)))
def test_every_reader_after_every_step(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed)
    for _ in history.steps(STEPS):
        judge(history.lake)
        judge_filters(history.lake, random.Random(seed))
    judge_versions(history.lake)
    judge_times(history.lake)


def judge_versions(lake: Lake) -> None:
    """The last version of each row in the newest file slice is the row; versions of partial rows are whole."""
    table, found = lake.opened().table, dict[str, Row]()
    for files in group_files(table):
        for row in read_versions(table, files, columns=COLUMNS).to_pylist():
            if row["file"] in files.newest_paths:
                found[row["_hoodie_record_key"]] = row
    rows = [row for row in found.values() if not row["deleted"]]
    assert_same("the newest versions", rows, lake.rows(), COLUMNS)


def judge_filters(lake: Lake, dice: random.Random) -> None:
    """Reads that skip slices give the rows that pass, and parts of the columns are those of the whole rows."""
    reader = TableReader.open(str(lake.path))
    for _ in range(4 if lake.model else 0):
        asked = condition(lake.rows(), dice)
        columns = ["id", *dice.sample(COLUMNS[1:], 2)]
        wanted = [{name: row[name] for name in columns} for row in lake.rows() if asked.passes(row)]
        found = reader.read(condition=asked.filter, columns=columns).read_all()
        assert_same(asked.sql, found, wanted, columns)


def test_the_control_a_reader_that_ignores_partial_rows_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ignored(self: LogEvents, table: pa.Table, path: str) -> None: ...

    monkeypatch.setattr(LogEvents, "_add_partials", ignored)
    with pytest.raises(AssertionError, match="binlake gives"):
        judge_steps(History(tmp_path, 1))
