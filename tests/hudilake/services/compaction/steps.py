"""A table, its model, and the steps of a compaction that several tests take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hudilake.format.timeline.instant import Instant
from hudilake.metadata.config import MetadataConfig
from hudilake.services.compaction import (
    CompactedFile,
    CompactionConfig,
    CompactionJob,
    CompactionOperation,
    complete,
    execute,
    schedule,
)
from hudilake.services.fsck import fsck
from hudilake.table.table import HudiTable
from tests.hudilake.lake import SCHEMA, Change, Model, check, commit, config, deletes, storage_at, upserts

ALWAYS = CompactionConfig(after_commits=1, tombstone_retention_hours=0)
FIRST = [upserts(range(10), 100) + upserts(range(3), 100, day="d2"), upserts([1, 2], 90, "late") + deletes([3, 4], 110)]


def serially(
    task: Callable[[CompactionOperation], CompactedFile], operations: Sequence[CompactionOperation]
) -> list[CompactedFile]:
    """The tasks one after the other."""
    return [task(operation) for operation in operations]


def new(path: Path, indexed: bool, history: Sequence[Sequence[Change]] = FIRST) -> tuple[HudiTable, Model]:
    """A table with some commits, and its model."""
    table = HudiTable.create(storage_at(path), config(), SCHEMA, MetadataConfig() if indexed else None)
    model = Model()
    for changes in history:
        add(table, model, changes)
    return table, model


def add(table: HudiTable, model: Model, changes: Sequence[Change]) -> str:
    """One commit to both."""
    model.apply(changes)
    return commit(table, changes)


def scheduled(table: HudiTable, settings: CompactionConfig = ALWAYS) -> Instant:
    """A plan that there must be."""
    requested = schedule(table, settings)
    assert requested is not None
    return requested


def sound(path: Path, model: Model) -> None:
    """Both readers agree with the model, and fsck finds nothing that matters."""
    check(path, model)
    found = [f for f in fsck(storage_at(path)).findings if f.what != "the table has no metadata table"]
    assert [f for f in found if f.check != "timeline"] == []


indexed = pytest.mark.parametrize("indexed", [False, True])


def die_before_publishing(table: HudiTable, job: CompactionJob) -> None:
    """Everything but the completed file is written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudilake.services.compaction.completion.publish", _dies)
        with pytest.raises(KeyboardInterrupt):
            complete(table, job.instant, execute(job, serially))


def _dies(*_: object) -> None:
    raise KeyboardInterrupt
