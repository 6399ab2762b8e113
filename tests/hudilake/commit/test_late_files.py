"""Data files that land after their commit was rolled back: an object store or a NameNode may carry a dead writer's call
out at any time. No reader takes their rows, whatever the timeline begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake import clock
from hudilake.clock import now_ms, parse_instant
from hudilake.commit import late_files
from hudilake.commit.commit import OvertakenError
from hudilake.format.files.names import marker_path
from hudilake.format.timeline.instant import DELTA_COMMIT, ROLLBACK
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.config import MetadataConfig
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.compaction import run
from hudilake.services.fsck import fsck
from hudilake.table.table import HudiTable
from tests.hudilake.actors.world import COMPACTION
from tests.hudilake.lake import Model, check, commit, data_files, new_table, ours, storage_at, upserts, write
from tests.hudilake.services.compaction.steps import serially

indexed = pytest.mark.parametrize("indexed", [False, True])
LOST, KEPT = upserts(range(6), 300, "lost"), upserts(range(4), 100, "kept")
SMALL = ArchivalConfig(min_commits=1, max_commits=2)


def opened(path: Path) -> HudiTable:
    """The table as the next process has it."""
    return HudiTable.open(storage_at(path))


def dead_writers_files(table: HudiTable, path: Path) -> dict[str, bytes]:
    """Write files without a commit; their bytes by path."""
    before = set(data_files(path))
    write(table, table.begin(), LOST)
    return {name: (path / name).read_bytes() for name in set(data_files(path)) - before}


def land(path: Path, files: dict[str, bytes]) -> None:
    """The store carries the calls out."""
    for name, body in files.items():
        assert not (path / name).exists()
        (path / name).write_bytes(body)


def kept(path: Path) -> Model:
    """One more commit, and what the table must hold."""
    model = Model()
    commit(opened(path), KEPT)
    model.apply(KEPT)
    return model


@indexed
def test_of_a_tables_first_commit(tmp_path: Path, indexed: bool) -> None:
    files = dead_writers_files(new_table(tmp_path, MetadataConfig() if indexed else None), tmp_path)
    assert opened(tmp_path).rollback_pending() != []
    model = kept(tmp_path)
    land(tmp_path, files)
    check(tmp_path, model)
    assert not [finding for finding in fsck(storage_at(tmp_path)).findings if finding.severity == "error"]


def test_control_without_a_commit_before_it_they_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_files, "is_first", lambda *_: False)
    files = dead_writers_files(new_table(tmp_path), tmp_path)
    opened(tmp_path).rollback_pending()
    model = kept(tmp_path)
    land(tmp_path, files)
    assert ours(tmp_path) != model.rows()


def test_of_a_commit_that_was_overtaken_by_the_first_one(tmp_path: Path) -> None:
    """Writers that know the table from before the rollback look at the whole timeline then."""
    table = new_table(tmp_path)
    files = dead_writers_files(table, tmp_path)
    living = opened(tmp_path)
    model = kept(tmp_path)
    living.refresh()
    (dead,) = living.timeline.pending()
    table.abort(dead.requested_time)
    land(tmp_path, files)
    living.refresh()
    assert not living.timeline.is_completed(dead.requested_time)
    check(tmp_path, model)


def test_a_commit_before_it_is_made_once(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    first, second = table.begin(), table.begin()
    assert opened(tmp_path).rollback_pending() == [first, second]
    (made,) = Timeline.load(storage_at(tmp_path)).completed()
    assert made.action == DELTA_COMMIT
    assert made.requested_time < first
    assert opened(tmp_path).schema == table.schema
    table = opened(tmp_path)
    table.abort(table.begin())
    assert len(Timeline.load(storage_at(tmp_path)).completed()) == 1


@indexed
def test_a_commit_before_it_has_no_time_of_a_writer_that_is_about_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indexed: bool
) -> None:
    new_table(tmp_path, MetadataConfig() if indexed else None)
    slow = opened(tmp_path)
    earlier = now_ms() // 2 * 2 + 1000
    monkeypatch.setattr(clock, "now_ms", lambda: earlier + 2)
    dead = opened(tmp_path).begin()
    assert opened(tmp_path).rollback_pending() == [dead]
    monkeypatch.setattr(clock, "now_ms", lambda: earlier)
    instant = slow.begin()
    assert parse_instant(instant) == parse_instant(dead) - 2
    assert not Timeline.load(storage_at(tmp_path)).is_completed(instant)
    check(tmp_path, Model())
    with pytest.raises(OvertakenError):
        slow.commit(instant, write(slow, instant, LOST))
    slow.abort(instant)
    check(tmp_path, kept(tmp_path))


def archived(path: Path, files: dict[str, bytes]) -> Model:
    """The dead writer's files land; then its instant is older than the active timeline. What the table must hold."""
    model = kept(path)
    model.apply(BESIDE)
    land(path, files)
    for number in range(4):
        changes = upserts([number], 200 + number, "new")
        commit(opened(path), changes)
        model.apply(changes)
        run(opened(path), COMPACTION, serially)
    table = opened(path)
    gone = table.timeline.completed_actions({ROLLBACK})
    assert archive(table, SMALL) > 0
    assert gone
    assert not Timeline.load(storage_at(path)).completed_actions({ROLLBACK})
    return model


#: Of another partition, where one of its two file groups is new: no compaction hides that one's file.
ASIDE, BESIDE = upserts(range(6), 300, "lost", "d7"), upserts([0], 400, "other", "d7")


@pytest.mark.parametrize("known", ["by the rollback", "by a marker"])
def test_of_a_commit_that_archival_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str) -> None:
    """A file that was under way at the rollback is named by it; one that a task began later, by its marker."""
    monkeypatch.setattr(f"{__name__}.LOST", ASIDE)
    table = new_table(tmp_path)
    commit(table, BESIDE)
    files = dead_writers_files(table, tmp_path)
    instant = table.timeline.pending()[0].requested_time
    if known == "by a marker":
        for name in files:
            (tmp_path / name).unlink()
            (tmp_path / marker_path(instant, *name.rsplit("/", 1))).unlink()
    assert opened(tmp_path).rollback_pending() == [instant]
    if known == "by a marker":
        for name in files:
            storage_at(tmp_path).write(marker_path(instant, *name.rsplit("/", 1)), b"")
    check(tmp_path, archived(tmp_path, files))
    assert not any((tmp_path / name).exists() for name in files)
    assert not (tmp_path / ".hoodie/.temp" / instant).exists()


def test_control_without_a_second_deletion_they_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.LOST", ASIDE)
    monkeypatch.setattr("hudilake.services.archival.delete_late_files", lambda *_: 0)
    table = new_table(tmp_path)
    commit(table, BESIDE)
    files = dead_writers_files(table, tmp_path)
    opened(tmp_path).rollback_pending()
    model = archived(tmp_path, files)
    assert ours(tmp_path) != model.rows()
