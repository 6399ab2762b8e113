"""Samples of partitions: every row has the same chance, whatever the batches; heavy partitions are found."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.format.layout.order import Order
from hudilake.format.layout.sketch import LEAST_ROWS, SAMPLE_ROWS, TEXT_BYTES, Sketch, heavy, sample_size, sketch
from hudilake.policies import OrderPolicy
from tests.hypothesis_profile import scaled

_SIGN = 1 << 63


def order_by(*columns: str, seed: int = 0) -> Order:
    return Order(OrderPolicy(columns=columns), seed)


def numbered(rows: int) -> pa.Table:
    return pa.table({"n": np.arange(rows), "other": np.zeros(rows)})


def in_batches(rows: pa.Table, sizes: list[int]) -> Iterator[pa.Table]:
    """Batches of these sizes, the last one again and again."""
    done = 0
    for number in range(rows.num_rows + len(sizes)):
        yield rows.slice(done, sizes[min(number, len(sizes) - 1)])
        done += sizes[min(number, len(sizes) - 1)]
        if done >= rows.num_rows:
            return


def taken(found: Sketch) -> list[int]:
    return [number - _SIGN for number in found.sample.column("n").to_pylist()]


@settings(max_examples=scaled(200, 30))
@given(
    st.integers(0, 3000),
    st.integers(1, 300),
    st.lists(st.integers(0, 500), max_size=5).map(lambda sizes: [*sizes, 97]),
    st.integers(0, 5),
)
def test_the_sample_does_not_depend_on_the_batches(rows: int, size: int, sizes: list[int], seed: int) -> None:
    order, table = order_by("n"), numbered(rows)
    whole = sketch(order, [table], seed, size)
    parts = sketch(order, in_batches(table, sizes), seed, size)
    assert whole.rows == parts.rows == rows
    assert taken(whole) == taken(parts)
    assert len(set(taken(whole))) == len(taken(whole)) == min(rows, size)
    assert set(taken(whole)) <= set(range(rows))
    assert whole.weight == pytest.approx(rows / min(rows, size) if rows else 0)


def test_seeds_choose_other_rows() -> None:
    table = numbered(1000)
    samples = [taken(sketch(order_by("n", seed=seed), [table], number, 50)) for seed in range(3) for number in range(3)]
    assert len({tuple(sample) for sample in samples}) == 9
    assert taken(sketch(order_by("n", seed=2), [table], 1, 50)) == samples[7]


def chi_square(size: int, rounds: int, rows: int, cells: int) -> float:
    """How uneven the taken rows are over ``cells`` parts of the partition."""
    table = numbered(rows)
    every = [taken(sketch(order_by("n"), [table], seed, size)) for seed in range(rounds)]
    counts = np.bincount(np.concatenate(every) * cells // rows, minlength=cells)
    expected = size * rounds / cells
    return float(((counts - expected) ** 2 / expected).sum())


#: Above it are 0.1 % of chi-square values with 19 degrees of freedom.
_LIMIT = 43.8


@pytest.mark.parametrize(("size", "rounds"), [(1, 2000), (10, 500), (400, 50)])
def test_every_row_has_the_same_chance(size: int, rounds: int) -> None:
    assert chi_square(size, rounds, 2000, 20) < _LIMIT


def test_every_place_of_the_sample_has_the_same_chance() -> None:
    """A row that was taken goes to any place: a sample has no order that later batches could show."""
    table = numbered(2000)
    firsts = [taken(sketch(order_by("n"), [table], seed, 10))[0] for seed in range(500)]
    counts = np.bincount(np.array(firsts) * 20 // 2000, minlength=20)
    assert float(((counts - 25) ** 2 / 25).sum()) < _LIMIT


def test_control_the_first_rows_are_no_sample() -> None:
    counts = np.bincount(np.arange(400) * 20 // 2000, minlength=20)
    assert float(((counts - 20) ** 2 / 20).sum()) > _LIMIT


def test_rows_stay_together_and_texts_are_cut() -> None:
    numbers = np.arange(5000)
    table = pa.table({"n": numbers, "text": [f"{n:05}" + "x" * 2000 for n in numbers]})
    found = pickle.loads(pickle.dumps(sketch(order_by("n", "text"), in_batches(table, [700]), 0, 300)))
    texts = found.sample.column("text").to_pylist()
    assert [int(text[:5]) for text in texts] == taken(found)
    assert {len(text) for text in texts} == {TEXT_BYTES}
    assert found.sample.nbytes < 300 * (TEXT_BYTES + 32)


def test_nulls_and_no_rows() -> None:
    found = sketch(order_by("n"), [pa.table({"n": pa.array([None, 7], pa.int64())})], 0, 10)
    assert found.sample.column("n").to_pylist() == [None, 7 + _SIGN]
    for none in ([], [numbered(0)]):
        assert sketch(order_by("n"), none, 0, 10).rows == 0
        assert sketch(order_by("n"), none, 0, 10).weight == 0


def of_sizes(*sizes: int) -> list[Sketch]:
    """Sketches of partitions that have so many rows."""
    most = sample_size(len(sizes))
    return [Sketch(size, pa.table({"n": np.zeros(min(size, most), dtype=np.uint64)})) for size in sizes]


def test_partitions_of_equal_size_are_not_heavy() -> None:
    assert heavy(of_sizes(*[1_000_000] * 8)) == {}
    assert heavy(of_sizes(*[1_000_000] * 7, 1_900_000)) == {}
    assert heavy(of_sizes(100, 0, 5000)) == {}


def test_heavy_partitions_get_samples_of_their_share() -> None:
    found = heavy(of_sizes(9_000_000, *[100_000] * 10))
    assert found == {0: -(-SAMPLE_ROWS * 9 // 10)}
    again = [*of_sizes(9_000_000, *[100_000] * 10)]
    again[0] = Sketch(9_000_000, pa.table({"n": np.zeros(found[0], dtype=np.uint64)}))
    assert heavy(again) == {}


def test_sizes_of_samples() -> None:
    assert sample_size(1) == 2 * SAMPLE_ROWS
    assert sample_size(16) == SAMPLE_ROWS // 8
    assert sample_size(100_000) == LEAST_ROWS
