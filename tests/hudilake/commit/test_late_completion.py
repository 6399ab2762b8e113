"""Completed files that appear after another process has rolled the instant back, or completed it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hudilake.commit.rollback import RollbackPlan, files_of_instant
from hudilake.errors import LostOwnershipError
from hudilake.format.files.names import in_partition
from hudilake.format.timeline import timeline
from hudilake.format.timeline.instant import CLEAN, DELTA_COMMIT, ROLLBACK, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.index.open import open_index
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.clustering.completion import complete
from hudilake.services.clustering.job import execute, prepare
from hudilake.services.clustering.scheduling import schedule
from hudilake.table.publisher import Publisher
from hudilake.table.table import HudiTable
from tests.hudilake.actors.world import World, template
from tests.hudilake.lake import Model, check, commit, new_table, ours, storage_at, upserts, write
from tests.hudilake.services.cleaning.aged import Aged
from tests.hudilake.services.clustering.made import Made, clustering
from tests.programs.crash_points.works import serially

FIRST, SECOND, THIRD = upserts(range(4), 100), upserts([1, 9], 200, "late"), upserts([2], 300, "third")


def dead_commit(path: Path) -> tuple[str, bytes]:
    """A table with one commit, and a second one that died while its completed file was under way; that file."""
    table = new_table(path)
    commit(table, FIRST)
    instant = table.begin()
    completed = table.commit(instant, write(table, instant, SECOND), {"offset": "2"})
    under_way = path / ".hoodie" / "timeline" / f"{instant}_{completed}.deltacommit"
    body = under_way.read_bytes()
    under_way.unlink()
    return under_way.name, body


def arrives(path: Path, name: str, body: bytes) -> None:
    (path / ".hoodie" / "timeline" / name).write_bytes(body)


def is_as_before(path: Path) -> None:
    model = Model()
    model.apply(FIRST)
    check(path, model)


def test_a_writer_that_is_running_does_not_believe_it(tmp_path: Path) -> None:
    name, body = dead_commit(tmp_path)
    table = HudiTable.open(storage_at(tmp_path))
    assert table.rollback_pending() == [name[:17]]
    arrives(tmp_path, name, body)
    assert not table.refresh()
    assert table.extra_metadata("offset") is None
    commit(table, THIRD)
    assert [i.requested_time for i in table.timeline.completed()].count(name[:17]) == 0


def test_an_instant_that_was_rolled_back_before_it_was_inflight_is_not_completed(tmp_path: Path) -> None:
    """Another process that sees no heartbeats rolls back what is only requested; the writer does not notice at once."""
    table = new_table(tmp_path)
    commit(table, FIRST)
    instant = table.begin()
    inflight = tmp_path / ".hoodie" / "timeline" / f"{instant}.deltacommit.inflight"
    body = inflight.read_bytes()
    inflight.unlink()  # the writer has not come to it yet
    other = HudiTable.open(storage_at(tmp_path))
    assert other.rollback_pending() == [instant]
    inflight.write_bytes(body)
    with pytest.raises(LostOwnershipError, match="another writer rolled this instant back"):
        table.commit(instant, write(table, instant, SECOND), {"offset": "2"})
    assert HudiTable.open(storage_at(tmp_path)).extra_metadata("offset") is None


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_living_writer_does_not_complete_what_a_dead_process_was_rolling_back(tmp_path: Path, state: State) -> None:
    """That process sees no heartbeats, and dies. Once its rollback is inflight it is final: whoever comes goes on with
    it, and would delete the rows of a commit that was acknowledged. Before, the commit counts."""
    world = template(tmp_path / "table", indexed=False)
    living, other = world.opened("living"), world.opened("other")
    instant = living.begin()
    results = write(living, instant, SECOND)
    with other.state.exclusively():
        target = Instant(instant, DELTA_COMMIT, State.INFLIGHT)
        plan = RollbackPlan(instant, target.action, tuple(files_of_instant(other.storage, target)))
        rollback = Instant(other.clock.next(), ROLLBACK, State.REQUESTED)
        other.storage.create(rollback.path, plan.to_bytes(other.storage.uri))
        if state is State.INFLIGHT:
            other.storage.create(rollback.in_state(State.INFLIGHT).path, b"")
    if state is State.INFLIGHT:
        with pytest.raises(LostOwnershipError, match="another writer rolled this instant back"):
            living.commit(instant, results)
    else:
        living.commit(instant, results)
    world.opened("next").rollback_pending()
    assert Timeline.load(storage_at(world.path)).pending() == []
    assert (9 in {row["id"] for row in ours(world.path)}) is (state is State.REQUESTED)


def test_the_next_writer_deletes_it(tmp_path: Path) -> None:
    name, body = dead_commit(tmp_path)
    HudiTable.open(storage_at(tmp_path)).rollback_pending()
    arrives(tmp_path, name, body)
    table = HudiTable.open(storage_at(tmp_path))
    assert table.extra_metadata("offset") == "2"
    table.rollback_pending()
    assert table.extra_metadata("offset") is None
    assert not (tmp_path / ".hoodie" / "timeline" / name).exists()
    is_as_before(tmp_path)


def test_archival_deletes_it_before_it_makes_a_gap(tmp_path: Path) -> None:
    name, body = dead_commit(tmp_path)
    table = HudiTable.open(storage_at(tmp_path))
    table.rollback_pending()
    arrives(tmp_path, name, body)
    for order in range(300, 306):
        commit(table, upserts([3], order))
    archive(table, ArchivalConfig(2, 3))
    assert not (tmp_path / ".hoodie" / "timeline" / name).exists()


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_it_appears_while_the_rollback_is_pending(tmp_path: Path, state: State) -> None:
    """Nothing was deleted before the rollback was in flight: then the commit counts. After that it does not."""
    name, body = dead_commit(tmp_path)
    storage, target = storage_at(tmp_path), Instant(name[:17], DELTA_COMMIT, State.INFLIGHT)
    plan = RollbackPlan(target.requested_time, target.action, tuple(files_of_instant(storage, target)))
    rollback = Instant(HudiTable.open(storage).clock.next(), ROLLBACK, State.REQUESTED)
    storage.create(rollback.path, plan.to_bytes(storage.uri))
    if state is State.INFLIGHT:
        storage.create(rollback.in_state(State.INFLIGHT).path, b"")
    arrives(tmp_path, name, body)
    table = HudiTable.open(storage)
    table.rollback_pending()
    assert table.timeline.pending() == []
    if state is State.INFLIGHT:
        is_as_before(tmp_path)
    else:
        model = Model()
        model.apply(FIRST)
        model.apply(SECOND)
        check(tmp_path, model)


@pytest.mark.parametrize("known", ["before its rollback", "with its rollback"])
def test_a_running_writer_does_not_believe_it_while_its_rollback_is_pending(tmp_path: Path, known: str) -> None:
    """Whose process has died. The writer's next commit would record the position of rows that nobody has any more."""
    world = template(tmp_path / "table", indexed=False)
    dying, living = world.opened("dying"), world.opened("living")
    instant = dying.begin()
    completed = dying.commit(instant, write(dying, instant, SECOND), {"position": "of both"})
    under_way = world.path / ".hoodie" / "timeline" / f"{instant}_{completed}.deltacommit"
    body = under_way.read_bytes()
    under_way.unlink()
    storage, target = storage_at(world.path), Instant(instant, DELTA_COMMIT, State.INFLIGHT)
    plan = RollbackPlan(instant, target.action, tuple(files_of_instant(storage, target)))
    rollback = Instant(dying.clock.next(), ROLLBACK, State.REQUESTED)
    storage.create(rollback.path, plan.to_bytes(storage.uri))
    arrives(world.path, under_way.name, body)
    if known == "before its rollback":
        living.refresh()
        assert living.extra_metadata("position") == "of both"
    storage.create(rollback.in_state(State.INFLIGHT).path, b"")
    for partition, name in plan.files:
        storage.delete(in_partition(partition, name))
    living.refresh()
    later = living.begin()
    living.commit(later, write(living, later, THIRD), lambda: {"position": str(living.extra_metadata("position"))})
    assert not under_way.exists()
    assert world.opened("next").rollback_pending() == [instant]
    assert 9 not in {row["id"] for row in ours(world.path)}
    assert HudiTable.open(storage).extra_metadata("position") == "None"


