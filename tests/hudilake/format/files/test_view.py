"""File slices: what belongs to which, with compactions running and done."""

from __future__ import annotations

from pathlib import Path

from hudilake.format.definition.bucket import bucket_of_file_id
from hudilake.format.files.view import FileSlice, file_slices, partition_paths
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.instant import REPLACE_COMMIT
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.hudilake.lake import Model, check, commit, deletes, new_table, ours, upserts, write, write_history
from tests.hudilake.services.compaction import compact, complete_compaction, request_compaction, write_base_files
from tests.paths import GOLDEN


def slices(table: HudiTable, as_of: str | None = None) -> list[FileSlice]:
    return file_slices(table.storage, table.timeline, as_of)


def test_log_files_in_commit_order_with_sizes(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    instants = [commit(table, upserts(range(20), order)) for order in range(3)]
    found = slices(table)
    assert [bucket_of_file_id(s.file_id) for s in found] == [0, 1]
    for item in found:
        assert item.partition_path == "day=d1"
        assert item.base_file is None
        assert [log.name.instant for log in item.log_files] == instants
        assert item.log_size == sum((tmp_path / log.path).stat().st_size for log in item.log_files) > 0
        assert item.base_size == 0
    assert [len(s.log_files) for s in slices(table, instants[1])] == [2, 2]
    assert slices(table, "20000101000000000") == []


def test_only_completed_instants_count(tmp_path: Path) -> None:
    table, model = new_table(tmp_path), Model()
    commit(table, upserts([1], 1))
    model.apply(upserts([1], 1))
    ghost = table.begin()
    results = write(table, ghost, upserts([1, 2, 3], 9))
    check(tmp_path, model)
    table.commit(ghost, results)
    model.apply(upserts([1, 2, 3], 9))
    check(tmp_path, model)


def test_a_compaction_starts_a_new_slice(tmp_path: Path) -> None:
    table, model = new_table(tmp_path), Model()
    history = [upserts(range(12), 10), deletes([3, 4], 11) + upserts([5], 9, "late"), upserts([5], 12, "new")]
    for changes in history:
        commit(table, changes)
        model.apply(changes)
    before = table.timeline.completed()[-1].requested_time
    at = compact(table)
    check(tmp_path, model)
    for item in slices(table):
        assert item.base_file is not None
        assert item.base_file.name.instant == at
        assert item.base_size == item.base_file.size > 0
        assert item.log_files == ()
    commit(table, upserts([5], 13, "after") + deletes([1], 9) + deletes([2], 10))
    model.apply(upserts([5], 13, "after") + deletes([1], 9) + deletes([2], 10))
    check(tmp_path, model)
    assert [len(s.log_files) for s in slices(table)] == [1, 1]
    assert {s.base_file for s in slices(table, before)} == {None}
    assert len(ours(tmp_path, as_of=history_time(table, 0))) == 12


def history_time(table: HudiTable, index: int) -> str:
    """The requested time of the index-th completed write."""
    return table.timeline.completed()[index].requested_time


def test_commits_around_a_running_compaction(tmp_path: Path) -> None:
    """Case 22: one begun before the compaction and completed after its request, one wholly inside."""
    table, model = new_table(tmp_path, buckets=1), Model()
    commit(table, upserts(range(6), 10))
    model.apply(upserts(range(6), 10))
    early = table.begin()
    results = write(table, early, upserts([0], 20, "early"))
    compaction, merged = request_compaction(table)
    table.commit(early, results)
    model.apply(upserts([0], 20, "early"))
    check(tmp_path, model)
    commit(table, upserts([1], 20, "inside") + deletes([2], 20))
    model.apply(upserts([1], 20, "inside") + deletes([2], 20))
    check(tmp_path, model)
    stats = write_base_files(table, compaction, merged)
    check(tmp_path, model)
    assert [s.base_file for s in slices(table)] == [None], "written, and not yet completed"
    complete_compaction(table, compaction, stats)
    check(tmp_path, model)
    (latest,) = slices(table)
    assert latest.base_file is not None
    assert [log.name.instant < compaction.requested_time for log in latest.log_files] == [True, False]
    table.refresh()
    assert table.timeline.pending() == []


def test_an_archived_log_file_goes_by_the_history(tmp_path: Path) -> None:
    """An archived instant that completed after a compaction was requested belongs to the compacted slice.

    hudi-rs 0.5.0 does not look into the history and loses the row here.
    """
    table = new_table(tmp_path, buckets=1)
    commit(table, upserts([0, 1], 10))
    early = table.begin()
    results = write(table, early, upserts([0], 20))
    compaction, merged = request_compaction(table)
    completion = table.commit(early, results)
    complete_compaction(table, compaction, write_base_files(table, compaction, merged))
    expected = ours(tmp_path)
    for file in (tmp_path / ".hoodie/timeline").glob("*deltacommit*"):
        file.unlink()
    (without,) = file_slices(table.storage, Timeline.load(table.storage))
    assert without.log_files == ()
    write_history(tmp_path, {early: completion})
    (with_history,) = file_slices(table.storage, Timeline.load(table.storage))
    assert [log.name.instant for log in with_history.log_files] == [early]
    assert ours(tmp_path) == expected


def test_the_golden_table() -> None:
    storage = open_storage((GOLDEN / "tbl_hudi120").as_uri())
    found = file_slices(storage, Timeline.load(storage))
    assert partition_paths(storage) == [f"region={r}/dt=2024-01-0{d}" for r in ("eu", "us") for d in (1, 2)]
    assert [(bucket_of_file_id(s.file_id), s.base_file is not None, len(s.log_files)) for s in found] == [
        (0, True, 0),
        (1, True, 0),
        (0, True, 0),
        (1, True, 1),
        (0, True, 0),
        (1, True, 0),
        (0, True, 1),
        (1, True, 0),
    ]


def test_a_file_group_is_seen_until_the_write_that_replaced_it(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    commit(table, upserts([1], 1))
    (piece,) = slices(table)
    body = CommitMetadata(replaced={piece.partition_path: (piece.file_id,)}).to_bytes()
    first = table.timeline.completed()[0].requested_time
    table.storage.write(f".hoodie/timeline/20990101000000000_20990101000000001.{REPLACE_COMMIT}", body)
    timeline = Timeline.load(table.storage)
    assert file_slices(table.storage, timeline) == []
    assert file_slices(table.storage, timeline, first) == [piece]
    assert timeline.replaced() == {(piece.partition_path, piece.file_id): "20990101000000000"}
