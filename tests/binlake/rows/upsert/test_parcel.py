"""Parcels: bounded blobs that give their rows back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from binlake.rows.upsert import parcel
from binlake.rows.upsert.parcel import Parcel, pack, unpack


def test_one_parcel_gives_its_rows_back() -> None:
    rows = pa.table({"a": [1, None], "b": ["x", "é"]})
    (made,) = pack("shop/t", "p=1", 3, rows)
    assert (made.table, made.partition_path, made.bucket, made.rows) == ("shop/t", "p=1", 3, 2)
    assert unpack([made]).equals(rows)


def test_large_groups_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcel, "MAX_PARCEL_BYTES", 1 << 16)
    rows = pa.table({"n": pa.array(range(10_000), pa.int64()), "text": ["x" * (i % 90) for i in range(10_000)]})
    made = list(pack("t", "", 0, rows))
    assert len(made) > 5
    assert all(len(p.blob) < 2 << 16 for p in made)
    assert sum(p.rows for p in made) == 10_000
    assert unpack(made).equals(rows)


def test_a_slice_is_packed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"n": pa.array(range(100_000), pa.int64())}).slice(500, 10)
    (made,) = pack("t", "", 0, rows)
    assert len(made.blob) < 1000
    assert unpack([made]).column("n").to_pylist() == list(range(500, 510))


def test_one_row_larger_than_a_parcel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcel, "MAX_PARCEL_BYTES", 100)
    rows = pa.table({"text": ["x" * 1000, "y"]})
    assert unpack(list(pack("t", "", 0, rows))).equals(rows)


def test_no_rows_are_one_parcel() -> None:
    (made,) = pack("t", "", 0, pa.table({"n": pa.array([], pa.int64())}))
    assert made.rows == 0
    assert len(unpack([made])) == 0


def test_columns_that_only_some_parcels_have() -> None:
    old, new = pa.table({"n": pa.array([1], pa.int32())}), pa.table({"n": pa.array([2**40], pa.int64()), "more": ["x"]})
    whole = unpack([*pack("t", "", 0, old), *pack("t", "", 0, new)])
    assert whole.to_pylist() == [{"n": 1, "more": None}, {"n": 2**40, "more": "x"}]


def test_file_groups_spread_evenly_over_slots() -> None:
    made = [Parcel(t, f"day={d}", b, 1, b"") for t in ("a", "b") for d in range(50) for b in range(16)]
    counts = np.bincount([p.slot(8) for p in made], minlength=8)
    assert counts.min() > 150
    assert made[0].slot(8) == Parcel("a", "day=0", 0, 99, b"other rows").slot(8)
