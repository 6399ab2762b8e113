"""What fails beside others and passes alone passes in CI, and is named; everything else that fails, fails."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.paths import ROOT

MAKEFILE = """
test:
\t{python} -m pytest -n $(WORKERS) --dist worksteal -p no:hypothesispytest $(PYTEST_ARGS)
WORKERS = 1
"""
#: A worker of pytest-xdist is told its name in the environment; a process alone is not.
TESTS = """
import os
import pytest
import unittest

def test_right():
    pass

@pytest.mark.parametrize("name", {unsteady!r})
def test_beside(name):
    assert "PYTEST_XDIST_WORKER" not in os.environ

@pytest.fixture
def lost():
    yield
    assert "PYTEST_XDIST_WORKER" not in os.environ

@pytest.mark.parametrize("name", {leaving!r})
def test_left(lost, name):
    pass

@pytest.mark.parametrize("name", {wrong!r})
def test_wrong(name):
    assert name == "right"

@pytest.mark.parametrize("name", {skipped!r})
def test_skipped(name):
    assert "PYTEST_XDIST_WORKER" not in os.environ or name == "right"
    raise unittest.SkipTest("alone")
"""


@dataclass(frozen=True)
class Outcome:
    """What a suite ended with, what it printed, and the lines of its unsteady tests."""

    code: int
    text: str
    unsteady: list[str]


def run(place: Path, **cases: list[str]) -> Outcome:
    """Run .ci/suite over a module of tests that has these cases."""
    (place / "Makefile").write_text(MAKEFILE.format(python=sys.executable))
    kinds = {kind: cases.get(kind, []) for kind in ("unsteady", "leaving", "wrong", "skipped")}
    (place / "test_few.py").write_text(TESTS.format(**kinds) + "".join(cases.get("more", [])))
    (place / "logs").mkdir()
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTEST"))}
    command = [str(ROOT / ".ci" / "suite"), "test", "logs"]
    done = subprocess.run(command, cwd=place, env=plain, capture_output=True, text=True, check=False)
    listed = place / "logs" / "unsteady.txt"
    return Outcome(done.returncode, done.stdout, listed.read_text().splitlines() if listed.exists() else [])


def test_a_suite_that_passes_runs_once(tmp_path: Path) -> None:
    outcome = run(tmp_path)
    assert (outcome.code, outcome.unsteady) == (0, [])
    assert "alone" not in outcome.text


def test_what_passes_alone_is_named(tmp_path: Path) -> None:
    names = ["test_beside[a b]", "test_beside['c']", "test_left[d]"]
    outcome = run(tmp_path, unsteady=["a b", "'c'"], leaving=["d"])
    assert outcome.code == 0
    said = "make test: unsteady: failed beside others, passed alone: test_few.py::"
    assert outcome.unsteady == [said + name for name in names]
    assert outcome.text.splitlines()[-3:] == outcome.unsteady


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("cases", "again"),
    [
        pytest.param({"unsteady": ["a"], "wrong": ["b"]}, True, id="one fails alone too"),
        pytest.param({"unsteady": list("abcdef")}, False, id="six fail"),
        pytest.param({"unsteady": ["a"], "skipped": ["b"]}, True, id="one is left out alone"),
        pytest.param({"more": ["import nothing_of_this_name"]}, False, id="a module cannot be imported"),
        pytest.param({"unsteady": ["a"], "more": ["def test_end(): pytest.exit('early')"]}, False, id="it ends early"),
    ],
)
def test_what_else_fails_fails(tmp_path: Path, cases: dict[str, list[str]], again: bool) -> None:
    outcome = run(tmp_path, **cases)
    assert outcome.code != 0
    assert outcome.unsteady == []
    assert ("once more, alone" in outcome.text) == again


@pytest.mark.full
@pytest.mark.parametrize(("end", "closing"), [("1", "1 skipped"), ("9999999999", "1 passed")])
def test_what_would_begin_after_the_end_is_left_out_and_said(end: str, closing: str) -> None:
    test = f"{Path(__file__).relative_to(ROOT)}::{test_a_suite_that_passes_runs_once.__name__}"
    command = [sys.executable, "-m", "pytest", "-n", "0", test]
    environment = os.environ | {"BINLAKE_TEST_ORDER": "a commit", "BINLAKE_TEST_END": end}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert closing in done.stdout.splitlines()[-1]
    # What .ci/run looks for.
    assert ("SKIPPED [1] tests/conftest.py" in done.stdout) == (end == "1")
    assert ("not run: " in done.stdout) == (end == "1")


@pytest.mark.full
@pytest.mark.parametrize(("marks", "case", "taken"), [("full", 1, 0), ("full", 2, 1)])
def test_failed_cases_of_a_test_with_first_are_those_of_their_suite_when_they_run_alone(
    marks: str, case: int, taken: int
) -> None:
    """Which cases come first does not depend on how many of them a run collects."""
    (parameters,) = [mark for mark in vars(test_what_else_fails_fails)["pytestmark"] if mark.name == "parametrize"]
    test = f"{Path(__file__).relative_to(ROOT)}::{test_what_else_fails_fails.__name__}[{parameters.args[1][case].id}]"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-m", marks, test]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines().count(test) == taken, done.stdout
