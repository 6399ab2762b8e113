"""Repair, then the check again: clean, with the rows that were there, for our reader and for hudi-rs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hudilake.commit.rollback import RollbackPlan
from hudilake.errors import LostOwnershipError
from hudilake.format.timeline.instant import DELTA_COMMIT, ROLLBACK, SAVEPOINT, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.services.fsck import Repair
from hudilake.services.repair import RepairPlan, RepairStep, plan_repair, repair
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.failing_storage import Killed
from tests.hudilake.metadata.below import Counting, Dying
from tests.hudilake.metadata.indexed_table import IndexedTable
from tests.hudilake.services.fsck import test_index as index_damage
from tests.hudilake.services.fsck.tables import age, bases, logs, metadata_of, report, rows, rs_rows, told
from tests.hudilake.services.fsck.test_files import FUTURE, PAST, renamed

CHANGES = ("create", "write", "delete", "delete_tree")
Damage = Callable[[Path], object]


def mend(path: Path) -> list[str]:
    return list(repair(lake.storage_at(path), plan_repair(report(path).findings)))


def begin(path: Path) -> str:
    """A writer that dies with data files written."""
    table = HudiTable.open(lake.storage_at(path))
    instant = table.begin()
    lake.write(table, instant, lake.upserts(range(4), 9))
    return instant


def indexed_begin(path: Path) -> None:
    """A writer of an indexed table that dies after the metadata table's commit."""
    table = IndexedTable.__new__(IndexedTable)
    table.path, table.part, table.buckets = path, "p", 2
    table.storage, table.config, table.wrap = lake.storage_at(path), MetadataConfig(), lambda s: s
    table.reopen()
    rows_ = [{"id": i, "name": "dead", "p": "a", "x": 1, "_binlake_order": 99} for i in range(40)]
    instant, _, delta = table.begin_write(rows_)
    table.metadata.apply(instant, delta)


def old_markers(path: Path) -> None:
    marker = path / ".hoodie/.temp" / sorted((path / ".hoodie/timeline").glob("*_*"))[0].name[:17] / "p/x.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.write_bytes(b"")


def empty_pending_rollback(path: Path) -> None:
    (path / f".hoodie/timeline/{FUTURE}.rollback.requested").write_bytes(b"")


def dead_and_damaged(path: Path) -> None:
    indexed_begin(path)
    shutil.rmtree(path / METADATA_PATH / "bloom_filters")


def half_written(path: Path) -> None:
    (path / "day=d1/.binlake-1234.tmp").write_bytes(b"half")


def unfinished_savepoint(path: Path) -> None:
    """What Hudi may leave that dies while it makes one, or deletes one."""
    first, second, *_ = (write.requested_time for write in Timeline.load(lake.storage_at(path)).completed())
    for instant, state in ((first, State.INFLIGHT), (second, State.REQUESTED)):
        lake.storage_at(path).create(Instant(instant, SAVEPOINT, state).path, b"")


PLAIN: list[Damage] = [
    begin,
    lambda path: renamed(logs(path)[0], FUTURE),
    lambda path: (path / "day=d1/.hoodie_partition_metadata").unlink(),
    old_markers,
    empty_pending_rollback,
    half_written,
    unfinished_savepoint,
]
INDEXED: list[Damage] = [
    indexed_begin,
    old_markers,
    lambda path: (path / "p=a/.hoodie_partition_metadata").unlink(),
    lambda path: renamed(logs(path)[0], FUTURE),
    lambda path: index_damage.put_listing(path, "p=a", {logs(path)[0].name: None}),
    lambda path: index_damage.put_range(path, logs(path)[-1], "x", min=10**9, max=10**9),
    lambda path: shutil.rmtree(path / METADATA_PATH),
    lambda path: shutil.rmtree(path / METADATA_PATH / "column_stats"),
    lambda path: (path / ".hoodie/.index_defs/index.json").unlink(),
    lambda path: (path / METADATA_PATH / f".hoodie/timeline/{FUTURE}.deltacommit.requested").write_bytes(b""),
    dead_and_damaged,
    unfinished_savepoint,
]


@pytest.mark.parametrize("number", range(len(PLAIN)))
def test_a_plain_table(plain: Path, number: int) -> None:
    before, before_rs = rows(plain), rs_rows(plain)
    PLAIN[number](plain)
    age(plain)
    assert plan_repair(report(plain).findings).steps
    assert mend(plain)
    assert told(plain) == []
    assert not plan_repair(report(plain).findings).steps
    assert not list(plain.rglob("*.tmp"))
    assert (rows(plain), rs_rows(plain)) == (before, before_rs)


@pytest.mark.first(5)
@pytest.mark.parametrize("number", range(len(INDEXED)))
def test_an_indexed_table(indexed: Path, number: int) -> None:
    before, before_rs = rows(indexed), rs_rows(indexed)
    columns = metadata_of(indexed).columns
    INDEXED[number](indexed)
    age(indexed)
    assert plan_repair(report(indexed).findings).steps
    assert mend(indexed)
    assert told(indexed) == []
    assert (rows(indexed), rs_rows(indexed)) == (before, before_rs)
    assert len(metadata_of(indexed).partitions) == 4
    assert set(metadata_of(indexed).columns) == set(columns)


