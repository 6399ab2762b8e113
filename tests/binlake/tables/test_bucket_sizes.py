"""When another number of buckets is proposed, and which."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlake.tables.bucket_sizes import BucketAdvice, bucket_advice
from hudilake.format.files.names import BaseFileName
from hudilake.format.files.view import BaseFile, FileSlice
from tests.hudilake.lake import new_table

PLANNED = 1000


def piece(path: str, size: int) -> FileSlice:
    name = BaseFileName("00000000-0000-0000-0000-000000000000-0", "20260101000000000")
    return FileSlice(path, name.file_id, BaseFile(path, name, size), ())


@pytest.mark.parametrize(
    ("buckets", "sizes", "proposed"),
    [
        (4, [4 * PLANNED], None),
        (4, [8 * PLANNED], None),
        (4, [8 * PLANNED + 4], 16),
        (3, [40 * PLANNED], 48),
        (8, [1], None),
        (64, [PLANNED], 4),
        (64, [4 * PLANNED], None),
        (96, [PLANNED // 2], 3),
    ],
)
def test_a_power_of_two_that_gives_the_planned_size(
    tmp_path: Path, buckets: int, sizes: list[int], proposed: int | None
) -> None:
    found = bucket_advice(new_table(tmp_path, buckets=buckets), [piece("day=a", size) for size in sizes], PLANNED)
    assert (found.proposed if found is not None else None) == proposed


def test_the_partition_with_the_largest_buckets_is_named(tmp_path: Path) -> None:
    slices = [piece("day=a", 10), piece("day=b", 9 * PLANNED)]
    found = bucket_advice(new_table(tmp_path, buckets=2), slices, PLANNED)
    assert found == BucketAdvice("day=b", 2, 4500, 16)
    assert found.command("c.yaml", "shop.t") == 'binlake rebucket c.yaml shop.t --buckets 16 --partition "day=b"'