def test_of_two_completed_files_of_a_clean_the_later_stays(tmp_path: Path) -> None:
    aged = Aged(tmp_path, indexed=False)
    aged.live(3)
    done = clean(aged.table, CleaningConfig(commits=2))
    assert done is not None
    assert done.completion_time is not None
    earlier = Instant(done.requested_time, CLEAN, State.COMPLETED, f"{int(done.completion_time) - 1}")
    arrives(tmp_path, earlier.file_name, (tmp_path / done.path).read_bytes())
    table = aged.reopen()
    table.rollback_pending()
    assert table.timeline.completed_actions({CLEAN}) == [done]
    assert not (tmp_path / earlier.path).exists()
    aged.check()


@pytest.mark.parametrize("rolled_back", [True, False], ids=["", "control"])
def test_a_dead_writers_commit_does_not_complete_beneath_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rolled_back: bool
) -> None:
    """The later commit knows nothing of it, so nobody would know its position: its rows would be delivered again."""
    if not rolled_back:
        monkeypatch.setattr(Publisher, "roll_back_dead", lambda *_: None)
    world = template(tmp_path / "table", indexed=False)
    dying, living = world.opened("dying"), world.opened("living")
    instant = dying.begin()
    completed = dying.commit(instant, write(dying, instant, SECOND), {"position": "of both"})
    under_way = world.path / ".hoodie" / "timeline" / f"{instant}_{completed}.deltacommit"
    body = under_way.read_bytes()
    under_way.unlink()
    living.refresh()
    later = living.begin()
    living.commit(later, write(living, later, THIRD), {"position": "of one"})
    arrives(world.path, under_way.name, body)
    assert HudiTable.open(storage_at(world.path)).extra_metadata("position") == "of one"
    assert (9 in {row["id"] for row in ours(world.path)}) is not rolled_back
    assert world.opened("next").rollback_pending() == []
    assert HudiTable.open(storage_at(world.path)).timeline.is_completed(instant) is not rolled_back


