"""A table moved to other bucket counts while rows are written to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pipeline.hudi.actions.commit import OvertakenError
from pipeline.hudi.definition.bucketing import Bucketing, SimpleBuckets
from pipeline.hudi.services.compaction import CompactionConfig
from pipeline.hudi.services.fsck import fsck
from pipeline.hudi.services.rebucket.move import MovedUnit
from pipeline.hudi.services.rebucket.plan import Unit
from pipeline.lake.lake_table import LakeTable
from pipeline.lake.rebucket import Rebucketed, rebucket
from tests.model import Change, Delivered, Shape
from tests.upsert.ingest import STREAM, TOPIC, Ingest, rows_of
from tests.upsert.test_route import row

SHAPE = Shape(("id",))
KEEP = CompactionConfig(tombstone_retention_hours=100)


def in_turn(function: Callable[[Unit], MovedUnit], planned: Sequence[Unit]) -> list[MovedUnit]:
    return [function(unit) for unit in planned]


def moved(here: Ingest, wanted: Bucketing, meanwhile: Callable[[], None] | None = None) -> Rebucketed:
    """Move the table as a process of its own does; ``meanwhile`` runs once after the first pass."""
    waiting = [meanwhile] if meanwhile is not None else []

    def work(function: Callable[[Unit], MovedUnit], planned: Sequence[Unit]) -> list[MovedUnit]:
        done = in_turn(function, planned)
        while waiting:
            waiting.pop()()
        return done

    table = LakeTable.open(here.root.sub(here.rules.path), here.rules)
    return rebucket(table, wanted, STREAM, KEEP, work)


def inserts(first: int, count: int) -> list[Delivered]:
    return [Delivered(Change(8 + at, 0, None, row(at)), 0, at) for at in range(first, first + count)]


def stored(here: Ingest) -> list[str]:
    """Every row with its commit time and sequence number, without the name of its file."""
    return sorted(str({**one, "_hoodie_file_name": None}) for one in rows_of(here.root))


def ids(here: Ingest) -> list[int]:
    return sorted(one["id"] for one in rows_of(here.root))


@pytest.mark.parametrize("count", [1, 2, 3, 8, 12])
def test_rows_move_once_and_stay_as_they_are(tmp_path: Path, count: int) -> None:
    here = Ingest.at(tmp_path, SHAPE)
    here.run(inserts(0, 40))
    before = stored(here)
    done = moved(here, SimpleBuckets(count))
    assert stored(here) == before
    table = LakeTable.open(here.root.sub(here.rules.path), here.rules)
    assert table.table.config.bucket_count == count
    if done.instant is not None:
        assert done.rows == 40
        assert {piece.bucket for piece in table.table.file_slices()} <= set(range(count))
    report = fsck(here.root.sub(here.rules.path))
    assert [f for f in report.findings if f.severity.name == "ERROR"] == []


def test_the_stream_goes_on_with_the_new_count(tmp_path: Path) -> None:
    here = Ingest.at(tmp_path, SHAPE)
    here.run(inserts(0, 20))
    moved(here, SimpleBuckets(5))
    with pytest.raises(OvertakenError, match="bucket counts have changed"):
        here.run(inserts(20, 20))
    here.restart()
    here.run(inserts(20, 20))
    assert ids(here) == list(range(40))
    assert len(here.table.table.file_slices()) == 5


def test_a_commit_beside_the_move_is_not_lost(tmp_path: Path) -> None:
    here = Ingest.at(tmp_path, SHAPE)
    here.run(inserts(0, 20))
    done = moved(here, SimpleBuckets(4), lambda: here.run(inserts(20, 20)) and None)
    assert done.again > 0
    here.restart()
    assert ids(here) == list(range(40))
    assert here.table.standing(STREAM)[TOPIC][0] == 40
