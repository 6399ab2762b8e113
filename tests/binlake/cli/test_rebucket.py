"""``binlake rebucket``: a table gets other bucket counts while its stream goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudilake.format.definition.bucket import bucket_of_file_id
from hudilake.format.definition.bucketing import PartitionBuckets, SimpleBuckets
from hudilake.services.rebucket.units import wanted_buckets
from tests.binlake.cli.fed_lake import BY_PROCESS, FedLake
from tests.binlake.stream.topic_log import event


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    return FedLake(tmp_path)


def test_the_stream_goes_on_after_its_next_batch_ran_again(lake: FedLake) -> None:
    lake.feed(4)
    told = lake.run("rebucket", "shop.a", "--buckets", "5")
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("shop.a: 3 rows moved, 2 file groups became ")
    lake.check()
    progress = lake.batch()  # routed by the old count: refused, and noted to run again
    assert [t.table for t in progress.tables if t.error] == ["shop.a"]
    lake.catch_up()
    lake.check()
    lake.feed(2)
    lake.check()
    assert lake.table().config.bucket_count == 5
    assert {bucket_of_file_id(piece.file_id) for piece in lake.table().file_slices()} <= set(range(5))
    lake.start()
    lake.feed(1)
    lake.check()


def test_a_stream_whose_batch_has_rows_of_that_table_alone_goes_on(lake: FedLake) -> None:
    lake.feed(4)
    assert lake.run("rebucket", "shop.a", "--buckets", "5").exit_code == 0
    progress = lake.batch(("a",))
    assert [t.table for t in progress.tables if t.error] == ["shop.a"]
    lake.catch_up()
    lake.check()
    lake.feed(2, ("a",))
    lake.check()


def test_a_dry_run_changes_nothing(lake: FedLake) -> None:
    lake.feed(2)
    before = lake.table().timeline.completed()
    told = lake.run("rebucket", "shop.a", "--buckets", "6", "--dry-run")
    assert told.exit_code == 0
    assert told.stdout.startswith("shop.a (no partition): 2 to 6 buckets, 2 file groups with ")
    assert lake.table().timeline.completed() == before
    assert lake.table().timeline.pending() == []


def test_the_same_count_moves_nothing(lake: FedLake) -> None:
    lake.feed(1)
    assert "nothing to move" in lake.run("rebucket", "shop.a", "--buckets", "2").stdout


def test_a_pattern_of_partitions_gets_a_count_of_its_own() -> None:
    first = wanted_buckets(SimpleBuckets(2), 4, "day=2026-*")
    assert first == PartitionBuckets(2, (("^day=2026\\-.*$", 4),))
    assert (first.count("day=2026-01"), first.count("day=2025-01")) == (4, 2)
    second = wanted_buckets(first, 8, "day=2026-01")
    assert (second.count("day=2026-01"), second.count("day=2026-02")) == (8, 4)
    assert wanted_buckets(second, 3, None) == SimpleBuckets(3)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "tables",
    [{}, {"type": "copy_on_write"}, {"merge": {"engine": "partial_update"}}],
    ids=["plain", "copy on write", "merged by the writer"],
)
def test_a_late_event_brings_no_deleted_row_back(tmp_path: Path, tables: dict[str, Any]) -> None:
    """The orders of deleted rows move: in delete blocks, or in files beside the table's."""
    keeping = {"compaction": {**BY_PROCESS, "tombstone_retention_hours": 24}}
    lake = FedLake(tmp_path, {**keeping, **tables})
    lake.feed(6)  # the last one deletes key 2
    told = lake.run("rebucket", "shop.a", "--buckets", "3")
    assert told.exit_code == 0, told.output
    lake.check()
    row = {"id": 2, "owner": "late", "balance": "AfQ=", "region": "eu"}
    lake.log.add("s.shop.a", event("a", "u", 150, row), {"id": 2})
    lake.go_on()
    lake.check()
    lake.feed(1)
    lake.check()


def test_single_buckets_are_split_and_merged(tmp_path: Path) -> None:
    lake = FedLake(tmp_path, {"index": {"type": "consistent_bucket"}})
    lake.feed(4)
    looked = lake.run("rebucket", "shop.a", "--split", "0", "--dry-run")
    assert looked.stdout == "shop.a (no partition): bucket 0 to split\n", looked.output
    assert lake.run("rebucket", "shop.a", "--split", "0").exit_code == 0
    lake.batch()
    lake.catch_up()
    lake.check()
    assert lake.table().config.bucketing.count("") == 3
    assert "buckets 0, 1 to merge" in lake.run("rebucket", "shop.a", "--auto").stdout
    lake.batch()
    lake.catch_up()
    lake.check()
    assert lake.table().config.bucketing.count("") == 2
    assert "nothing to split" in lake.run("rebucket", "shop.a", "--auto").stdout


@pytest.mark.parametrize("options", [[], ["--buckets", "2", "--auto"], ["--merge", "x"], ["--split", "0"]])
def test_other_options_are_refused(lake: FedLake, options: list[str]) -> None:
    lake.feed(1)
    assert lake.run("rebucket", "shop.a", *options).exit_code != 0
