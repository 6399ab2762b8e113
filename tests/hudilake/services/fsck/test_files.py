from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudilake.format.definition.bucket import bucket_of_file_id, file_id
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.services.fsck import Check, Repair, Severity
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.services.fsck.tables import age, bases, logs, told

FUTURE, PAST = "20990101000000000", "20010101000000000"


def renamed(file: Path, instant: str) -> Path:
    """A copy of a log file under another instant."""
    head, _, tail = file.name.partition("_")
    copy = file.with_name(f"{head}_{instant}{tail[17:]}")
    shutil.copy(file, copy)
    age(copy.parent)
    return copy


def test_a_file_of_an_unknown_instant_is_a_leftover(plain: Path) -> None:
    stray = renamed(logs(plain)[0], FUTURE)
    (only,) = told(plain)
    assert (only.severity, only.check, only.repair) == (Severity.WARNING, Check.FILES, Repair.MOVE_FILE)
    assert plain / only.path == stray
    age(plain, hours=0.5)
    assert told(plain)[0].repair is None, "too young"
    assert told(plain, grace_ms=60_000)[0].repair is Repair.MOVE_FILE


@pytest.mark.parametrize("archived", [False, True])
def test_a_leftover_that_readers_take_for_archived_is_an_error_and_stays(plain: Path, archived: bool) -> None:
    renamed(logs(plain)[0], PAST)
    if archived:
        lake.write_history(plain, {"20000101000000000": "20000101000000001"})
    first, *_ = [f for f in told(plain) if f.check is Check.FILES]
    assert (first.severity, first.repair) == (Severity.ERROR, None)
    assert "readers use it" in first.what
    assert "archived" in first.next


def test_a_second_file_under_a_commits_instant(plain: Path) -> None:
    log = logs(plain)[0]
    shutil.copy(log, log.with_name(log.name.replace("_0-0-0", "_1-0-0")))
    (only,) = told(plain)
    assert (only.severity, only.repair) == (Severity.ERROR, None)
    assert "does not name it" in only.what


def test_files_of_a_rolled_back_commit_are_told(plain: Path) -> None:
    table = HudiTable.open(lake.storage_at(plain))
    instant = table.begin()
    (result, *_) = lake.write(table, instant, lake.upserts(range(4), 9))
    kept = (plain / result.path).read_bytes()
    table.abort(instant)
    assert told(plain) == []
    (plain / result.path).write_bytes(kept)
    age(plain)
    (only,) = told(plain)
    assert "rolled back" in only.what
    assert only.repair is Repair.MOVE_FILE


def test_a_file_that_a_commit_names_is_gone(plain: Path) -> None:
    lost = logs(plain)[-1]
    lost.unlink()
    (only,) = told(plain)
    assert (only.severity, only.check, only.repair) == (Severity.ERROR, Check.FILES, None)
    assert plain / only.path == lost


def test_a_file_of_an_older_slice_is_only_missed_by_time_travel(indexed: Path) -> None:
    base = bases(indexed)[0]
    older = [
        f
        for f in logs(indexed)
        if f.parent == base.parent
        and base.name[:36] in f.name
        and f.name < "." + base.name[:36] + "-0_" + base.name[-25:-8]
    ]
    older[0].unlink()
    files = [f for f in told(indexed) if f.check is Check.FILES]
    assert [f.severity for f in files] == [Severity.WARNING]


def test_a_file_has_another_size_than_its_commit_says(plain: Path) -> None:
    log = logs(plain)[0]
    log.write_bytes(log.read_bytes()[:-5])
    assert [f.path for f in told(plain, with_data=False)] == [str(log.relative_to(plain))]


def test_a_partition_without_its_metadata_file(plain: Path) -> None:
    (plain / "day=d1/.hoodie_partition_metadata").unlink()
    (only,) = told(plain)
    assert (only.severity, only.repair) == (Severity.ERROR, Repair.ADD_PARTITION_METADATA)


def test_two_file_groups_in_one_bucket(plain: Path) -> None:
    table = HudiTable.open(lake.storage_at(plain))
    instant = table.begin()
    context = table.write_context(instant)
    (group, *_) = lake.groups(table, lake.upserts([1], 9))
    other = FileGroupWrite(group.partition_path, group.file_id[:-3] + "7-0", group.upserts, None)
    assert other.file_id != group.file_id
    table.commit(instant, [write_file_group(table.storage, context, other)])
    (only,) = told(plain)
    assert (only.severity, only.repair) == (Severity.ERROR, None)
    assert f"bucket {bucket_of_file_id(group.file_id):08d} has 2 file groups" in only.what


def test_rows_in_the_wrong_bucket(plain: Path) -> None:
    table = HudiTable.open(lake.storage_at(plain))
    instant = table.begin()
    context = table.write_context(instant)
    (group, *_) = lake.groups(table, lake.upserts([1], 9))
    swapped = 1 - bucket_of_file_id(group.file_id)
    stray = FileGroupWrite(group.partition_path, file_id("t1", group.partition_path, swapped), group.upserts, None)
    table.commit(instant, [write_file_group(table.storage, context, stray)])
    (only,) = told(plain)
    assert "1 of 1 rows belong to another bucket" in only.what
