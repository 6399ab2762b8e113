"""Schedule, execute, complete: what is planned when, and what delta commits between the steps come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake import clock
from hudilake.commit.compaction_plan import pending_compactions, read_plan
from hudilake.commit.preconditions import ForeignActionError
from hudilake.errors import ConfigError, CorruptDataError, LostOwnershipError
from hudilake.format.files.file_group_write import write_file_group
from hudilake.format.timeline.instant import CLUSTERING, COMPACTION, DELTA_COMMIT, Instant, State
from hudilake.services.compaction import (
    CompactionConfig,
    CompactionJob,
    OlderWriterError,
    UnsoundPlanError,
    complete,
    due,
    execute,
    finish_pending,
    prepare,
    run,
    schedule,
    unschedule,
    wait_for_older_writers,
)
from hudilake.table.table import HudiTable
from tests.hudilake.lake import (
    ORDER,
    SCHEMA,
    Change,
    commit,
    data_files,
    deletes,
    groups,
    ours,
    storage_at,
    tree,
    upserts,
    write,
)
from tests.hudilake.services.compaction.steps import (
    ALWAYS,
    FIRST,
    add,
    die_before_publishing,
    indexed,
    new,
    scheduled,
    serially,
    sound,
)
from tests.hypothesis_profile import scaled
from tests.logged import events


@indexed
def test_base_files_in_place_of_logs(tmp_path: Path, indexed: bool) -> None:
    table, model = new(tmp_path, indexed)
    (done,) = run(table, ALWAYS, serially)
    sound(tmp_path, model)
    assert [i.action for i in table.timeline.completed()][-1] == "commit"
    body = table.timeline.commit_metadata(done)
    assert (body.operation, body.compacted, len(body.stats)) == ("COMPACT", True, 4)
    assert all(s.log_files == () and s.base_file for s in HudiTable.open(table.storage).file_slices())
    assert not any("/.temp/" in name for name in tree(tmp_path))
    assert run(table, ALWAYS, serially) == []
    add(table, model, upserts([3], 105, "too late") + upserts([4], 120, "back"))
    model.state["d1", 3] = Change(3, 105, "too late3")  # without a retention the delete is forgotten, as Hudi does
    sound(tmp_path, model)
    times = {r["id"]: r["_hoodie_commit_time"] for r in ours(tmp_path, ["id", "day", "_hoodie_commit_time"])}
    assert times[9] < done.requested_time < times[3]


@indexed
@settings(deadline=None, max_examples=scaled(25))
@given(
    history=st.lists(
        st.one_of(
            st.none(),
            st.lists(
                st.builds(Change, st.integers(0, 9), st.integers(0, 5), st.sampled_from(["a", None])),
                min_size=1,
                max_size=6,
                unique_by=lambda c: c.id,
            ),
        ),
        max_size=8,
    )
)
def test_random_histories(
    tmp_path_factory: pytest.TempPathFactory, indexed: bool, history: list[list[Change] | None]
) -> None:
    """With tombstones that last, compactions change nothing that a reader sees."""
    path = tmp_path_factory.mktemp("lake")
    table, model = new(path, indexed, [])
    for changes in history:
        if changes is None:
            run(table, ALWAYS.model_copy(update={"tombstone_retention_hours": 1}), serially)
        else:
            add(table, model, changes)
    sound(path, model)


@indexed
def test_commits_between_the_steps_are_in_the_next_slice(tmp_path: Path, indexed: bool) -> None:
    table, model = new(tmp_path, indexed)
    early = table.begin()
    changes = upserts([8], 300, "early") + deletes([9], 300)
    results = write(table, early, changes)
    requested = scheduled(table)
    table.commit(early, results)
    model.apply(changes)
    sound(tmp_path, model)
    add(table, model, upserts([5], 300, "after the plan") + upserts([60], 1, day="d3"))
    job = prepare(table, requested, ALWAYS)
    add(table, model, upserts([5], 301, "in flight") + deletes([6], 301))
    made = execute(job, serially)
    add(table, model, upserts([6], 302, "written") + deletes([7], 99))
    sound(tmp_path, model)
    done = complete(table, job.instant, made)
    sound(tmp_path, model)
    assert early < done.requested_time
    add(table, model, upserts([7], 400, "completed"))
    sound(tmp_path, model)
    run(table, ALWAYS, serially)
    sound(tmp_path, model)


def commit_wide(table: HudiTable, instant: str, changes: Sequence[Change]) -> Callable[[], str]:
    """One commit that brings a column; returns what publishes it."""
    wide = SCHEMA.append(pa.field("extra", pa.string()))
    context = table.write_context(instant, wide)
    results = []
    for group in groups(table, changes):
        assert group.upserts is not None
        rows = group.upserts.append_column("extra", pa.array(["x"] * group.upserts.num_rows))
        results.append(write_file_group(table.storage, context, replace(group, upserts=rows)))
    return lambda: table.commit(instant, results, schema=wide)


@indexed
@pytest.mark.parametrize("begun_before", [False, True])
def test_a_column_that_comes_while_a_compaction_runs(tmp_path: Path, indexed: bool, begun_before: bool) -> None:
    """One that was begun before it is waited for: the newest instant says what columns there are."""
    table, _ = new(tmp_path, indexed)
    early = table.begin() if begun_before else ""
    job = prepare(table, scheduled(table), ALWAYS)
    publish = commit_wide(table, early or table.begin(), upserts([1], 500, "wide"))
    made = execute(job, serially)
    if begun_before:
        wait_for_older_writers(table, job.instant.requested_time, 0.2)
        with pytest.raises(OlderWriterError, match=early):
            complete(table, job.instant, made)
    publish()
    wait_for_older_writers(table, job.instant.requested_time, 60)
    complete(table, job.instant, made)
    again = HudiTable.open(table.storage)
    assert again.schema.names == [*SCHEMA.names, "extra"]
    assert again.schema_as_of(job.instant.requested_time).names == (
        again.schema.names if begun_before else SCHEMA.names
    )
    rows = ours(tmp_path, [*SCHEMA.names, "extra"])
    assert {r["extra"] for r in rows if r["id"] == 1 and r["day"] == "d1"} == {"x"}
    assert {r["extra"] for r in rows if r["id"] != 1} == {None}


def test_what_makes_it_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, model = new(tmp_path, False, [])
    every = CompactionConfig(
        after_commits=2, after_minutes=5, log_ratio=0.5, log_ratio_from_bytes=1, tombstone_retention_hours=0
    )
    off = CompactionConfig(after_commits=None, log_ratio=None)
    assert due(table, every) is None
    add(table, model, FIRST[0])
    assert due(table, off) is None
    assert "bytes of log files" in str(due(table, every))
    assert due(table, every.model_copy(update={"log_ratio_from_bytes": 1 << 30})) is None
    monkeypatch.setattr("hudilake.services.planned.now_ms", lambda: clock.now_ms() + 300_001)
    assert "5 minutes old" in str(due(table, every.model_copy(update={"log_ratio": None})))
    monkeypatch.undo()
    add(table, model, FIRST[1])
    assert str(due(table, every.model_copy(update={"log_ratio": None}))).startswith("2 delta commits")
    run(table, every, serially)
    assert due(table, every) is None
    add(table, model, upserts([1], 700))
    assert due(table, every.model_copy(update={"log_ratio": None})) is None
    add(table, model, upserts([1], 701))
    scheduled(table)
    assert due(table, every.model_copy(update={"log_ratio": None})) is None


def test_a_plan_names_files_once_and_within_the_caps(tmp_path: Path) -> None:
    table, model = new(tmp_path, False)
    assert len(table.file_slices()) == 4
    first = read_plan(table.storage, scheduled(table, ALWAYS.model_copy(update={"max_file_groups": 1}))).operations
    second = read_plan(table.storage, scheduled(table, ALWAYS.model_copy(update={"max_io_bytes": 1}))).operations
    rest = read_plan(table.storage, scheduled(table)).operations
    assert (len(first), len(second), len(rest)) == (1, 1, 2)
    assert len({o.group for o in (*first, *second, *rest)}) == 4
    assert schedule(table, ALWAYS) is None
    assert len(finish_pending(table, ALWAYS, serially)) == 3
    sound(tmp_path, model)


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match="after_commits"):
        CompactionConfig(after_commits=0)
    with pytest.raises(ConfigError, match="bloom_filter_fpp"):
        CompactionConfig(bloom_filter_fpp=1.0)
    with pytest.raises(ConfigError, match="tombstone"):
        CompactionConfig(tombstone_retention_hours=-1)


def test_a_pending_clustering_stops_the_schedule(tmp_path: Path) -> None:
    table, _ = new(tmp_path, False)
    foreign = Instant(table.clock.next(), CLUSTERING, State.REQUESTED)
    table.storage.create(foreign.path, b"")
    with pytest.raises(ForeignActionError, match="clustering is pending"):
        schedule(table, ALWAYS)
    assert pending_compactions(table.timeline) == []


@indexed
def test_a_pending_compaction_is_not_rolled_back(tmp_path: Path, indexed: bool) -> None:
    table, model = new(tmp_path, indexed)
    job = prepare(table, scheduled(table), ALWAYS)
    execute(job, serially)
    table.begin()
    again = HudiTable.open(storage_at(tmp_path))
    assert len(again.rollback_pending()) == 1
    assert [i.requested_time for i in again.timeline.pending()] == [job.instant.requested_time]
    add(again, model, upserts([1], 500, "new") + deletes([2], 500))
    assert len(finish_pending(again, ALWAYS, serially)) == 1
    sound(tmp_path, model)
    assert again.timeline.pending() == []


@indexed
def test_a_plan_whose_files_are_gone_is_unscheduled(
    tmp_path: Path, indexed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    table, model = new(tmp_path, indexed)
    requested = scheduled(table)
    job = prepare(table, requested, ALWAYS)
    execute(job, serially)
    before = [p for p in data_files(tmp_path) if requested.requested_time not in p]
    lost = replace(job.plan.operations[0], log_files=(*job.plan.operations[0].log_files, _other(job)))
    body = replace(job.plan, operations=(lost, *job.plan.operations[1:])).to_bytes()
    table.storage.write(requested.path, body)
    caplog.set_level("INFO", "hudilake")
    assert finish_pending(table, ALWAYS, serially) == []
    assert events(caplog)["compaction_unscheduled"]["instant"] == requested.requested_time
    assert data_files(tmp_path) == before
    assert HudiTable.open(table.storage).timeline.pending() == []
    sound(tmp_path, model)
    assert len(run(table, ALWAYS, serially)) == 1
    sound(tmp_path, model)


def _other(job: CompactionJob) -> str:
    name = job.plan.operations[0].log_files[0]
    return name.replace("log.1", "log.2")


@indexed
def test_unscheduling_after_the_metadata_table_was_told(tmp_path: Path, indexed: bool) -> None:
    table, model = new(tmp_path, indexed)
    job = prepare(table, scheduled(table), ALWAYS)
    die_before_publishing(table, job)
    again = HudiTable.open(table.storage)
    unschedule(again, again.timeline.pending()[0])
    sound(tmp_path, model)
    assert len(run(again, ALWAYS, serially)) == 1
    sound(tmp_path, model)


@indexed
def test_a_commit_that_slipped_in_before_the_plan_is_noticed(tmp_path: Path, indexed: bool) -> None:
    """Its completion time was taken before the compaction's instant, its file appears after the plan."""
    table, model = new(tmp_path, indexed)
    other = HudiTable.open(storage_at(tmp_path))
    instant = other.begin()
    changes = upserts([1], 900, "slipped in")
    results = write(other, instant, changes)
    taken = other.clock.next()
    table.clock.observe(taken)
    job = prepare(table, scheduled(table), ALWAYS)
    assert taken < job.instant.requested_time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(other.clock, "next", lambda: taken)
        other.commit(instant, results)
    model.apply(changes)
    made = execute(job, serially)
    with pytest.raises(UnsoundPlanError, match="completed before this compaction"):
        complete(table, job.instant, made)
    assert finish_pending(table, ALWAYS, serially) == []
    sound(tmp_path, model)
    assert len(run(table, ALWAYS, serially)) == 1
    sound(tmp_path, model)


