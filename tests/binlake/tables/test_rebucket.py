"""A table moved to other bucket counts while rows are written to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlake.settings.index import IndexSettings
from binlake.tables.lake_table import LakeTable
from binlake.tables.rebucket import rebucket
from hudilake.commit.commit import OvertakenError
from hudilake.format.definition.bucket import bucket_of_file_id
from hudilake.format.definition.bucketing import Bucketing, PartitionBuckets, SimpleBuckets
from hudilake.format.definition.consistent import FIRST_INSTANT
from hudilake.format.definition.hashing_config import hashing_config_path
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.fsck import fsck
from hudilake.services.rebucket.move import MovedUnit
from hudilake.services.rebucket.steps import RebucketResult
from hudilake.services.rebucket.units import RebucketUnit
from hudilake.services.restore import restore
from tests.binlake.rows.upsert.ingest import STREAM, TOPIC, Ingest, rows_of
from tests.binlake.rows.upsert.test_route import row
from tests.model import Change, Delivered, Shape

SHAPE = Shape(("id",))
KEEP = CompactionConfig(tombstone_retention_hours=100)


def in_turn(function: Callable[[Any], Any], planned: Sequence[Any]) -> list[Any]:
    return [function(unit) for unit in planned]


def moved(here: Ingest, wanted: Bucketing, meanwhile: Callable[[], None] | None = None) -> RebucketResult:
    """Move the table as a process of its own does; ``meanwhile`` runs once after the first pass."""
    waiting = [meanwhile] if meanwhile is not None else []

    def work(function: Callable[[RebucketUnit], MovedUnit], planned: Sequence[RebucketUnit]) -> list[MovedUnit]:
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


@pytest.mark.first(4)
@pytest.mark.parametrize("count", [1, 2, 3, 8, 12])
def test_rows_move_once_and_stay_as_they_are(tmp_path: Path, count: int) -> None:
    here = Ingest.at(tmp_path, SHAPE)
    here.run(inserts(0, 40))
    before = stored(here)
    done = moved(here, SimpleBuckets(count))
    assert stored(here) == before
    table = LakeTable.open(here.root.sub(here.rules.path), here.rules)
    assert table.hudi.config.bucket_count == count
    if done.instant is not None:
        assert done.rows == 40
        assert {bucket_of_file_id(piece.file_id) for piece in table.hudi.file_slices()} <= set(range(count))
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
    assert len(here.table.hudi.file_slices()) == 5


def test_a_commit_beside_the_move_is_not_lost(tmp_path: Path) -> None:
    here = Ingest.at(tmp_path, SHAPE)
    here.run(inserts(0, 20))
    done = moved(here, SimpleBuckets(4), lambda: here.run(inserts(20, 20)) and None)
    assert done.again > 0
    here.restart()
    assert ids(here) == list(range(40))
    assert here.table.standing(STREAM)[TOPIC][0] == 40


def test_a_partition_gets_a_count_of_its_own_and_the_others_stay(tmp_path: Path) -> None:
    shape = Shape(("id",), partition="region", partition_name="region")
    here = Ingest.at(tmp_path, shape)
    here.run(inserts(0, 40))
    before = stored(here)
    wanted = PartitionBuckets(2, (("^region=eu$", 6),))
    old = {piece.file_id for piece in here.table.hudi.file_slices() if piece.partition_path != "region=eu"}
    done = moved(here, wanted)
    assert done.instant is not None
    assert stored(here) == before
    here.restart()
    assert here.table.hudi.config.bucketing == wanted
    slices = here.table.hudi.file_slices()
    assert {piece.file_id for piece in slices if piece.partition_path != "region=eu"} == old
    assert {bucket_of_file_id(piece.file_id) for piece in slices if piece.partition_path == "region=eu"} - {0, 1}
    assert here.table.storage.stat(hashing_config_path(done.instant)) is not None
    here.run(inserts(40, 20))
    assert ids(here) == list(range(60))
    moved(here, SimpleBuckets(3))
    assert ids(here) == list(range(60))


def test_a_table_is_made_with_counts_by_partition(tmp_path: Path) -> None:
    here = Ingest.at(tmp_path, Shape(("id",), partition="region", partition_name="region"))
    index = IndexSettings.model_validate({"partition_buckets": {"=eu$": 5}})
    here.rules = replace(here.rules, index=index)
    here.run(inserts(0, 40))
    assert ids(here) == list(range(40))
    here.restart()
    assert here.table.hudi.config.bucketing == PartitionBuckets(2, (("=eu$", 5),))
    said = json.loads(here.table.storage.read(hashing_config_path(FIRST_INSTANT)))
    assert (said["expressions"], said["defaultBucketNumber"]) == ("=eu$,5", 2)
    report = fsck(here.root.sub(here.rules.path))
    assert [f for f in report.findings if f.severity.name == "ERROR"] == []


def test_a_restore_brings_the_old_count_back(tmp_path: Path) -> None:
    here = Ingest.at(tmp_path, SHAPE)
    here.run(inserts(0, 20))
    instant = here.table.hudi.timeline.completed()[-1].requested_time
    moved(here, SimpleBuckets(5))
    here.restart()
    here.run(inserts(20, 5))
    restore(here.table.hudi, instant)
    here.restart()
    here.positions[0] = 20
    assert here.table.hudi.config.bucket_count == 2
    assert ids(here) == list(range(20))
    here.run(inserts(20, 10))
    assert ids(here) == list(range(30))
    moved(here, SimpleBuckets(3))
    here.restart()
    assert ids(here) == list(range(30))
    here.run(inserts(30, 10))
    assert ids(here) == list(range(40))


def test_a_deleted_key_stays_deleted_and_is_not_brought_back_by_late_rows(tmp_path: Path) -> None:
    here = Ingest.at(tmp_path, SHAPE)
    here.run(inserts(0, 20))
    gone = [Delivered(Change(1000 + at, 0, row(at), None), 0, 20 + at) for at in range(10)]
    here.run(gone)
    moved(here, SimpleBuckets(6))
    here.restart()
    late = [Delivered(Change(500 + at, 0, None, row(at)), 0, 30 + at) for at in range(10)]
    here.run(late)
    assert ids(here) == list(range(10, 20))


def test_the_counts_outlive_the_archival_of_the_move(tmp_path: Path) -> None:
    here = Ingest.at(tmp_path, SHAPE)
    here.rules = replace(here.rules, metadata=None)
    here.run(inserts(0, 20))
    done = moved(here, SimpleBuckets(3))
    here.restart()
    for at in range(20, 30):
        here.run(inserts(at, 1))
    table = here.table.hudi
    run(table, CompactionConfig(), in_turn, now=True)
    assert archive(table, ArchivalConfig(2, 3)) > 0
    assert done.instant in {write.requested_time for write in table.timeline.completed()}  # its old files remain
    run(table, CompactionConfig(), in_turn, now=True)
    clean(table, CleaningConfig(commits=1))
    for at in range(30, 36):
        here.run(inserts(at, 1))
    run(table, CompactionConfig(), in_turn, now=True)
    assert archive(table, ArchivalConfig(2, 3)) > 0
    assert done.instant not in {write.requested_time for write in table.timeline.completed()}
    here.restart()
    assert here.table.hudi.config.bucket_count == 3
    assert ids(here) == list(range(36))
    here.run(inserts(36, 4))
    assert ids(here) == list(range(40))
