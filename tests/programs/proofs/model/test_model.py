"""The model holds, and breaks without each of its guards, which are those that ``make mutants`` removes."""

from __future__ import annotations

import pytest

from tests.paths import ROOT
from tests.programs.mutants.catalog import MUTANTS
from tests.programs.proofs.model.cases import CASES, GUARDS
from tests.programs.proofs.model.locks import LOCKS
from tests.programs.proofs.model.part import breaks, holds
from tests.programs.proofs.part import Outcome
from tests.selection import first

PAGE = ROOT / "docs" / "model" / "README.md"
#: Guards of the table that are no step of the model, and why: the page says it too.
NOT_MODELLED = {"clock", "config-check", "late-completion", "marker-list", "ranges-out-of-turn"}
#: A guard of the model that no mutant removes.
OWN = {"renewal-margin"}
_FAST = ("row", "halves")
_LAST = "older-writer"


@pytest.mark.parametrize("case", first(2, sorted(CASES, key=lambda case: case.name not in _FAST)), ids=lambda c: c.name)
def test_nothing_breaks(case: object) -> None:
    assert holds(case, "it").outcome is Outcome.EQUAL  # type: ignore[arg-type]


@pytest.mark.parametrize("guard", first(1, sorted(GUARDS, key=lambda guard: guard != "marker")))
def test_it_breaks_without_a_guard(guard: str) -> None:
    assert breaks(GUARDS[guard], guard, "it").outcome is Outcome.EQUAL


@pytest.mark.full
@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_locks(lock: object) -> None:
    assert holds(lock, "it").outcome is Outcome.EQUAL  # type: ignore[arg-type]
    for guard in lock.guards:  # type: ignore[attr-defined]
        assert breaks(lock, guard, "it").outcome is Outcome.EQUAL, guard  # type: ignore[arg-type]


#: In the model, but nothing breaks without it: the page says what stands in for it.
SECOND_LINE = "heartbeat-check"


def test_every_guard_of_the_table_is_in_the_model_or_named_on_the_page() -> None:
    names = [mutant.name for mutant in MUTANTS]
    table = set(names[: names.index(_LAST) + 1]) | {"uncommitted-files", "create-if-absent", "dedupe"}
    modelled = set(GUARDS) | {guard for lock in LOCKS for guard in lock.guards}
    assert modelled - OWN <= set(names)
    assert table == (modelled - OWN) | NOT_MODELLED | {SECOND_LINE}
    text = PAGE.read_text()
    assert [guard for guard in sorted(modelled | NOT_MODELLED | {SECOND_LINE}) if f"`{guard}`" not in text] == []
