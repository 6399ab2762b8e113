"""The page of the mutants, made of what a run found."""

from __future__ import annotations

from collections.abc import Sequence

from tests.paths import ROOT
from tests.programs.mutants.run import Verdict

PAGE = ROOT / "docs" / "mutants.md"
_HEAD = """# Mutants

Each guard is removed in a copy of the project, and the tests run that should notice. `make mutants` does that and
writes this page. A control that changes nothing survives.

{noticed} of {count} mutants were noticed.

| mutant | guard | what the mutant does | noticed by |
| --- | --- | --- | --- |
"""


def page(verdicts: Sequence[Verdict]) -> str:
    """The text of the page."""
    noticed = sum(verdict.noticed for verdict in verdicts)
    rows = [
        f"| {v.mutant.name} | {v.mutant.guard} | {v.mutant.without} | {f'`{v.by}`' if v.by else '**survived**'} |\n"
        for v in verdicts
    ]
    return _HEAD.format(noticed=noticed, count=len(verdicts)) + "".join(rows)
