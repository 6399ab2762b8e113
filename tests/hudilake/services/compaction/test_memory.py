"""What a task holds in memory: the log files and a few row groups, however large the base file is."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.services.compaction import CompactionConfig
from tests.hudilake.services.compaction.made import Slice, row

ROWS, GROUP_ROWS, WIDTH = 60_000, 2_000, 500
CONFIG = CompactionConfig(row_group_rows=GROUP_ROWS, bloom_kind=None, tombstone_retention_hours=0)


@contextmanager
def peak() -> Iterator[Callable[[], int]]:
    """The most bytes that Arrow and Python held together, counted from here."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield lambda: int(pool.max_memory()) + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


def build(path: Path, shuffled: bool) -> Slice:
    """A base file of 30 MB decoded in row groups of 1 MB, and a log of 1 % of its rows."""
    made, chance = Slice.at(path), random.Random(1)
    rows = [row(f"{n:06}", 1, 0, n=n, text=chance.randbytes(WIDTH // 2).hex()) for n in range(ROWS)]
    if shuffled:
        chance.shuffle(rows)
    schema = _schema()
    made.write_base(rows, schema, GROUP_ROWS)
    made.write_log(1, [row(f"{n:06}", 2, 1, n=-n, text="x" * WIDTH) for n in range(0, ROWS + 600, 101)], schema=schema)
    return made


def _schema() -> pa.Schema:
    fields = [pa.field("id", pa.string()), pa.field("n", pa.int64()), pa.field("ord", pa.int64())]
    return pa.schema([*fields, pa.field("text", pa.string())])


@pytest.mark.full
@pytest.mark.parametrize("shuffled", [False, True])
def test_memory_is_bounded_by_the_log_and_row_groups(tmp_path: Path, shuffled: bool) -> None:
    made = build(tmp_path, shuffled)
    with peak() as read_all:
        made.read(_schema())
    with peak() as compacted:
        done = made.compact(CONFIG, _schema())
    assert done.base_stat.num_writes == ROWS + 5
    assert made.base_file(done).metadata.num_row_groups > 25
    assert compacted() < 12_000_000
    assert read_all() > 5 * compacted()  # the control: what a reader holds, who has the whole file in memory
