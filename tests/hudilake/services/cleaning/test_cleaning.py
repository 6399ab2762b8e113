"""What goes, what stays, and which times can still be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hudilake import clock
from hudilake.commit import clean as clean_action
from hudilake.commit.clean import CleanPlan
from hudilake.commit.compaction_plan import read_plan
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.files.names import in_partition, parse_base_name, parse_data_name
from hudilake.format.files.view import file_slices
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.instant import REPLACE_COMMIT, Instant, State
from hudilake.read import Incremental, TableReader
from hudilake.services.cleaning import CleaningConfig, clean, due, finish_pending, oldest_retained, plan_clean
from hudilake.services.compaction import finish_pending as finish_compactions
from hudilake.services.compaction import schedule
from hudilake.table.table import HudiTable
from tests.hudilake.lake import Change, data_files, upserts, write
from tests.hudilake.metadata.below import Counting
from tests.hudilake.services.cleaning.aged import COMPACTION, Aged, serially
from tests.hudilake.services.compaction import compact as compact_by_hand

TWO = CleaningConfig(commits=2)
indexed = pytest.mark.parametrize("indexed", [False, True])


def live_files(table: HudiTable) -> set[str]:
    """The files of the newest slices."""
    slices = file_slices(table.storage, table.timeline)
    return {f.path for s in slices for f in (s.base_file, *s.log_files) if f is not None}


def chosen(table: HudiTable, config: CleaningConfig) -> set[str]:
    """The files that a clean would delete."""
    plan = plan_clean(table, config)
    return {in_partition(p, n) for p, names in plan.files.items() for n in names} if plan is not None else set()


def refused(aged: Aged) -> list[bool]:
    """For every moment whether reading it is refused; what is not refused is right."""
    return [not told for told in aged.readable()]


@pytest.mark.first(3)
@indexed
@pytest.mark.parametrize("partitioned", [False, True])
def test_what_nothing_needs_goes(tmp_path: Path, indexed: bool, partitioned: bool) -> None:
    aged = Aged(tmp_path, indexed, partitioned, buckets=2)
    aged.live(3)
    assert refused(aged) == [False] * 9
    done = clean(aged.table, TWO)
    assert done is not None
    aged.check()
    # Retained are the last commit and the last compaction: of every group the slice before the last one, and the last.
    retained = aged.moments[-2][0]
    body = decode_container(aged.table.storage.read(done.path), done.path)
    assert body["earliestCommitToRetain"] == retained
    assert body["lastCompletedCommitTimestamp"] == aged.moments[-1][0]
    assert refused(aged) == [True] * 5 + [False] * 4
    bases = [parse_base_name(name.rpartition("/")[2]) for name in data_files(tmp_path)]
    assert {base.instant for base in bases if base is not None} == {aged.moments[-4][0], aged.moments[-1][0]}
    assert clean(aged.table, TWO) is None
    aged.reopen()
    aged.live(1)
    assert clean(aged.table, TWO) is not None
    aged.check()
    assert refused(aged) == [True] * 8 + [False] * 4


@indexed
def test_a_retention_that_is_not_reached_keeps_everything(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(3)
    before = data_files(tmp_path)
    assert clean(aged.table, CleaningConfig(commits=9)) is None
    assert oldest_retained(aged.table.timeline, CleaningConfig(commits=9)) is None
    assert data_files(tmp_path) == before
    assert not any(refused(aged))


@indexed
def test_by_hours(tmp_path: Path, indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    hour, now = 3_600_000, clock.now_ms() - 6 * 3_600_000
    at = [now]
    monkeypatch.setattr(clock, "now_ms", lambda: at[0])
    aged = Aged(tmp_path, indexed)
    for turn in range(6):
        at[0] = now + turn * hour
        aged.live(1, commits=1)
    monkeypatch.setattr("hudilake.services.cleaning.now_ms", lambda: at[0])
    config = CleaningConfig(commits=None, hours=2.5)
    retained = oldest_retained(aged.table.timeline, config)
    assert retained is not None
    assert retained.requested_time == aged.moments[6][0]  # the commit of three hours after the first
    assert clean(aged.table, config) is not None
    aged.check()
    assert refused(aged) == [True] * 5 + [False] * 7
    at[0] += 10 * hour
    assert oldest_retained(aged.table.timeline, config) is None  # nothing is that young: as in Hudi, nothing goes
    assert clean(aged.table, config) is None


@indexed
def test_pending_instants_hold_what_they_may_need(tmp_path: Path, indexed: bool) -> None:
    """A writer's instant that is still open, and a compaction's plan, both older than the retention."""
    aged = Aged(tmp_path, indexed)
    aged.live(2)
    aged.write()
    open_instant = aged.table.begin()
    late = upserts([1], aged.order, f"v{aged.order}-")
    results = write(aged.table, open_instant, late)
    requested = schedule(aged.table, COMPACTION)
    assert requested is not None
    planned = {path for op in read_plan(aged.table.storage, requested).operations for path in op.paths}
    for _ in range(4):
        aged.write()
    retained = oldest_retained(aged.table.timeline, TWO)
    assert retained is not None
    assert retained.requested_time == aged.moments[6][0]  # the commit before the open one
    assert clean(aged.table, TWO) is not None
    assert planned <= set(data_files(tmp_path))
    aged.table.commit(open_instant, results)
    aged.model.apply(late)
    aged.check()
    assert clean(aged.table, TWO) is None  # the compaction is pending yet
    assert planned <= set(data_files(tmp_path))
    assert len(finish_compactions(aged.table, COMPACTION, serially)) == 1
    aged.check()
    aged.write()
    aged.write()
    assert clean(aged.table, TWO) is not None
    aged.check()


def test_control_without_the_rule_a_plan_loses_its_files(tmp_path: Path) -> None:
    aged = Aged(tmp_path, indexed=False)
    aged.live(1)
    aged.write()
    requested = schedule(aged.table, COMPACTION)
    assert requested is not None
    planned = {path for op in read_plan(aged.table.storage, requested).operations for path in op.paths}
    aged.write()
    compact_by_hand(aged.table)
    aged.write()
    one = CleaningConfig(commits=1)
    assert not chosen(aged.table, one) & planned
    aged.table.timeline.forget(requested)
    assert chosen(aged.table, one) & planned


@indexed
def test_old_and_new_file_groups_beside_each_other(tmp_path: Path, indexed: bool) -> None:
    """A group that is not written any more keeps its slice; one that is new cannot be of an older time."""
    aged = Aged(tmp_path, indexed)
    aged.write(upserts(range(3), 50, "cold", day="d0"))
    aged.compact()
    aged.live(2)
    aged.write(upserts(range(3), 900, "young", day="d9"))
    aged.compact()
    cold = [name for name in data_files(tmp_path) if "d0" in name]
    assert clean(aged.table, TWO) is not None
    aged.check()
    kept = [name for name in data_files(tmp_path) if "d0" in name]
    assert [name for name in kept if name.endswith(".parquet")] == [n for n in cold if n.endswith(".parquet")][-1:]
    refusals = refused(aged)
    assert refusals == [True, False] + [True] * 5 + [False] * 3  # of the second moment is all there: one cold slice


@pytest.mark.first(1)
@indexed
def test_retention_that_is_raised_promises_no_more_than_is_there(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(4)
    assert clean(aged.table, CleaningConfig(commits=1)) is not None
    first = refused(aged)
    aged.live(1)
    assert clean(aged.table, CleaningConfig(commits=8)) is None
    aged.live(3)
    plan = plan_clean(aged.table, CleaningConfig(commits=10))
    if plan is not None:
        assert plan.retained is not None
        assert plan.retained.requested_time >= aged.moments[11][0]
    clean(aged.table, CleaningConfig(commits=10))
    assert refused(aged)[: len(first)] >= first
    assert not any(refused(aged)[len(first) :])
    aged.check()


@indexed
def test_incremental_reads_after_a_clean(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(3)
    ends = {i.requested_time: i.completion_time or "" for i in aged.table.timeline.completed()}
    assert clean(aged.table, TWO) is not None
    reader = TableReader.open(str(tmp_path))
    since = ends[aged.moments[-3][0]]
    plan = reader.plan(Incremental(since), columns=["id", "name"])
    rows = sorted(r["name"] for batch in reader.batches(plan) for r in batch.to_pylist())
    assert rows == sorted({r["name"] for r in aged.moments[-2][1]} - {r["name"] for r in aged.moments[-3][1]})
    assert rows
    with pytest.raises(UnsupportedError, match="cleaned"):
        reader.plan(Incremental("", ends[aged.moments[2][0]]))


@indexed
def test_when_cleaning_is_due(tmp_path: Path, indexed: bool) -> None:
    """Once a compaction has passed out of the retention; asking costs no call before the first clean."""
    aged = Aged(tmp_path, indexed)
    counting = Counting(aged.table.storage)
    answers = []
    for _ in range(3):
        for _ in range(3):
            aged.write()
            table = aged.reopen(counting)
            counting.calls.clear()
            answers.append(due(table, TWO))
            assert len(counting.calls) <= 1
            planned = plan_clean(table, TWO) is not None
            assert planned <= answers[-1]
            if answers[-1]:
                clean(table, TWO)
        aged.compact()
    assert answers == [False, False, False, False, True, False, False, True, False]
    aged.reopen().refresh()
    aged.check()


def test_a_replaced_file_group_goes_when_no_retained_time_sees_it(tmp_path: Path) -> None:
    aged = Aged(tmp_path, indexed=False)
    aged.live(3)
    table = aged.table
    gone = table.file_slices()[0]
    replaced = Instant(table.clock.next(), REPLACE_COMMIT, State.COMPLETED, table.clock.next())
    body = CommitMetadata(replaced={gone.partition_path: (gone.file_id,)})
    with table.state.lock:
        table.storage.create(replaced.path, body.to_bytes())
    clean(table, TWO)
    assert file_ids(aged) >= {gone.file_id}  # time travel to the retained commits sees it
    for order in (200, 201, 202):
        aged.write([Change(1, order, "v", "d2")])
    clean(table, TWO)
    others = {piece.file_id for piece in table.file_slices()}
    assert file_ids(aged) & {gone.file_id, *others} == others


def file_ids(aged: Aged) -> set[str]:
    """Of the files on storage."""
    names = (info.path.rpartition("/")[2] for info in aged.table.storage.walk(""))
    return {name.file_id for text in names if (name := parse_data_name(text)) is not None}


@pytest.mark.parametrize(("commits", "hours"), [(None, None), (3, 3.0), (0, None), (None, -1.0)])
def test_settings_that_say_nothing_or_too_much(commits: int | None, hours: float | None) -> None:
    with pytest.raises(ConfigError):
        CleaningConfig(commits=commits, hours=hours)


@indexed
def test_plans_and_bodies_as_hudi_has_them(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(3)
    plan = plan_clean(aged.table, TWO)
    assert plan is not None
    done = clean(aged.table, TWO)
    assert done is not None
    requested = done.in_state(State.REQUESTED)
    data = aged.table.storage.read(requested.path)
    assert plan.retained is not None
    assert CleanPlan.from_bytes(data, "plan") == replace(plan, retained=replace(plan.retained, completion_time=None))
    body = decode_container(data, "plan")
    paths = [f["filePath"] for files in body["filePathsToBeDeletedPerPartition"].values() for f in files]
    expected = {f"file://{tmp_path}/{in_partition(p, n)}" for p, names in plan.files.items() for n in names}
    assert set(paths) == expected
    assert body["earliestInstantToRetain"] == {
        "timestamp": aged.moments[-2][0],
        "action": "deltacommit",
        "state": "COMPLETED",
    }
    said = decode_container(aged.table.storage.read(done.path), "clean")
    assert said["totalFilesDeleted"] == plan.count == len(paths)
    if indexed:
        index = aged.table.metadata_table
        assert index is not None
        found = index.timeline.find(done.requested_time)
        assert found is not None
        assert found.completed


@indexed
def test_a_clean_that_somebody_else_planned_is_finished(tmp_path: Path, indexed: bool) -> None:
    """While it is pending, times whose files it names are refused."""
    aged = Aged(tmp_path, indexed)
    aged.live(3)
    plan = plan_clean(aged.table, TWO)
    assert plan is not None
    clean_action.request(aged.table.storage, aged.table.timeline, aged.table.clock, plan)
    assert refused(aged) == [True] * 5 + [False] * 4
    (done,) = finish_pending(aged.reopen())
    assert done.completed
    assert not {in_partition(p, n) for p, names in plan.files.items() for n in names} & set(data_files(tmp_path))
    assert refused(aged) == [True] * 5 + [False] * 4
    aged.check()
