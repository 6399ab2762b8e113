"""Pairwise cases have every pair that the whole matrix has, in far fewer cases."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tests.selection import Case, covering, first, pairs, pairwise

MATRICES = [((1, 2), "ab"), ((1, 2, 3), "abcd", (True, False)), (range(6), range(5), range(4), range(3), range(2))]


def lacking(chosen: list[Case], cases: list[Case]) -> set[Any]:
    """The pairs of all cases that no chosen one has."""
    return set().union(*map(pairs, cases)) - set().union(*map(pairs, chosen))


@pytest.mark.parametrize("axes", MATRICES, ids=len)
def test_every_pair_is_covered(axes: tuple[tuple[object, ...], ...]) -> None:
    cases = list(product(*axes))
    chosen = covering(cases)
    assert lacking(chosen, cases) == set()
    assert all(lacking([case for case in chosen if case != left_out], cases) for left_out in chosen[:1])  # the control


def test_a_large_matrix_becomes_small() -> None:
    assert len(list(product(*MATRICES[-1]))) == 720
    assert len(covering(list(product(*MATRICES[-1])))) < 45


def test_cases_that_do_not_exist_are_not_asked_for() -> None:
    cases = [case for case in product((1, 2, 3), "ab", "xy") if case != (1, "a", "x")]
    assert set(covering(cases)) <= set(cases)
    assert lacking(covering(cases), cases) == set()


def test_the_others_are_left_to_the_rest() -> None:
    cases = list(product((1, 2, 3), "ab", "xy"))
    taken = [case.values for case in pairwise(cases) if not case.marks]
    assert taken == [case for case in cases if case in covering(cases)]
    assert 0 < len(taken) < len(cases) == len(pairwise(cases))
    assert [bool(case.marks) for case in first(2, range(4))] == [False, False, True, True]
