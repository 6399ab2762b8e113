"""A compaction that dies before and after every storage call of every step, with commits before and after the recovery;
the same rows as the model, nothing pending, nothing left over.

The control runs the same points over a compaction that publishes before its files are written.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hudilake.metadata.config import MetadataConfig
from hudilake.services.compaction import (
    CompactionConfig,
    complete,
    execute,
    finish_pending,
    prepare,
    run,
    schedule,
)
from hudilake.services.fsck import Repair, fsck
from hudilake.storage.base import Storage
from hudilake.storage.passing import PassingStorage
from hudilake.table.table import HudiTable
from tests.hudilake.failing_storage import Killed, sides
from tests.hudilake.lake import SCHEMA, Model, check, commit, config, deletes, storage_at, upserts
from tests.hudilake.metadata.below import Counting, Dying
from tests.hudilake.services.compaction.steps import die_before_publishing, serially
from tests.hypothesis_profile import usually

CONFIG = CompactionConfig(after_commits=1, tombstone_retention_hours=1)
HISTORY = [upserts(range(6), 100), upserts([1, 2], 200, "new") + deletes([3, 4], 200)]
AFTER = upserts([3], 150, "too late") + upserts([4], 300, "back") + upserts([9], 300)
Step = Callable[[HudiTable], object]


@dataclass(frozen=True, slots=True)
class _Deleting(PassingStorage):
    """Notes what it deletes."""

    deleted: list[str] = field(default_factory=list)
    name: str = ""

    def delete(self, path: str) -> bool:
        self.deleted.append(self.name + path)
        return self.inner.delete(path)

    def sub(self, path: str) -> Storage:
        return _Deleting(self.inner.sub(path), self.deleted, f"{self.name}{path}/")


def right_order(table: HudiTable) -> None:
    """What a compactor does."""
    run(table, CONFIG, serially)


def publish_before_files(table: HudiTable) -> None:
    """The wrong order: complete with the results of files that are then taken away and written once more."""
    requested = schedule(table, CONFIG)
    assert requested is not None
    job = prepare(table, requested, CONFIG)
    made = execute(job, serially)
    for name in [file.base.name for file in made]:
        table.storage.delete(name)
    complete(table, job.instant, made)
    execute(job, serially)


def build(path: Path, indexed: bool) -> None:
    """A table of one bucket with two commits."""
    made = HudiTable.create(
        storage_at(path), config(buckets=1, partitioned=False), SCHEMA, MetadataConfig() if indexed else None
    )
    for changes in HISTORY:
        commit(made, changes)


def recover(storage: Storage) -> None:
    """What the next start does; and a commit of the time between."""
    table = HudiTable.open(storage)
    table.rollback_pending()
    finish_pending(table, CONFIG, serially)


def verify(path: Path) -> None:
    """Before and after one more commit and one more compaction."""
    model = Model()
    for changes in HISTORY:
        model.apply(changes)
    check(path, model)
    table = HudiTable.open(storage_at(path))
    assert table.timeline.pending() == []
    commit(table, AFTER)
    model.apply(AFTER)
    check(path, model)
    run(table, CONFIG, serially)
    check(path, model)
    findings = fsck(table.storage, grace_ms=0).findings
    # Markers of a completed instant harm nobody; a table without a metadata table is told of.
    assert [f for f in findings if f.repair is not Repair.MOVE_MARKERS and f.check != "index"] == []
    if table.config.metadata_partitions:
        assert [f for f in findings if f.check == "index"] == []


def calls(path: Path, step: Step) -> int:
    """How many storage calls the step makes."""
    counting = Counting(storage_at(path))
    step(HudiTable.open(counting))
    return len(counting.calls)


def failing_points(base: Path, step: Step, indexed: bool) -> list[str]:
    """Every point of death at which recovery does not arrive at the model's rows."""
    build(base / "template", indexed)
    shutil.copytree(base / "template", base / "count")
    failures, total = [], calls(base / "count", step)
    for at in range(total):
        for before in sides(at):
            path = base / f"{at}-{before}"
            shutil.copytree(base / "template", path)
            storage = Dying(storage_at(path), at=at, before=before)
            # How many filters of the index a run touches depends on its instant: the last point may not be reached.
            with pytest.raises(Killed) if at < total - 3 else contextlib.suppress(Killed):
                step(HudiTable.open(storage))
            recover(storage_at(path))
            try:
                verify(path)
            except (AssertionError, Exception) as error:  # noqa: BLE001, RUF100 - hudi-rs raises its own
                failures.append(f"{storage.calls[-1]} before={before}: {error}")
            shutil.rmtree(path)
    return failures


@pytest.mark.full
@pytest.mark.parametrize("indexed", usually([True], [False, True]))
def test_death_at_every_call(tmp_path: Path, indexed: bool) -> None:
    assert failing_points(tmp_path, right_order, indexed) == []


@pytest.mark.full
def test_control_a_wrong_order_is_found(tmp_path: Path) -> None:
    assert failing_points(tmp_path, publish_before_files, False) != []


def test_deletions_of_a_recovery_that_are_carried_out_twice_take_nothing_of_what_came_after(tmp_path: Path) -> None:
    """The compaction dies as it publishes; the recovery takes back its entries of the index, and makes them again."""
    build(tmp_path / "table", True)
    table = HudiTable.open(storage_at(tmp_path / "table"))
    requested = schedule(table, CONFIG)
    assert requested is not None
    die_before_publishing(table, prepare(table, requested, CONFIG))
    deleting = _Deleting(storage_at(tmp_path / "table"))
    recover(deleting)
    assert any(".log." in path for path in deleting.deleted)
    for path in deleting.deleted:
        storage_at(tmp_path / "table").delete(path)
    verify(tmp_path / "table")


@pytest.mark.full
def test_death_at_every_call_of_the_recovery(tmp_path: Path) -> None:
    """The compaction dies as it publishes, everything written and noted; then the recovery dies at every call."""
    build(tmp_path / "template", True)
    shutil.copytree(tmp_path / "template", tmp_path / "count")
    total = calls(tmp_path / "count", right_order)
    with pytest.raises(Killed):
        right_order(HudiTable.open(Dying(storage_at(tmp_path / "template"), at=total - 2)))
    shutil.copytree(tmp_path / "template", tmp_path / "again")
    counting = Counting(storage_at(tmp_path / "again"))
    recover(counting)
    for at in range(len(counting.calls)):
        path = tmp_path / str(at)
        shutil.copytree(tmp_path / "template", path)
        with pytest.raises(Killed) if at < len(counting.calls) - 4 else contextlib.suppress(Killed):
            recover(Dying(storage_at(path), at=at, before=bool(at % 2)))
        recover(storage_at(path))
        verify(path)
        shutil.rmtree(path)
