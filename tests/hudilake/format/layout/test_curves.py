"""The places of points on curves, against slow ones that take one bit after the other."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.format.layout.curves import hilbert, z_order
from tests.hypothesis_profile import scaled

Point = tuple[int, ...]


def places(curve: npt.NDArray[np.uint64], columns: int, bits: int) -> list[int]:
    """The words of each place as one number."""
    joined = [0] * curve.shape[1]
    for word in curve.tolist():
        joined = [(before << 64) | now for before, now in zip(joined, word, strict=True)]
    spare = 64 * len(curve) - columns * bits
    assert all(place % (1 << spare) == 0 for place in joined)
    return [place >> spare for place in joined]


def as_columns(points: list[Point]) -> npt.NDArray[np.uint64]:
    return np.array(points, dtype=np.uint64).T


def interleaved(point: Point, bits: int) -> int:
    return int("".join(format(number, f"0{bits}b")[level] for level in range(bits) for number in point), 2)


def cells(columns: int, bits: int) -> list[Point]:
    return list(itertools.product(range(1 << bits), repeat=columns))


@st.composite
def points(draw: st.DrawFn) -> tuple[list[Point], int]:
    columns, bits = draw(st.integers(1, 6)), draw(st.integers(1, 64))
    number = st.integers(0, (1 << bits) - 1)
    return draw(st.lists(st.tuples(*[number] * columns), min_size=1, max_size=20)), bits


@settings(max_examples=scaled(500, 40))
@given(points())
def test_bits_are_interleaved(drawn: tuple[list[Point], int]) -> None:
    given_points, bits = drawn
    columns = len(given_points[0])
    curve = z_order(as_columns(given_points), bits)
    assert len(curve) == -(-columns * bits // 64)
    assert places(curve, columns, bits) == [interleaved(point, bits) for point in given_points]


def steps(walk: list[Point]) -> list[int]:
    """How far each cell is from the one before it."""
    return [sum(abs(a - b) for a, b in zip(here, there, strict=True)) for here, there in itertools.pairwise(walk)]


SPACES = [(1, 1), (1, 5), (2, 1), (2, 2), (2, 5), (3, 1), (3, 3), (4, 2), (5, 2), (7, 1)]


@pytest.mark.parametrize(("columns", "bits"), SPACES)
def test_neighbours_on_the_hilbert_curve_are_neighbours_in_space(columns: int, bits: int) -> None:
    every = cells(columns, bits)
    found = places(hilbert(as_columns(every), bits), columns, bits)
    assert sorted(found) == list(range(len(every)))  # each cell once
    assert set(steps([cell for _, cell in sorted(zip(found, every, strict=True))])) == {1}


@pytest.mark.parametrize(("columns", "bits"), [(2, 2), (3, 3)])
def test_control_neighbours_in_z_order_jump(columns: int, bits: int) -> None:
    every = cells(columns, bits)
    found = places(z_order(as_columns(every), bits), columns, bits)
    assert sorted(found) == list(range(len(every)))
    assert max(steps([cell for _, cell in sorted(zip(found, every, strict=True))])) > 1


@settings(max_examples=scaled(200, 20))
@given(st.data())
def test_a_small_cube_anywhere_is_a_stretch_of_the_hilbert_curve(data: st.DataObject) -> None:
    """Also with so many bits that no test can walk the whole curve."""
    columns, lower = data.draw(st.sampled_from([(1, 5), (2, 3), (3, 2), (4, 1), (6, 1)]))
    bits = data.draw(st.integers(lower, 64))
    corner = data.draw(st.tuples(*[st.integers(0, (1 << bits - lower) - 1)] * columns))
    cube = [tuple((c << lower) + n for c, n in zip(corner, cell, strict=True)) for cell in cells(columns, lower)]
    found = sorted(zip(places(hilbert(as_columns(cube), bits), columns, bits), cube, strict=True))
    first = found[0][0]
    assert first % len(cube) == 0
    assert [place for place, _ in found] == list(range(first, first + len(cube)))
    assert set(steps([cell for _, cell in found])) == {1}


def test_no_points() -> None:
    assert z_order(np.empty((3, 0), dtype=np.uint64), 64).shape == (3, 0)
    assert hilbert(np.empty((3, 0), dtype=np.uint64), 64).shape == (3, 0)
