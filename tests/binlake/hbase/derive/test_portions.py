"""Rows in portions and pieces."""

from __future__ import annotations

import pyarrow as pa
import pytest

from binlake.hbase.derive import run as module
from binlake.hbase.derive.run import in_pieces, portions, with_last


@pytest.mark.parametrize(
    ("rows", "size_bytes", "pieces"), [(0, 0, [0]), (3, 0, [3]), (5, 30, [2, 2, 1]), (2, 999, [1, 1])]
)
def test_pieces(monkeypatch: pytest.MonkeyPatch, rows: int, size_bytes: int, pieces: list[int]) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 10)
    names = pa.array([str(at) for at in range(rows)], pa.string())
    found = list(in_pieces(names, size_bytes))
    assert [len(piece) for piece in found] == pieces
    assert pa.concat_arrays(found) == names


def test_the_last_portion_is_known() -> None:
    names = pa.array(["a", "b", "c"])
    assert [(len(part), last) for part, last in with_last(portions(names, 2))] == [(2, False), (1, True)]
    assert list(with_last(portions(names.slice(3), 2))) == []