@pytest.mark.parametrize("rolled_back", [True, False], ids=["", "control"])
def test_a_dead_processs_clustering_does_not_replace_what_a_later_commit_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rolled_back: bool
) -> None:
    """It cannot give way any more, once its completing call is sent. Others' commits need not be near it in time."""
    monkeypatch.setattr(timeline, "LOOKBACK_MS", 0)
    if not rolled_back:
        monkeypatch.setattr(Publisher, "roll_back_dead", lambda *_: None)
    made, order = Made.at(tmp_path / "table", "bloom"), clustering("id")
    made.commit(FIRST)
    world = World(made.path, indexed=True)
    dying, living = world.opened("dying"), world.opened("living")
    requested = schedule(dying, order)
    assert requested is not None
    job = prepare(dying, requested, order)
    assert job is not None
    assert complete(dying, job, execute(job, serially)).completed
    (under_way,) = (made.path / ".hoodie" / "timeline").glob("*.replacecommit")
    body = under_way.read_bytes()
    under_way.unlink()
    living.refresh()
    stream = replace(made, table=living, index=open_index(living))
    stream.commit(THIRD)
    arrives(made.path, under_way.name, body)
    if rolled_back:  # readers believe it until a writer comes, which need not start anew
        assert ours(made.path) == []
        living.refresh()
        stream.commit(upserts([3], 400, "next"))
    assert ("third2" in {row["name"] for row in ours(made.path)}) is rolled_back
    assert under_way.exists() is not rolled_back
    assert world.opened("next").rollback_pending() == []


@pytest.mark.parametrize(
    ("known", "late_ms"),
    [("pending", 600_000), ("its rollback", 600_000), ("from its start", 600_000), ("from its start", 0)],
    ids=["pending", "its rollback", "from its start", "control"],
)
def test_a_running_writer_deletes_it_however_far_its_own_commits_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str, late_ms: int
) -> None:
    """What the writer knew of the commit before its completed file arrives. Readers would believe it until then."""
    monkeypatch.setattr(timeline, "LOOKBACK_MS", 0)
    monkeypatch.setattr(timeline, "LATE_MS", late_ms)
    world = template(tmp_path / "table", indexed=False)
    dying, other = world.opened("dying"), world.opened("other")
    early = world.opened("living")
    instant = dying.begin()
    if known == "pending":
        early.refresh()
    completed = dying.commit(instant, write(dying, instant, SECOND), {"position": "of it"})
    under_way = world.path / ".hoodie" / "timeline" / f"{instant}_{completed}.deltacommit"
    body = under_way.read_bytes()
    under_way.unlink()
    if known == "pending":
        early.refresh()
    assert other.rollback_pending() == [instant]
    living = world.opened("later") if known == "from its start" else early
    living.refresh() if living is early else living.rollback_pending()
    living.commit(mine := living.begin(), write(living, mine, THIRD))
    arrives(world.path, under_way.name, body)
    living.refresh()
    living.commit(mine := living.begin(), write(living, mine, THIRD))
    assert under_way.exists() is (late_ms == 0)
