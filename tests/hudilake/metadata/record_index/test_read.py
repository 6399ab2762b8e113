"""The reader finds rows by the record index: the same rows as without it, and fewer files read."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import IndexType
from hudilake.read.plan import ScanPlan
from hudilake.read.query import Snapshot
from hudilake.read.table_reader import TableReader
from tests.hudilake.metadata.record_index.keyed_table import KeyedTable, file_id

CONFIG = MetadataConfig(
    column_stats=False, bloom_filters=False, compact_after=5, compact_at_most=5, record_index_file_groups=3
)


def _table(path: Path, index: IndexType) -> KeyedTable:
    table = KeyedTable(path, index, CONFIG)
    for turn in range(8):
        table.insert(["eu", "us"][turn % 2], turn, range(turn * 10, turn * 10 + 10))
    table.commit({("region=eu", file_id(0)): ([], [3])})
    return table


def _ids(reader: TableReader, plan: ScanPlan) -> list[int]:
    return sorted(value for part in reader.batches(plan) for value in part.column("id").to_pylist())


@pytest.mark.first(6)
@pytest.mark.parametrize("index", ["record_index", "partitioned_record_index"])
@pytest.mark.parametrize(
    ("condition", "ids", "slices"),
    [
        ("id = 33", [33], 1),
        ("id in (0, 1, 79, 1000)", [0, 1, 79], 2),
        (f"{RECORD_KEY_FIELD} = '42'", [42], 1),
        ("id = 3", [], 0),
        ("id = 33 and region = 'eu'", [], 0),
        ("id > 75", [76, 77, 78, 79], 8),
    ],
)
def test_only_file_groups_of_the_keys_are_read(
    tmp_path: Path, index: IndexType, condition: str, ids: list[int], slices: int
) -> None:
    table = _table(tmp_path / "t", index)
    reader = TableReader.open(table.storage)
    plan = reader.plan(condition=condition)
    assert plan.warnings == ()
    assert (_ids(reader, plan), len(plan.slices)) == (ids, slices)
    assert any(step.name == "record index" for step in plan.steps) == (slices < 8)


def test_the_past_is_read_without_it(tmp_path: Path) -> None:
    """A row that moved is read where it was."""
    table = KeyedTable(tmp_path / "t", metadata=CONFIG)
    before = table.insert("eu", 1, [1, 2])
    table.move(1, ("region=us", file_id(2)))
    reader = TableReader.open(table.storage)
    past = reader.plan(Snapshot(as_of=before), "id = 1")
    assert [str(piece.partition_path) for piece in past.slices] == ["region=eu"]
    assert _ids(reader, past) == [1]
    assert [piece.partition_path for piece in reader.plan(condition="id = 1").slices] == ["region=us"]


@pytest.mark.parametrize("compacts", [False, True])
def test_a_commit_during_the_read_hides_no_row(tmp_path: Path, compacts: bool) -> None:
    """A row moves, and the metadata table is compacted, after the reader has seen the timeline."""
    table = KeyedTable(tmp_path / "t", metadata=CONFIG if compacts else MetadataConfig())
    for turn in range(4):
        table.insert("eu", turn, [turn])
    reader = TableReader.open(table.storage)
    table.move(1, ("region=us", file_id(7)))
    for turn in range(10, 15):
        table.insert("eu", turn, [turn])
    plan = reader.plan(condition="id = 1")
    assert _ids(reader, plan) == [1]
    assert bool(plan.warnings) == compacts


def test_a_lost_log_file_of_the_index_hides_no_row(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path / "t", metadata=CONFIG)
    table.insert("eu", 1, [1])
    (lost,) = (tmp_path / "t/.hoodie/metadata/record_index").glob(f".*_{table.insert('eu', 2, [2])}.log.*")
    lost.unlink()
    reader = TableReader.open(table.storage)
    plan = reader.plan(condition="id = 2")
    assert _ids(reader, plan) == [2]
    assert "a log file of the record index does not exist" in plan.warnings[0].what
