"""What opening, planning and reading ask of storage: not more for an older or a larger table."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from hudilake.format.timeline.instant import TIMELINE_PATH
from hudilake.metadata.config import MetadataConfig
from hudilake.read import TableReader
from tests.hudilake.read.lakes import Counting, new_table, row

CONDITION = "n > 3 AND id IN (3, 4)"


@pytest.mark.parametrize("keys", [30, 300])
def test_the_calls_do_not_grow_with_files_and_partitions(tmp_path: Path, keys: int) -> None:
    """The same calls for 3 partitions as for 30: properties, timeline and newest commit to open the table; then the
    metadata table's timeline, its listing and its column statistics (two file groups), and the timeline's end again."""
    table = new_table(tmp_path, buckets=4)
    table.write([row(key, 1, part=f"p{key % (keys // 10)}") for key in range(keys)])
    storage = Counting(table.storage)
    reader = TableReader.open(storage)
    assert len(storage.calls) == 4
    plan = reader.plan(condition="n > 3 AND id < 900", columns=["id"])
    assert plan.steps[0].partitions == keys // 10
    assert (plan.steps[0].files or 0) > keys // 3
    methods = [method for method, _ in storage.calls]
    assert {method: methods.count(method) for method in sorted(set(methods))} == {
        "list": 5,
        "read": 8,
        "read_range": 2,
        "stat": 1,
    }


@pytest.mark.full
def test_the_calls_do_not_grow_with_the_age(tmp_path: Path) -> None:
    """The metadata table is compacted every three or four commits: its seven file groups have at most that many log
    files each, and a base file. The control is the same table by listing, which is given ever more files."""
    config = MetadataConfig(compact_after=3, compact_at_most=4, archive_keep=5, archive_after=8)
    table = new_table(tmp_path, buckets=2, config=config)
    calls, listed = [], []
    for number in range(1, 43):
        table.write([row(key, number) for key in range(number % 3, 30, 3)])
        if number % 7 == 0:
            table.compact()
        storage = Counting(table.storage)
        assert not TableReader.open(storage).plan(condition=CONDITION).warnings
        calls.append(len(storage.calls))
        storage = Counting(table.storage)
        TableReader.open(storage, use_index=False).plan(condition=CONDITION)
        listed.append(sum(count for (_, path), count in zip(_lists(storage), storage.listed, strict=True) if path))
    open_and_list, file_groups, logs, ranges_of_a_base_file = 10, 7, 4, 3
    assert max(calls) <= open_and_list + file_groups * (logs + ranges_of_a_base_file)
    assert median(calls[28:]) <= median(calls[:28]) + logs
    assert listed[-1] > 3 * listed[6]


def _lists(storage: Counting) -> list[tuple[str, str]]:
    return [call for call in storage.calls if call[0] == "list"]


def test_a_refresh_is_one_listing_of_the_timelines_end(tmp_path: Path) -> None:
    """And a plan on what is known already asks for nothing else."""
    table = new_table(tmp_path)
    table.write([row(key, 1) for key in range(30)])
    storage = Counting(table.storage)
    reader = TableReader.open(storage)
    first = reader.plan(condition=CONDITION)
    storage.calls.clear()
    assert not reader.refresh()
    assert storage.calls == [("list", TIMELINE_PATH)]
    storage.calls.clear()
    assert reader.plan(condition="n > 4 AND id IN (3, 5)").steps[0] == first.steps[0]
    assert storage.calls == [("list", TIMELINE_PATH)]
    table.write([row(3, 2)])
    assert reader.refresh()
    assert reader.plan(condition=CONDITION).files == first.files + 1


def test_slices_are_read_one_after_the_other(tmp_path: Path) -> None:
    """Memory is bounded by the largest slice: no file of the next one is read before the last row of this one is
    taken."""
    table = new_table(tmp_path, buckets=4, part=None)
    table.write([row(key, 1) for key in range(40)])
    table.write([row(key, 2) for key in range(40)])
    storage = Counting(table.storage)
    reader = TableReader.open(storage)
    plan = reader.plan(columns=["id"], batch_rows=3)
    owner = {log.path: number for number, item in enumerate(plan.slices) for log in item.log_files}
    owner |= {item.base_file.path: number for number, item in enumerate(plan.slices) if item.base_file is not None}
    assert len(owner) == 12
    storage.calls.clear()
    seen = []
    for batch in reader.batches(plan):
        assert batch.num_rows <= 3
        seen.append({owner[path] for _, path in storage.calls})
    assert [max(numbers) for numbers in seen] == sorted(max(numbers) for numbers in seen)
    assert all(numbers == set(range(max(numbers) + 1)) for numbers in seen)
    assert seen[0] == {0}
    assert seen[-1] == {0, 1, 2, 3}
