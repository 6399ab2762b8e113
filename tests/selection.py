"""Which tests ``make test`` takes, and how a matrix becomes small enough for it.

``pytest.mark.full`` leaves a test to ``make test-rest``: it takes long, and ``make test`` proves the same promise with
less. ``pytest.mark.first(n)`` leaves all cases of a test but the first ones. Only test modules set these marks
(``tests/docs/test_guarantees.py`` looks for them there), by hand or by ``covered`` and ``first``.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import pytest

from tests.paths import ROOT

Case = tuple[Any, ...]
Group = tuple[tuple[int, Any], ...]


def groups(case: Case, size: int) -> set[Group]:
    """All groups of so many values that a case has, each value with its axis."""
    return set(combinations(enumerate(case), size))


def covering(cases: Sequence[Case], size: int) -> list[Case]:
    """Cases that have every group of so many values that any case has, few and always the same ones.

    Each next case is the one with the most groups that are missing still, the first of several.
    """
    missing = set[Group]().union(*(groups(case, size) for case in cases))
    chosen = []
    while missing:
        best = max(cases, key=lambda case: len(groups(case, size) & missing))
        chosen.append(best)
        missing -= groups(best, size)
    return chosen


def covered(cases: Sequence[Case], size: int) -> list[Any]:
    """Cases as parameters: ``make test`` takes a few that have every value of each axis (``size`` 1), or every pair of
    them (2); ``make test-rest`` takes the others."""
    quick = covering(cases, size)
    return [_param(case, case not in quick) for case in cases]


def first(count: int, cases: Iterable[Any]) -> list[Any]:
    """Parameters of which ``make test`` takes the first ones, and ``make test-rest`` the others: seeds, for example."""
    return [_param(case, number >= count) for number, case in enumerate(cases)]


def _param(case: Any, full: bool) -> Any:  # noqa: ANN401 - any parameter of a test, and pytest's own type
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.full if full else ())


def arguments_of(target: str) -> list[str]:
    """What ``make <target>`` gives to pytest."""
    plain = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "PYTEST_ARGS")}
    asked = ["make", "--dry-run", "--no-print-directory", target]
    done = subprocess.run(asked, cwd=ROOT, env=plain, capture_output=True, text=True, check=True)
    (command,) = (shlex.split(line) for line in done.stdout.splitlines() if " -m pytest " in line)
    return command[command.index("pytest") + 1 :]


def expression_of(target: str) -> str:
    """The marks that ``make <target>`` asks for."""
    arguments = arguments_of(target)
    return arguments[arguments.index("-m") + 1]
