"""The list of mutants does not rot: each change still applies, each test exists, and each mutant is on the page."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.programs.mutants.catalog import CONTROL, MUTANTS
from tests.programs.mutants.mutant import Mutant
from tests.programs.mutants.page import PAGE
from tests.programs.mutants.run import copied_tree, run


@pytest.mark.parametrize("mutant", [CONTROL, *MUTANTS], ids=lambda mutant: mutant.name)
def test_a_mutant_still_applies(mutant: Mutant) -> None:
    changed = mutant.applied(ROOT)
    assert changed != (ROOT / mutant.file).read_text()
    ast.parse(changed)
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text()


def test_names_are_unique_and_there_are_enough() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 40


def test_the_page_has_every_mutant_and_few_survive() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == [mutant.name for mutant in MUTANTS]
    assert sum("**survived**" in row for row in rows) <= len(rows) * 0.05


@pytest.mark.full
def test_a_mutant_is_noticed_in_a_copy_of_the_tree(tmp_path: Path) -> None:
    """One that is quick; and the tree is as before afterwards."""
    mutant = next(m for m in MUTANTS if m.name == "quarantine-path")
    with copied_tree() as root:
        assert run(mutant, root).noticed
        assert (root / mutant.file).read_text() == (ROOT / mutant.file).read_text()
