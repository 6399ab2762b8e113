"""The bench of tables of cells: both sides derive what the batches touched, in a table of a few rows."""

from __future__ import annotations

from pathlib import Path

from bench.cells.__main__ import measure, table
from bench.cells.stream import Stream
from bench.cells.table import Shape


def test_both_sides_derive_the_touched_rows(tmp_path: Path) -> None:
    shape = Shape(3_000, 2)
    stream = Stream(tmp_path, shape)
    taken = list(measure(stream, shape, ((200, 1),)))
    assert [(one.side, one.rows, one.cells, one.derived) for one in taken] == [
        ("store", "cold", 2_000, 1_000),
        ("store", "uniform", 200, 100),
        ("slices", "uniform", 200, 100),
        ("store", "recent", 200, 100),
        ("slices", "recent", 200, 100),
    ]
    assert stream.store.disk_bytes > 3_000 * 7 * 40
    assert len(table(taken).splitlines()) == 2 + len(taken)
