"""Files end where large cells of the curve end, if one does nearby."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.format.layout.cuts import DIFFERENCE, ends, seams
from hudilake.format.layout.order import Order, places
from hudilake.policies import OrderPolicy
from tests.hypothesis_profile import scaled

CURVE, LINEAR = Order(OrderPolicy(columns=("a",))), Order(OrderPolicy(columns=("a",), curve="linear"))
WORD = st.integers(0, (1 << 64) - 1) | st.integers(0, 3)


@settings(max_examples=scaled(200, 30))
@given(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=30), st.integers(1, 2))
def test_seams_are_the_highest_bits_that_change(drawn: list[tuple[int, int]], count: int) -> None:
    keys = pa.table({f"key_{n}": pa.array([row[n] for row in drawn], pa.uint64()) for n in range(count)})
    parts = [keys.slice(0, 3), keys.slice(3)]
    order = places(parts)
    whole = [sum(word << 64 * (count - 1 - n) for n, word in enumerate(drawn[at][:count])) for at in order.tolist()]
    changed = [0, *(before ^ after for before, after in itertools.pairwise(whole))]
    assert seams(CURVE, parts, order).tolist() == [value.bit_length() for value in changed]


def test_a_linear_order_has_no_seams() -> None:
    keys = pa.table({"a": ["x", None, "x", "y", None]})
    assert seams(LINEAR, [keys], places([keys])).tolist() == [0] * 5


def test_a_cut_goes_to_the_nearest_of_the_largest_seams() -> None:
    heavier = np.arange(1, 301)
    marks = np.zeros(300, dtype=np.uint8)
    assert ends(heavier, 3, marks).tolist() == [100, 200]
    marks[[85, 117, 150, 205]] = [4, 4, 9, 1]
    assert ends(heavier, 3, marks).tolist() == [85, 205]


def test_a_file_is_no_more_than_a_quarter_smaller() -> None:
    marks = np.zeros(300, dtype=np.uint8)
    marks[[119, 181, 196]] = [4, 4, 3]
    assert ends(np.arange(1, 301), 3, marks).tolist() == [119, 196]


@settings(max_examples=scaled(200, 30))
@given(st.lists(st.integers(1, 50), min_size=1, max_size=300), st.integers(1, 12), st.integers(0, 1000))
def test_files_are_about_equally_large(weights: list[int], count: int, seed: int) -> None:
    marks = np.random.default_rng(seed).integers(0, 4, len(weights)).astype(np.uint8)
    found = ends(np.cumsum(weights), count, marks).tolist()
    assert len(found) == count - 1
    assert found == sorted(found)
    assert all(0 <= end <= len(weights) for end in found)
    share = sum(weights) / count
    for start, end in zip([0, *found], [*found, len(weights)], strict=True):
        assert abs(sum(weights[start:end]) - share) <= share * DIFFERENCE + 2 * max(weights)


@pytest.mark.parametrize("files", [1, 4])
def test_equal_rows(files: int) -> None:
    keys = pa.table({"key_0": pa.array([7] * 100, pa.uint64())})
    order = places([keys])
    assert not seams(CURVE, [keys], order).any()
    assert ends(np.arange(1.0, 101), files, seams(CURVE, [keys], order)).tolist() == [25, 50, 75][: files - 1]
