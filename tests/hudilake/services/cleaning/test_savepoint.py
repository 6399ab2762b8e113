"""Savepoints hold their files against the cleaner, and their time can be read; letting go frees both."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from hudilake.commit.savepoint_record import savepoints
from hudilake.errors import ConfigError
from hudilake.format.files.names import in_partition
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.instant import SAVEPOINT, Instant, State
from hudilake.services.cleaning import CleaningConfig, clean, due
from hudilake.services.fsck import fsck
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from tests.hudilake.failing_storage import Killed
from tests.hudilake.lake import data_files, storage_at, tree
from tests.hudilake.metadata.below import Counting, Dying
from tests.hudilake.services.cleaning.aged import Aged

TWO = CleaningConfig(commits=2)
indexed = pytest.mark.parametrize("indexed", [False, True])


@indexed
def test_a_savepoint_outlives_cleaning(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(2)
    saved = aged.moments[3][0]  # after the first compaction and a commit
    made = create_savepoint(aged.table, saved, "somebody", "before the migration")
    assert (made.user, made.comment) == ("somebody", "before the migration")
    aged.live(2)
    assert clean(aged.table, TWO) is not None
    aged.check()
    held = {in_partition(path, name) for path, names in made.files.items() for name in names}
    assert held <= set(data_files(tmp_path))
    # Of its slice the times from the compaction on; of the next one, which is gone, none.
    assert aged.readable() == [False] * 2 + [True] * 3 + [False] * 3 + [True] * 4
    assert savepoints(aged.table.storage, aged.reopen().timeline) == [made]
    aged.live(1)
    assert clean(aged.table, TWO) is not None
    assert aged.readable() == [False] * 2 + [True] * 3 + [False] * 6 + [True] * 4

    assert not due(aged.table, TWO)
    assert delete_savepoint(aged.table, saved)
    assert due(aged.table, TWO)
    assert clean(aged.table, TWO) is not None
    assert not held & set(data_files(tmp_path))
    assert aged.readable() == [False] * 11 + [True] * 4
    assert not any("savepoint" in name for name in tree(tmp_path))
    aged.check()
    assert not delete_savepoint(aged.table, saved)


@indexed
def test_what_the_file_says(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(1)
    made = create_savepoint(aged.table, aged.moments[1][0], "me")
    (completed,) = aged.table.timeline.completed_actions({SAVEPOINT})
    assert completed.file_name == f"{made.instant}_{completed.completion_time}.savepoint"
    assert [name for name in tree(tmp_path) if "savepoint" in name] == [completed.path]  # at no time it was pending
    body = decode_container(aged.table.storage.read(completed.path), "savepoint")
    assert (body["savepointedBy"], body["comments"], body["version"]) == ("me", "", 1)
    assert {p: tuple(h["savepointDataFile"]) for p, h in body["partitionMetadata"].items()} == made.files
    assert create_savepoint(aged.table, made.instant, "another") == made


@indexed
def test_times_that_cannot_be_held(tmp_path: Path, indexed: bool) -> None:
    aged = Aged(tmp_path, indexed)
    aged.live(3)
    with pytest.raises(ConfigError, match="no completed commit"):
        create_savepoint(aged.table, "20240101000000000", "me")
    assert clean(aged.table, TWO) is not None
    with pytest.raises(ConfigError, match="cleaned"):
        create_savepoint(aged.table, aged.moments[0][0], "me")
    create_savepoint(aged.table, aged.moments[-2][0], "me")


@pytest.mark.parametrize("indexed", [False, True])
def test_death_at_every_call(tmp_path: Path, indexed: bool) -> None:
    """Making and deleting can be done again after each; the rows do not care, and the writer goes on."""
    made = Aged(tmp_path / "made", indexed)
    made.live(1)
    instant = made.moments[-1][0]
    count = Counting(made.table.storage)
    table = made.reopen(count)
    count.calls.clear()
    create_savepoint(table, instant, "me")
    first = len(count.calls)
    delete_savepoint(table, instant)
    assert not any("savepoint" in name for name in tree(made.path))
    for at in range(len(count.calls)):
        path = tmp_path / f"{at}"
        shutil.copytree(made.path, path)
        twin = Aged.__new__(Aged)
        twin.__dict__.update(made.__dict__, path=path)
        storage = Dying(storage_at(path), at=-1)
        table = twin.reopen(storage)
        storage.calls.clear()
        storage.at, storage.before = at, bool(at % 2)
        with contextlib.suppress(Killed):
            create_savepoint(table, instant, "me")
            delete_savepoint(table, instant)
            pytest.fail("it lived")
        assert not any(".savepoint." in name for name in tree(path))
        table = twin.reopen()
        if at < first:
            assert create_savepoint(table, instant, "me").files
            assert len(savepoints(table.storage, table.timeline)) == 1
        delete_savepoint(table, instant)
        assert not any("savepoint" in name for name in tree(path))
        twin.check()


@pytest.mark.parametrize("state", [State.INFLIGHT, State.REQUESTED])
def test_the_next_writer_removes_what_hudi_left_of_a_savepoint(tmp_path: Path, state: State) -> None:
    """It died while it made one, or deleted one."""
    aged = Aged(tmp_path, True)
    aged.live(1)
    left = Instant(aged.moments[-1][0], SAVEPOINT, state)
    aged.table.storage.create(left.path, b"")
    kept = create_savepoint(aged.table, aged.moments[0][0], "me")  # the control: a finished one stays
    assert left.path in {finding.path for finding in fsck(aged.table.storage, grace_ms=0).findings}
    assert left in aged.reopen().timeline.pending()
    assert aged.table.rollback_pending() == []
    assert [i for i in aged.table.timeline.pending() if i.action == SAVEPOINT] == []
    assert left.path not in tree(tmp_path)
    assert savepoints(aged.table.storage, aged.reopen().timeline) == [kept]
    aged.live(1)
    aged.check()
    assert [f for f in fsck(aged.table.storage, grace_ms=0).findings if f.severity != "info"] == []