def test_a_leftover_that_readers_took_in_is_gone_with_its_rows_once_a_rollback_names_it(plain: Path) -> None:
    before = rows(plain)
    stray = renamed(logs(plain)[-1], PAST)
    assert mend(plain) == []
    plan = RollbackPlan(PAST, DELTA_COMMIT, ())
    table = HudiTable.open(lake.storage_at(plain))
    rollback = Instant(table.clock.next(), ROLLBACK, State.COMPLETED, table.clock.next())
    (plain / rollback.path).write_bytes(plan.metadata(table.storage.uri, rollback.requested_time, 1))
    assert mend(plain)
    assert not stray.exists()
    assert told(plain) == []
    assert rows(plain) == before


def test_an_empty_newest_commit_is_taken_back(plain: Path) -> None:
    before = rows(plain)
    table = HudiTable.open(lake.storage_at(plain))
    lake.commit(table, lake.upserts(range(50), 99))
    assert rows(plain) != before
    (plain / table.timeline.completed()[-1].path).write_bytes(b"")
    age(plain)
    assert any("its file was empty" in line for line in mend(plain))
    assert told(plain) == []
    assert rows(plain) == before
    assert len(rs_rows(plain)) == len(before)


def test_an_empty_newest_commit_of_an_indexed_table_is_taken_back(indexed: Path) -> None:
    newest = HudiTable.open(lake.storage_at(indexed)).timeline.completed()
    older = rows(indexed)
    (indexed / newest[-1].path).write_bytes(b"")
    age(indexed)
    mend(indexed)
    assert told(indexed) == []
    assert len(HudiTable.open(lake.storage_at(indexed)).timeline.completed()) == len(newest) - 1
    assert rows(indexed) != older
    assert len(rs_rows(indexed)) == len(rows(indexed))


def test_damaged_data_is_not_touched_and_the_index_only_dropped(indexed: Path) -> None:
    base = bases(indexed)[0]
    data = base.read_bytes()
    base.write_bytes(data[:-1])
    shutil.rmtree(indexed / METADATA_PATH / "files")
    plan = plan_repair(report(indexed).findings)
    assert not plan.reindex
    assert "restored" in plan.lines()[-1]
    mend(indexed)
    assert base.read_bytes() == data[:-1]
    assert {path.name for path in (indexed / METADATA_PATH).rglob("*") if path.is_file()} == {
        "hoodie.properties",
        ".hoodie_partition_metadata",
    }
    base.write_bytes(data)
    assert told(indexed) == []


def test_nothing_is_done_to_a_clean_table(indexed: Path) -> None:
    before = {p: (indexed / p).read_bytes() for p in lake.tree(indexed)}
    assert mend(indexed) == []
    assert {p: (indexed / p).read_bytes() for p in lake.tree(indexed)} == before


def test_each_step_looks_again_before_it_acts(plain: Path) -> None:
    storage, live = lake.storage_at(plain), logs(plain)[0]
    timeline = HudiTable.open(storage).timeline
    newest = timeline.completed()[-1]
    before = rows(plain)
    steps = (
        RepairStep(Repair.DISCARD_COMMIT, newest.path, newest.requested_time),
        RepairStep(Repair.MOVE_FILE, str(live.relative_to(plain))),
        RepairStep(Repair.MOVE_UNFINISHED, str(live.relative_to(plain))),
    )
    done = list(repair(storage, RepairPlan(steps)))
    assert all(line.startswith("left as it is") for line in done)
    assert rows(plain) == before
    stray = renamed(live, FUTURE)
    age(plain, hours=0)
    list(repair(storage, RepairPlan((RepairStep(Repair.MOVE_FILE, str(stray.relative_to(plain))),))))
    assert stray.exists()


def test_a_living_writer_is_left_alone(plain: Path, indexed: Path) -> None:
    instant = begin(plain)
    assert not plan_repair(report(plain).findings).steps
    with pytest.raises(LostOwnershipError):
        list(repair(lake.storage_at(plain), RepairPlan((RepairStep(Repair.ROLL_BACK),))))
    assert (plain / Instant(instant, DELTA_COMMIT, State.INFLIGHT).path).exists()
    indexed_begin(indexed)
    shutil.rmtree(indexed / METADATA_PATH / "column_stats")
    with pytest.raises(LostOwnershipError):
        mend(indexed)
    assert (indexed / METADATA_PATH / "files").exists()


@pytest.mark.full
@pytest.mark.parametrize("damage", [indexed_begin, dead_and_damaged])
def test_a_repair_that_dies_at_any_call_is_done_again(indexed: Path, tmp_path: Path, damage: Damage) -> None:
    before = rows(indexed)
    damage(indexed)
    age(indexed)
    plan = plan_repair(report(indexed).findings)
    control = shutil.copytree(indexed, tmp_path / "control")
    age(control)
    counting = Counting(lake.storage_at(control))
    list(repair(counting, plan))
    changing = [n for n, (method, _) in enumerate(counting.calls) if method in CHANGES]
    assert len(changing) > 10
    for number, at in enumerate(changing[:: max(1, len(changing) // 10)]):
        path = shutil.copytree(indexed, tmp_path / f"at{at}")
        age(path)
        with pytest.raises(Killed):
            list(repair(Dying(lake.storage_at(path), at=at, before=number % 2 == 0), plan))
        age(path)
        mend(path)
        assert told(path) == [], counting.calls[at]
        assert rows(path) == before
        assert len(rs_rows(path)) == len(before)
