"""``python -m tests.programs.mutants [NAME...]``: run mutants; without names all of them, and write docs/mutants.md."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.programs.mutants.catalog import CONTROL, MUTANTS
from tests.programs.mutants.page import PAGE, page
from tests.programs.mutants.run import copied_tree, run

#: At least this share of the mutants must be noticed.
SHARE = 0.95


def main(names: list[str]) -> int:
    """Run the mutants of these names, or all; 1 if too many survive, or the control does not, 2 for an unknown name."""
    if unknown := sorted({*names} - {mutant.name for mutant in (CONTROL, *MUTANTS)}):
        print(f"there is no mutant {', '.join(unknown)}: docs/mutants.md lists them")
        return 2
    chosen = [mutant for mutant in (CONTROL, *MUTANTS) if not names or mutant.name in names]
    verdicts = []
    with copied_tree() as root:
        for mutant in chosen:
            verdict = run(mutant, Path(root))
            print(f"{mutant.name}: {verdict.by or 'SURVIVED'}", flush=True)
            verdicts.append(verdict)
    judged = [verdict for verdict in verdicts if verdict.mutant is not CONTROL]
    noticed = sum(verdict.noticed for verdict in judged)
    print(f"{noticed} of {len(judged)} mutants were noticed")
    if not names:
        PAGE.write_text(page(judged))
    broken = any(verdict.noticed for verdict in verdicts if verdict.mutant is CONTROL)
    return 1 if broken or noticed < SHARE * len(judged) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
