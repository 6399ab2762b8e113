"""Restoring: what comes back, what goes, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.files.file_group_write import write_file_group
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.instant import COMPACTION, RESTORE, Instant, State
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import complete, execute, prepare, run, schedule
from hudilake.services.restore import plan_restore, restore
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from tests.hudilake.lake import SCHEMA, data_files, deletes, groups, tree, upserts, write
from tests.hudilake.services.cleaning.aged import COMPACTION as ALWAYS
from tests.hudilake.services.cleaning.aged import serially
from tests.hudilake.services.restore.past import Past

indexed = pytest.mark.parametrize("indexed", [False, True])
TWO = CleaningConfig(commits=2)


@pytest.mark.first(1)
@indexed
def test_every_moment_of_a_table(tmp_path: Path, indexed: bool) -> None:
    """From the newest back to the first, through compactions; what the plan says is what happens."""
    past = Past(tmp_path, indexed, buckets=2)
    past.live(3)
    past.write(upserts(range(3), past.order + 5, "new partition", day="d9"))
    partitions = past.table.config.metadata_partitions
    for instant, _ in reversed(past.moments):
        before = set(data_files(tmp_path))
        plan = plan_restore(past.table, instant)
        assert len(plan.undone) == (0 if instant == past.moments[-1][0] else 1)
        past.restore(instant)
        assert before - set(data_files(tmp_path)) == {info.path for info in plan.files}
        assert set(data_files(tmp_path)) >= {info.path for info in plan.kept_files}
        assert past.table.config.metadata_partitions == partitions
        past.check()
        assert past.table.timeline.last_completed() == plan.target
    assert not (tmp_path / ".hoodie/.temp").exists() or not list((tmp_path / ".hoodie/.temp").rglob("*.marker.*"))


@indexed
def test_the_table_goes_on(tmp_path: Path, indexed: bool) -> None:
    """In the same process and in a new one: commits, compactions, cleans, another restore."""
    past = Past(tmp_path, indexed)
    past.live(2)
    middle = past.moments[1][0]
    past.restore(middle)
    assert past.table.extra_metadata("turn") == "102"
    past.live(2)
    past.check()
    past.reopen()
    past.restore(past.moments[3][0])
    past.reopen()
    past.live(2)
    clean(past.table, TWO)
    past.check()
    assert past.as_of(past.moments[-1][0]) == past.model.rows()


def test_what_the_timeline_says(tmp_path: Path) -> None:
    past = Past(tmp_path, indexed=False)
    past.live(1)
    past.live(1)
    undone = [i for i, _ in past.moments[3:]]
    completed = past.restore(past.moments[2][0])
    assert completed is not None
    storage = past.table.storage
    body = decode_container(storage.read(completed.path), "restore")
    assert body["instantsToRollback"] == list(reversed(undone))
    assert [i["action"] for i in body["restoreInstantInfo"]] == ["commit", "deltacommit", "deltacommit"]
    gone = [
        f
        for said in body["hoodieRestoreMetadata"].values()
        for part in said[0]["partitionMetadata"].values()
        for f in part["successDeleteFiles"]
    ]
    assert len(gone) == sum(said[0]["totalFilesDeleted"] for said in body["hoodieRestoreMetadata"].values()) > 0
    plan = decode_container(storage.read(completed.in_state(State.REQUESTED).path), "plan")
    assert (plan["version"], plan["savepointToRestoreTimestamp"]) == (2, past.moments[-1][0])
    assert not [name for name in tree(tmp_path) if any(time in name for time in undone)]
    assert past.table.timeline.completed_actions({RESTORE}) == [completed]
    assert restore(past.table, past.moments[-1][0]) is None


@indexed
def test_pending_compactions(tmp_path: Path, indexed: bool) -> None:
    """One that was planned later goes, and its log files count again; one that was planned before stays and is done."""
    past = Past(tmp_path, indexed, buckets=2)
    past.write()
    first = schedule(past.table, ALWAYS)
    assert first is not None
    past.write()
    job = prepare(past.table, first, ALWAYS)
    execute(job, serially)  # its files are there
    copy = past.copied(tmp_path.with_name(f"{tmp_path.name}-later"))
    copy.reopen()
    copy.restore(copy.moments[0][0])
    assert copy.table.timeline.pending() == []
    copy.check()
    copy.live(1)
    copy.check()

    past.write()
    past.restore(past.moments[1][0])
    assert [i.requested_time for i in past.table.timeline.pending() if i.action == COMPACTION] == [first.requested_time]
    past.check()
    past.recover()
    done, _ = run(past.table, ALWAYS, serially)
    assert done.requested_time == first.requested_time
    past.check()


@indexed
def test_a_compaction_that_was_planned_before_and_completed_later_stays(tmp_path: Path, indexed: bool) -> None:
    """The cleaner promises the time of the commit between the two with the slices of the compaction."""
    past = Past(tmp_path, indexed)
    past.write()
    planned = schedule(past.table, ALWAYS)
    assert planned is not None
    job = prepare(past.table, planned, ALWAYS)
    between = past.write()
    complete(past.table, job.instant, execute(job, serially))
    past.write()
    assert clean(past.table, TWO) is not None  # the commit between is the oldest retained
    past.write()
    past.restore(between)
    assert [i.requested_time for i in past.table.timeline.completed()][-1] == between
    assert past.table.timeline.find(planned.requested_time) is not None
    past.check()
    past.live(1)
    past.check()


@indexed
def test_a_schema_goes_back(tmp_path: Path, indexed: bool) -> None:
    past = Past(tmp_path, indexed)
    before = past.write()
    table, wider = past.table, SCHEMA.append(pa.field("more", pa.string()))
    instant = table.begin()
    context = table.write_context(instant, wider)
    table.commit(
        instant, [write_file_group(table.storage, context, g) for g in groups(table, upserts([1], 900))], schema=wider
    )
    assert "more" in table.schema.names
    past.restore(before)
    assert "more" not in table.schema.names
    assert "more" not in past.reopen().schema.names
    past.check()


@indexed
def test_commits_that_were_under_way(tmp_path: Path, indexed: bool) -> None:
    """Dead ones are rolled back first; one that began before the moment and completed after it goes as well."""
    past = Past(tmp_path, indexed)
    table = past.table
    late = table.begin()
    results = write(table, late, upserts([70], 500, "late"))
    wanted = past.write()
    table.commit(late, results)
    dead = table.begin()
    write(table, dead, upserts([71], 500, "dead"))
    plan = plan_restore(table, wanted)
    assert [i.requested_time for i in plan.undone] == [dead, late]
    past.restore(wanted)
    assert not [name for name in data_files(tmp_path) if dead in name or late in name]
    past.check()
    past.live(2)
    past.check()


@indexed
def test_what_was_cleaned_is_refused(tmp_path: Path, indexed: bool) -> None:
    past = Past(tmp_path, indexed)
    past.live(3)
    assert clean(past.table, TWO) is not None
    before = tree(tmp_path)
    for instant, _ in past.moments[:5]:
        with pytest.raises(UnsupportedError, match=r"cleaned|gone"):
            restore(past.table, instant)
    with pytest.raises(ConfigError, match="no completed write"):
        restore(past.table, "20240101000000000")
    assert tree(tmp_path) == before
    past.restore(past.moments[-3][0])
    past.check()


@pytest.mark.parametrize("overtaken", [False, True])
def test_writes_that_were_archived(tmp_path: Path, overtaken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the history stays; a commit there that completed after the wanted moment cannot be taken back. Our
    archival leaves no such commit; Hudi's, by which the test archives, does not look at the order of completion."""
    monkeypatch.setattr("hudilake.services.archival._completed_first", lambda old, *_: old)
    past = Past(tmp_path, indexed=False)
    table = past.table
    past.write()
    planned = schedule(table, ALWAYS)
    assert planned is not None
    late = table.begin()
    results = write(table, late, upserts([70], 500, "late"))
    wanted = past.write()
    if overtaken:
        table.commit(late, results)
    else:
        table.abort(late)
    job = prepare(table, planned, ALWAYS)
    complete(table, job.instant, execute(job, serially))
    past.write()
    again = schedule(table, ALWAYS)  # without a metadata table, commits stay until their log files are compacted
    assert again is not None
    job = prepare(table, again, ALWAYS)
    complete(table, job.instant, execute(job, serially))
    first = table.timeline.completed()[: 3 if overtaken else 2]
    assert archive(table, ArchivalConfig(3, 4)) == len(first)
    assert table.timeline.completed()[0].requested_time == wanted
    if overtaken:
        with pytest.raises(UnsupportedError, match="archived and cannot be undone"):
            restore(table, wanted)
        return
    past.restore(wanted)
    past.check()
    past.live(1)
    past.check()


