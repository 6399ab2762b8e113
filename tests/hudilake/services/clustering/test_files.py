"""The new files: their sizes, their bytes at every attempt, and the memory of the task."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hudilake.policies import ClusteringPolicy, FileSizePolicy, OrderPolicy
from hudilake.read.slice import read_table
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.compaction import CompactionConfig
from tests.hudilake.lake import Change, data_files, upserts
from tests.hudilake.services.clustering.made import Made, begun, clustering, laid_out
from tests.hudilake.services.compaction.test_memory import peak

#: Rows of a row group in the memory test.
GROUP_ROWS = 200


def wide(count: int, first: int = 0, width: int = 300) -> list[Change]:
    """Rows whose names do not compress."""
    chance = random.Random(first)
    return [Change(n, 1, chance.randbytes(width // 2).hex()) for n in range(first, first + count)]


def sized(target: int, column: str = "id", group_rows: int = 2_000) -> ClusteringConfig:
    """A clustering by a column into files of a size."""
    sizes = FileSizePolicy(target_bytes=target, small_bytes=1)
    order = OrderPolicy(columns=(column,), curve="linear")
    files = CompactionConfig(row_group_rows=group_rows, bloom_kind=None)
    return ClusteringConfig(ClusteringPolicy(order_by=order, select="all"), sizes, files)


@pytest.mark.parametrize("skewed", [False, True])
def test_files_are_about_equally_large(tmp_path: Path, skewed: bool) -> None:
    """Also if a quarter of the rows has most of the bytes."""
    made = Made.at(tmp_path / "t", "none", partitioned=False)
    for commit in range(4):
        made.commit(wide(1_000, commit * 1_000, 3_000 if skewed and commit == 1 else 300))
    total = sum(piece.base_size for piece in made.table.file_slices())
    (done,) = made.cluster(sized(total // 7))
    sizes = [result.size_bytes for result in done.results]
    assert len(sizes) in (6, 7, 8)
    assert max(sizes) < 1.35 * min(sizes)
    assert 0.75 < sum(sizes) / len(sizes) / (total // 7) < 1.25
    rows = [result.num_upserts for result in done.results]
    assert sum(rows) == 4_000
    if skewed:
        assert max(rows) > 2 * min(rows)  # the control: files of equally many rows would not be equally large
    made.check()


def test_an_attempt_that_is_repeated_writes_the_same_bytes(tmp_path: Path) -> None:
    """Threads read the sources in any order; rows with equal keys stay in the order of the sources."""
    made = Made.at(tmp_path / "t", "none", partitioned=False)
    for commit in range(8):
        made.commit(upserts(range(commit, 400, 8), commit))
    config = clustering("day", sizes=FileSizePolicy(target_bytes=3_000, small_bytes=1))
    instant, units = begun(made.table, config)
    before = set(data_files(made.path))
    contents = []
    for _ in range(4):
        (done,) = laid_out(made.table, instant, config, units)
        new = sorted(set(data_files(made.path)) - before)
        assert new == sorted(result.path for result in done.results)
        contents.append([(made.path / name).read_bytes() for name in new])
    assert len(contents[0]) > 1
    assert all(again == contents[0] for again in contents)


def test_memory_is_bounded_by_row_groups(tmp_path: Path) -> None:
    """18 MB of rows in row groups of 0.6 MB, sorted by a column that has almost all bytes."""
    made = Made.at(tmp_path / "t", "none", partitioned=False)
    for commit in range(6):
        made.commit(wide(1_000, commit * 1_000, 3_000))
    made.cluster(sized(100 << 20, group_rows=GROUP_ROWS))
    config = sized(2 << 20, "name", GROUP_ROWS)
    instant, units = begun(made.table, config)
    with peak() as read_all:
        rows = list(read_table(made.table.storage))
    del rows
    with peak() as used:
        (done,) = laid_out(made.table, instant, config, units)
    assert sum(result.num_upserts for result in done.results) == 6_000
    assert len(done.results) > 3
    assert used() < 6_000_000
    assert read_all() > 3 * used()  # the control: what a reader holds, who has the whole table in memory
