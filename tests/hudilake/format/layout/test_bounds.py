"""Ranges of equal weight, and the numbers of values by them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.format.layout.bounds import Bounds, ColumnBounds, bounds_of, column_bounds
from hudilake.format.layout.direct import comparable
from hudilake.format.layout.order import Order
from hudilake.format.layout.search import ranges_of
from hudilake.format.layout.sketch import heavy, sketch
from hudilake.policies import OrderPolicy
from tests.hypothesis_profile import scaled

Numbers = npt.NDArray[np.int64]


def ranges(values: Sequence[object], weights: Sequence[float] | None, most: int) -> ColumnBounds:
    candidates = comparable(pa.array(values))
    counted = np.array(weights or [1.0] * len(values), dtype=np.float64)
    return column_bounds(pa.chunked_array([candidates]), counted, most)


def numbers(found: ColumnBounds, values: Sequence[object]) -> list[int]:
    return [int(number) for number in found.ranges_of(pa.array(values))]


def test_distinct_values_are_ranges() -> None:
    found = ranges(["b", "a", "c", "b"], None, 8)
    assert found.ranges == 3
    assert numbers(found, ["a", "b", "c", "", "aa", "x"]) == [0, 1, 2, 0, 0, 2]


def test_nulls_are_a_range() -> None:
    found = ranges([3, None, 1, None], None, 8)
    assert found.ranges == 3
    assert numbers(found, [None, 1, 2, 3]) == [0, 1, 1, 2]
    assert numbers(ranges([1, 3], None, 8), [None, 1, 3]) == [0, 0, 1]
    assert numbers(ranges(pa.array([None], pa.int64()), None, 8), pa.array([None, 5], pa.int64())) == [0, 0]


def test_a_value_with_more_than_its_share_is_a_range_of_its_own() -> None:
    values = [*range(100)]
    weights = [1000.0 if value == 50 else 1.0 for value in values]
    found = np.array(numbers(ranges(values, weights, 10), values))
    assert np.bincount(found).max() <= 15
    assert (found == found[50]).sum() == 1


def weights_of(found: Numbers) -> Numbers:
    return np.bincount(found, minlength=1)


@pytest.mark.parametrize("draw", ["uniform", "normal", "lognormal", "two_lumps"])
def test_ranges_hold_equally_many_rows(draw: str) -> None:
    """With samples of partitions that differ in size a hundred times."""
    random = np.random.default_rng(5)
    make: dict[str, Callable[[int], npt.NDArray[np.float64]]] = {
        "uniform": random.random,
        "normal": lambda n: random.normal(size=n),
        "lognormal": lambda n: random.lognormal(sigma=3, size=n),
        "two_lumps": lambda n: random.normal(size=n) * 1e-3 + random.integers(0, 2, n) * 1e9,
    }
    parts = [make[draw](size) for size in (100_000, 30_000, 1_000, 1_000)]
    order = Order(OrderPolicy(columns=("n",)))
    tables = [pa.table({"n": part}) for part in parts]
    sketches = [sketch(order, [table], number, 20_000) for number, table in enumerate(tables)]
    candidates = pa.chunked_array([chunk for one in sketches for chunk in one.sample.column("n").chunks])
    weights = np.repeat([one.weight for one in sketches], [one.sample.num_rows for one in sketches])
    found = column_bounds(candidates, weights, 64)
    held = weights_of(np.concatenate([found.ranges_of(table.column("n").combine_chunks()) for table in tables]))
    assert found.ranges >= 60
    assert held.max() / held.mean() < 1.15
    assert held.min() / held.mean() > 0.5


def uneven(*, again: bool) -> float:
    """The largest share of a range, in mean shares. One partition has nearly all rows, and values that no other has."""
    random = np.random.default_rng(7)
    order = Order(OrderPolicy(columns=("n",)))
    tables = [pa.table({"n": random.integers(0, 1 << 40, 400_000)})]
    tables += [pa.table({"n": random.integers(-(1 << 40), 0, 400)}) for _ in range(100)]
    sketches = [sketch(order, [table], number, 300) for number, table in enumerate(tables)]
    found = heavy(sketches)
    assert list(found) == [0]
    if again:
        sketches[0] = sketch(order, [tables[0]], 0, found[0])
    bounds = bounds_of(order, sketches)
    assert bounds is not None
    every = np.concatenate([bounds.numbers(table)[0] for table in tables]) >> np.uint64(bounds.bits - 9)
    held = weights_of(every.astype(np.int64))
    return float(held.max() / held.mean())


def test_heavy_partitions_are_sampled_again() -> None:
    assert uneven(again=True) < 1.6


def test_control_without_it_ranges_are_uneven() -> None:
    assert uneven(again=False) > 4


def test_weights_count() -> None:
    """A row of the sample that stands for many rows is as good as many rows."""
    values = [*range(1000)]
    weights = [100.0 if value < 500 else 1.0 for value in values]
    found = ranges(values, weights, 20)
    assert np.average(np.array(numbers(found, values)) < found.ranges // 2, weights=weights) == pytest.approx(
        0.5, abs=0.1
    )
    control = np.array(numbers(ranges(values, None, 20), values))
    assert abs(np.average(control < 10, weights=weights) - 0.5) > 0.4


TEXTS = st.text("ab/", max_size=6).map("http://www.".__add__) | st.text("a\0", max_size=3)


@settings(max_examples=scaled(400, 40))
@given(
    st.lists(TEXTS | st.none(), min_size=1, max_size=60),
    st.lists(TEXTS | st.none(), max_size=40),
    st.integers(2, 20),
    st.booleans(),
)
def test_numbers_ascend_with_the_values(
    sample: list[str | None], more: list[str | None], most: int, whole: bool
) -> None:
    """Also those of values that are not in the sample; and as many bounds are not above a value as a number says."""
    if whole:
        sample, more = [len(text or "") for text in sample], [len(text or "") - 5 for text in more]  # type: ignore[misc]
    found = ranges(sample, None, most)
    assert found.ranges <= max(most, 2)
    assert len(set(found.bounds.to_pylist())) == len(found.bounds)
    values = sorted(value for value in [*sample, *more] if value is not None)
    assert numbers(found, values) == sorted(numbers(found, values)) if values else True
    compared = comparable(pa.array(values, pa.int64() if whole else pa.string()))
    slow = [sum(bound <= value for bound in found.bounds.to_pylist()) for value in compared.to_pylist()]
    assert ranges_of(compared, found.bounds).tolist() == slow
    assert set(numbers(found, sample)) == set(range(found.ranges))  # no range is empty
    if len({*sample}) <= most:
        assert found.ranges == len({*sample})


def numbers_of(**columns: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint64], int]:
    order = Order(OrderPolicy(columns=tuple(columns)))
    rows = pa.table(columns)
    bounds = bounds_of(order, [sketch(order, [rows], 0)])
    assert bounds is not None
    return bounds.numbers(rows), bounds.bits


def test_columns_with_few_values_are_spread() -> None:
    """The fill factor: each column uses its highest bits."""
    each = np.arange(6000)
    (many, three, one), bits = numbers_of(many=each, three=each % 3, one=each * 0)
    sixth = (1 << bits) // 6
    assert sorted(set(three.tolist())) == [sixth, 3 * sixth + 2, 5 * sixth + 3]
    assert set(one.tolist()) == {1 << bits - 1}
    assert many.min() < 10
    assert many.max() > (1 << bits) - 10


def test_the_highest_bit_divides_the_rows() -> None:
    """Also if one value has half of them: the others have the other half of the numbers."""
    each = np.arange(6000)
    (skewed,), bits = numbers_of(skewed=np.where(each % 2, -1, each))
    upper = skewed >> np.uint64(bits - 1)
    assert upper.sum() == 3000
    assert len(set(skewed[upper == 1].tolist())) > 2000


def test_a_rare_value_is_apart() -> None:
    each = np.arange(6000)
    (flag,), bits = numbers_of(flag=(each == 7) * 1)
    assert (flag >> np.uint64(bits - 1)).sum() == 1


def test_bounds_travel() -> None:
    order = Order(OrderPolicy(columns=("text",)))
    rows = pa.table({"text": [f"http://www.{n}" for n in range(3000)]})
    bounds = bounds_of(order, [sketch(order, [rows], 0, 100)])
    copy: Bounds = pickle.loads(pickle.dumps(bounds))
    assert bounds is not None
    assert copy.numbers(rows).tolist() == bounds.numbers(rows).tolist()
    assert len(pickle.dumps(bounds)) < 10_000


def test_no_rows_and_no_ranges() -> None:
    order = Order(OrderPolicy(columns=("n",)))
    rows = pa.table({"n": [1, 2]})
    empty = bounds_of(order, [sketch(order, [rows.slice(0, 0)], 0)])
    assert empty is not None
    assert empty.numbers(rows).tolist() == [[1 << 15, 1 << 15]]
    for policy in (OrderPolicy(columns=("n",), curve="linear"), OrderPolicy(columns=("n",), values="direct")):
        assert bounds_of(Order(policy), []) is None


def test_more_columns_have_shorter_numbers() -> None:
    each = np.arange(100)
    assert [numbers_of(**{f"c{c}": each for c in range(count)})[1] for count in (1, 4, 5, 8, 10)] == [16, 16, 12, 8, 8]
