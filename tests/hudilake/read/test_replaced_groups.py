"""Tables with replaced file groups (overwrites, dropped partitions, other buckets), written by Hudi Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.format.files.view import file_slices
from hudilake.format.timeline.timeline import Timeline
from hudilake.read import Incremental, Snapshot, TableReader
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from tests.hudilake.golden_kinds import expected_rows, extracted, spelled

KINDS = ("cow_replace", "cow_np_overwrite", "mor_partition_buckets", "mor_consistent_bucket")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_index", [True, False])
def test_a_snapshot_has_the_rows_that_hudi_reads(tmp_path: Path, kind: str, by_index: bool) -> None:
    reader = TableReader.open(extracted(kind, tmp_path).as_uri(), use_index=by_index)
    expected = expected_rows(kind)
    assert spelled(reader.read().read_all().to_pylist(), expected[0]) == expected


def test_time_travel_sees_a_file_group_until_it_is_replaced(tmp_path: Path) -> None:
    root = extracted("cow_np_overwrite", tmp_path)
    timeline = Timeline.load(open_storage(root.as_uri()))
    storage, writes = open_storage(root.as_uri()), timeline.completed()
    ids = [[piece.file_id[:4] for piece in file_slices(storage, timeline, write.requested_time)] for write in writes]
    assert ids == [["66ad"], ["66ad"], ["db01"], ["b4d6"], ["b4d6"]]
    reader = TableReader.open(root.as_uri())
    counts = [reader.read(Snapshot(w.requested_time)).read_all().num_rows for w in timeline.completed()]
    assert counts[2:4] == [3, 2]  # what the two overwrites wrote


def test_an_incremental_read_ends_before_the_replacement(tmp_path: Path) -> None:
    root = extracted("cow_np_overwrite", tmp_path)
    reader = TableReader.open(root.as_uri())
    writes = reader.table.timeline.completed()
    before = reader.read(Incremental("", writes[1].completion_time)).read_all()
    assert before.num_rows == reader.read(Snapshot(writes[1].requested_time)).read_all().num_rows > 0
    later = reader.read(Incremental(writes[1].completion_time or "")).read_all()
    assert set(later.column("_hoodie_commit_time").to_pylist()) <= {w.requested_time for w in writes[2:]}


@pytest.mark.parametrize("kind", KINDS)
def test_fsck_finds_nothing(tmp_path: Path, kind: str) -> None:
    found = fsck(open_storage(extracted(kind, tmp_path).as_uri()))
    assert [f for f in found.findings if f.severity.name == "ERROR"] == []
