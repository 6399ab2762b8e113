"""A writer and a compactor, each with a table of its own as in two processes, stepped phase by phase in every order."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from pipeline.hudi.services.compaction import (
    CompactionConfig,
    OlderWriterError,
    complete,
    execute,
    finish_pending,
    prepare,
    schedule,
)
from pipeline.hudi.table import HudiTable
from tests.hudi.compaction.steps import new, serially, sound
from tests.hudi.lake import Change, Model, deletes, storage_at, upserts, write

CONFIG = CompactionConfig(after_commits=1, tombstone_retention_hours=1)
BATCHES = [
    upserts([1, 2], 300, "one") + deletes([5], 300) + upserts([90], 300, "new"),
    upserts([2, 5], 250, "late") + deletes([1], 301) + upserts([3], 105, "too late"),
]
PHASES, COMPACTOR_STEPS = 3, 4


def writer(path: Path, model: Model, batches: int) -> Iterator[None]:
    """Batches of three phases: begin, write, commit."""
    table = HudiTable.open(storage_at(path))
    for changes in BATCHES[:batches]:
        table.refresh()
        instant = table.begin()
        yield
        results = write(table, instant, changes)
        yield
        table.refresh()
        table.commit(instant, results)
        model.apply(changes)
        yield


def compactor(path: Path) -> Iterator[None]:
    """Schedule, prepare, execute, complete; a writer that was begun earlier is waited for later."""
    table = HudiTable.open(storage_at(path))
    requested = schedule(table, CONFIG)
    assert requested is not None
    yield
    job = prepare(table, requested, CONFIG)
    yield
    made = execute(job, serially)
    yield
    try:
        complete(table, job.instant, made)
    except OlderWriterError:
        assert table.timeline.pending()[0].requested_time < requested.requested_time
    yield


@pytest.mark.parametrize(("indexed", "batches"), [(False, 1), (True, 2)])
def test_every_order(tmp_path: Path, indexed: bool, batches: int) -> None:
    _, first = new(tmp_path / "template", indexed)
    steps, failures = PHASES * batches + COMPACTOR_STEPS, []
    for turns in combinations(range(steps), COMPACTOR_STEPS):
        path = tmp_path / "-".join(map(str, turns))
        shutil.copytree(tmp_path / "template", path)
        model = Model(dict(first.state))
        actors = {True: compactor(path), False: writer(path, model, batches)}
        for step in range(steps):
            next(actors[step in turns])
        table = HudiTable.open(storage_at(path))
        finish_pending(table, CONFIG, serially)
        try:
            sound(path, model)
            assert table.timeline.pending() == []
        except AssertionError as error:
            failures.append(f"{turns}: {error}")
        shutil.rmtree(path)
    assert failures == []


def test_control_a_writer_who_publishes_into_the_past_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order that the table's lock forbids, with the check for it taken away: rows are lost, and seen to be."""
    table, model = new(tmp_path, False)
    other = HudiTable.open(storage_at(tmp_path))
    instant = other.begin()
    changes = [Change(1, 900, "lost")]
    results = write(other, instant, changes)
    taken = other.clock.next()
    table.clock.observe(taken)
    requested = schedule(table, CONFIG)
    assert requested is not None
    job = prepare(table, requested, CONFIG)
    monkeypatch.setattr(other.clock, "next", lambda: taken)
    other.commit(instant, results)
    model.apply(changes)
    monkeypatch.setattr("pipeline.hudi.services.compaction.completion._check_sound", lambda *_: None)
    complete(table, job.instant, execute(job, serially))
    with pytest.raises(AssertionError):
        sound(tmp_path, model)
