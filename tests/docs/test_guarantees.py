"""Each promise of the documentation names tests that exist, and ``make test`` takes one of them at least."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

import pytest

from tests.docs.pages import DOCS
from tests.paths import ROOT
from tests.selection import expression_of

PAGES = ["guarantees.md", "threat-model.md"]
_TEST = re.compile(r"`(tests/[\w./]+)(?:::(\w+))?`")
_NUMBERED = re.compile(r"^\| (\d+) \|", re.MULTILINE)
CASES = 44
#: How a test module sets the mark that leaves a test out of ``make test``.
_LEAVES_OUT = re.compile(r"\bmark\.(?:full|first)\b|from tests\.selection import|\bmark\.trino\b")


def rows(page: str) -> list[list[str]]:
    """The cells of all rows of the page's tables, without the headings."""
    lines = [line for line in (DOCS / page).read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if not set("".join(row)) <= set("- |") and "shown by" not in row]


@lru_cache(maxsize=512)
def functions(file: Path) -> set[str]:
    """The names of all functions and methods of a module."""
    nodes = ast.walk(ast.parse(file.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def missing(text: str) -> list[str]:
    """The tests that the text names and that do not exist."""
    found = []
    for path, name in _TEST.findall(text):
        file = ROOT / path
        if not file.exists() or (name and name not in functions(file)):
            found.append(f"{path}::{name}" if name else path)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_each_named_test_exists(page: str) -> None:
    text = (DOCS / page).read_text()
    assert len(_TEST.findall(text)) > 20
    assert missing(text) == []


def test_each_promise_names_a_test_or_says_that_none_shows_it() -> None:
    silent = [
        row for row in rows("guarantees.md") if not _TEST.search(" ".join(row)) and "not shown" not in " ".join(row)
    ]
    assert silent == []


def test_all_cases_are_there() -> None:
    numbers = [int(number) for number in _NUMBERED.findall((DOCS / "guarantees.md").read_text())]
    assert numbers == list(range(1, CASES + 1))


def test_control_a_test_that_does_not_exist_is_found() -> None:
    text = "`tests/docs/test_guarantees.py::test_none`, `tests/docs/none.py`, `tests/docs/test_guarantees.py::rows`"
    assert missing(text) == ["tests/docs/test_guarantees.py::test_none", "tests/docs/none.py"]


def modules(path: str) -> list[Path]:
    """The test modules that a path of a page means: of a folder, all below it."""
    place = ROOT / path
    return sorted(place.rglob("test_*.py")) if place.is_dir() else [place]


def named(row: list[str]) -> list[tuple[Path, str]]:
    """The modules that a promise names, each with the name of one function or "" for all of them."""
    return [(module, name) for path, name in _TEST.findall(" ".join(row)) for module in modules(path)]


def left_out_in_part(files: Collection[Path]) -> list[Path]:
    """The modules some of whose tests ``make test`` may leave out; it takes the others whole."""
    return [file for file in files if _LEAVES_OUT.search(file.read_text())]


def taken(files: Collection[Path], marks: str) -> set[tuple[Path, str]]:
    """The modules and functions of which pytest takes a case, if it is asked for the marks in these modules."""
    words = ["--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", marks]
    command = [sys.executable, "-m", "pytest", *words, *(str(file) for file in files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), (
        done.stdout[-3000:] + done.stderr[-3000:]
    )
    cases = re.findall(r"^(tests/[\w/]+\.py)::(?:\w+::)*(\w+)", done.stdout, re.MULTILINE)
    return {(ROOT / path, name) for path, name in cases}


def unproved(promises: list[list[str]], marks: str) -> list[str]:
    """The promises of which no test has these marks."""
    parts = left_out_in_part({module for row in promises for module, _ in named(row)})
    cases = taken(parts, marks) if parts else set()
    proved = cases | {(module, "") for module, _ in cases}
    return [
        row[0] if not row[0].isdigit() else row[1]
        for row in promises
        if named(row) and not any(test in proved or test[0] not in parts for test in named(row))
    ]


def test_make_test_proves_each_promise() -> None:
    promises = rows("guarantees.md")
    assert len(promises) > 100
    assert unproved(promises, expression_of("test")) == []


@pytest.mark.full
def test_control_a_promise_whose_tests_are_all_left_out_is_found() -> None:
    in_part, whole = "`tests/test_selection.py`", "`tests/docs/test_pages.py`"
    promises = [["Pairs.", in_part, ""], ["Pages.", f"{in_part}, {whole}", ""]]
    assert unproved(promises, "full") == ["Pairs."]
    assert unproved(promises, "not full") == []


def test_only_test_modules_leave_tests_out() -> None:
    """A mark that comes with an import would not be seen above. Of each test of actors, make test takes one kind."""
    others = [path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_")]
    marking = {str(path.relative_to(ROOT)) for path in left_out_in_part(others)}
    assert marking == {"tests/selection.py", "tests/hudilake/actors/conftest.py"}