@indexed
def test_a_lost_file_is_noticed(tmp_path: Path, indexed: bool) -> None:
    """Whatever took it: the wanted state's commits name it."""
    past = Past(tmp_path, indexed)
    past.live(2)
    wanted = past.moments[1][0]
    lost = next(name for name in data_files(tmp_path) if wanted in name and ".log." in name)
    (tmp_path / lost).unlink()
    with pytest.raises(UnsupportedError, match="was deleted") as refused:
        restore(past.table, wanted)
    assert refused.value.where["file"] == lost
    past.restore(past.moments[-2][0])


@indexed
def test_savepoints(tmp_path: Path, indexed: bool) -> None:
    """A savepoint can be restored though the cleaner has passed it; one that is later must be deleted first."""
    past = Past(tmp_path, indexed)
    past.live(1)
    early = past.moments[-2][0]
    create_savepoint(past.table, early, "me")
    past.live(3)
    clean(past.table, TWO)
    late = past.moments[-2][0]
    create_savepoint(past.table, late, "me")
    past.write()
    with pytest.raises(ConfigError, match="savepoint holds"):
        restore(past.table, early)
    delete_savepoint(past.table, late)
    past.restore(early)
    past.check()
    past.live(2)
    clean(past.table, TWO)
    past.check()
    assert past.as_of(early) == dict(past.moments)[early]


def test_a_table_without_rows_left(tmp_path: Path) -> None:
    """Restored to a first commit that only deleted."""
    past = Past(tmp_path, indexed=True)
    first = past.write(deletes([1], 5))
    past.live(1)
    past.restore(first)
    past.check()
    past.live(1)
    past.check()


def test_an_empty_plan_of_a_dead_process_is_forgotten(tmp_path: Path) -> None:
    past = Past(tmp_path, indexed=True)
    past.live(1)
    past.table.storage.write(Instant(past.table.clock.next(), RESTORE, State.REQUESTED).path, b"")
    past.recover()
    assert past.table.timeline.pending() == []
    past.check()