def test_somebody_else_completes_or_unschedules_it(tmp_path: Path) -> None:
    table, model = new(tmp_path, False)
    job = prepare(table, scheduled(table), ALWAYS)
    made = execute(job, serially)
    other = HudiTable.open(storage_at(tmp_path))
    complete(other, job.instant, made)
    with pytest.raises(LostOwnershipError, match="another writer completed"):
        complete(table, job.instant, made)
    with pytest.raises(LostOwnershipError):
        unschedule(table, job.instant)
    add(other, model, upserts([1], 500))
    job = prepare(other, scheduled(other), ALWAYS)
    made = execute(job, serially)
    unschedule(HudiTable.open(storage_at(tmp_path)), job.instant)
    with pytest.raises(LostOwnershipError, match="another writer rolled this instant back"):
        complete(other, job.instant, made)
    sound(tmp_path, model)


def test_another_writers_attempt_is_cleared_away(tmp_path: Path) -> None:
    """Hudi began to execute the plan and died: its base files bear another write token."""
    table, model = new(tmp_path, False)
    job = prepare(table, scheduled(table), ALWAYS)
    (group, *_) = job.plan.operations
    theirs = group.path(f"{group.file_id}_1-22-33_{job.instant.requested_time}.parquet")
    table.storage.write(theirs, b"half a file")
    assert len(finish_pending(table, ALWAYS, serially)) == 1
    assert table.storage.stat(theirs) is None
    sound(tmp_path, model)


def test_a_plan_that_cannot_be_read_stops_with_its_name(tmp_path: Path) -> None:
    table, _ = new(tmp_path, False)
    broken = Instant(table.clock.next(), COMPACTION, State.REQUESTED)
    table.storage.create(broken.path, b"")
    with pytest.raises(CorruptDataError, match=broken.file_name):
        finish_pending(table, ALWAYS, serially)


def test_positions_are_still_found_after_a_compaction(tmp_path: Path) -> None:
    table, _ = new(tmp_path, False)
    commit(table, upserts([1], 300), {"binlake.offsets": "7"})
    run(table, ALWAYS, serially)
    again = HudiTable.open(table.storage)
    assert again.extra_metadata("binlake.offsets") == "7"
    assert again.schema == table.schema
    assert again.timeline.completed()[-1].action != DELTA_COMMIT
    assert ORDER in again.schema.names
