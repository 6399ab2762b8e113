"""A few cases have every value, or every pair of values, that the whole matrix has."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.selection import Case, covered, covering, first, groups

MATRICES = [((1, 2), "ab"), ((1, 2, 3), "abcd", (True, False)), (range(6), range(5), range(4), range(3), range(2))]


def lacking(chosen: list[Case], cases: list[Case], size: int = 2) -> set[Any]:
    """The groups of values of all cases that no chosen one has."""
    had = set[Any]().union(*(groups(case, size) for case in chosen))
    return set[Any]().union(*(groups(case, size) for case in cases)) - had


@pytest.mark.parametrize("axes", MATRICES, ids=len)
@pytest.mark.parametrize("size", [1, 2])
def test_every_group_is_covered(axes: tuple[tuple[object, ...], ...], size: int) -> None:
    cases = list(product(*axes))
    chosen = covering(cases, size)
    assert lacking(chosen, cases, size) == set()
    assert all(lacking([c for c in chosen if c != left_out], cases, size) for left_out in chosen[:1])  # the control


def test_a_large_matrix_becomes_small() -> None:
    assert len(list(product(*MATRICES[-1]))) == 720
    assert len(covering(list(product(*MATRICES[-1])), 2)) < 45
    assert len(covering(list(product(*MATRICES[-1])), 1)) == 6


def test_cases_that_do_not_exist_are_not_asked_for() -> None:
    cases = [case for case in product((1, 2, 3), "ab", "xy") if case != (1, "a", "x")]
    assert set(covering(cases, 2)) <= set(cases)
    assert lacking(covering(cases, 2), cases) == set()


def test_the_others_are_left_to_the_rest() -> None:
    cases = list(product((1, 2, 3), "ab", "xy"))
    taken = [case.values for case in covered(cases, 2) if not case.marks]
    assert taken == [case for case in cases if case in covering(cases, 2)]
    assert 0 < len(taken) < len(cases) == len(covered(cases, 2))
    assert [bool(case.marks) for case in first(2, range(4))] == [False, False, True, True]
