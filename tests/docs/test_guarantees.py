"""Each promise of the documentation names tests that exist."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

from tests.docs.pages import DOCS
from tests.paths import ROOT

PAGES = ["guarantees.md", "threat-model.md"]
_TEST = re.compile(r"`(tests/[\w./]+)(?:::(\w+))?`")
_NUMBERED = re.compile(r"^\| (\d+) \|", re.MULTILINE)
CASES = 44


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
