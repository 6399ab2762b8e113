"""``TorchSamples``: with PyTorch through its ``DataLoader``, without it by itself."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudilake.errors import ConfigError
from hudilake.query.samples import Position
from hudilake.query.samples.torch_samples import TorchSamples, columns_of
from tests.hudilake.query.samples.feature_table import FeatureTable

try:
    import torch
except ImportError:
    torch = None

KEYS = "abcdefghijkl"


@pytest.fixture
def path(tmp_path: Path) -> str:
    table = FeatureTable(tmp_path / "t", buckets=4)
    table.both(KEYS, KEYS)
    return str(table.path)


def loaded(dataset: TorchSamples, workers: int = 0) -> Iterable[tuple[dict[str, Any], str]]:
    """What a loader gives; without PyTorch what the data set gives."""
    if torch is None:
        return dataset
    loader: Iterable[tuple[dict[str, Any], str]] = torch.utils.data.DataLoader(
        dataset, batch_size=None, num_workers=workers, multiprocessing_context="spawn" if workers else None
    )
    return loader


def test_batches_have_numbers_texts_and_positions(path: str) -> None:
    batches = list(loaded(TorchSamples(path, columns=["request_id", "age", "price"], batch_rows=5)))
    assert sorted(key for columns, _ in batches for key in columns["request_id"]) == list(KEYS)
    assert [np.asarray(columns["age"]).dtype for columns, _ in batches] == [np.int32] * 3
    for number, (_, position) in enumerate(batches):
        rest = TorchSamples(path, columns=["request_id"], since=Position.from_json(position), batch_rows=5)
        assert [c["request_id"] for c, _ in loaded(rest)] == [c["request_id"] for c, _ in batches[number + 1 :]]


def test_workers_share_the_rows(path: str) -> None:
    workers = 2 if torch is not None else 0
    found = [key for columns, _ in loaded(TorchSamples(path), workers) for key in columns["request_id"]]
    assert sorted(found) == list(KEYS)


def test_each_part_goes_on_from_its_own_position(path: str) -> None:
    ends = []
    for index in range(2):
        *_, (_, text) = iter(TorchSamples(path, shard=(index, 2)))
        ends.append(Position.from_json(text))
    for index in range(2):
        assert list(TorchSamples(path, since=ends, shard=(index, 2))) == []
    with pytest.raises(ConfigError, match="no position for shard 0 of 3"):
        list(TorchSamples(path, since=ends, shard=(0, 3)))


def test_columns_become_arrays_or_lists() -> None:
    rows = pa.record_batch(
        {
            "whole": pa.array([1, None], pa.int32()),
            "flag": pa.array([True, False]),
            "cents": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
            "text": pa.array(["a", None]),
        }
    )
    found = columns_of(rows)
    assert np.asarray(found["whole"])[0] == 1
    assert np.isnan(np.asarray(found["whole"])[1])
    assert np.asarray(found["flag"]).tolist() == [True, False]
    assert np.asarray(found["cents"])[0] == 1.25
    assert np.isnan(np.asarray(found["cents"])[1])
    assert found["text"] == ["a", None]
