"""A read that leaves out row groups and pages = a read of everything, for random histories of tables with log files
(deletes and late rows among them) and random filters; and the controls: the rule of skipping broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from hudilake.read import Filter, TableReader
from hudilake.read import slice as slice_module
from hudilake.read.inside.contested import NOT_HELD_BACK
from hudilake.read.inside.tally import ReadTally
from tests.hudilake.read import oracle
from tests.hudilake.read.inside.paged import compactions_write_pages
from tests.hudilake.read.lakes import passing
from tests.hudilake.read.test_random_histories import KEYS, NAMES, Step, Table, commits, histories
from tests.hypothesis_profile import scaled

#: A history that begins with a compaction of many keys, filters, and how the base files are laid out.
Drawn = tuple[list[Step], list[Filter], int]


def drawn_tables(filters: int) -> st.SearchStrategy[Drawn]:
    """Tables and so many filters at most."""
    history = st.builds(lambda first, rest: [first, None, *rest], commits(least=6), histories())
    parts = st.lists(oracle.keyed_filters(NAMES, KEYS), min_size=filters // 2, max_size=filters)
    return st.tuples(history, parts, st.integers(0, 99))


class PagedTable(Table):
    """A table whose base files have pages, read without the metadata table: nothing else is skipped."""

    def __init__(self, path: Path, history: list[Step], patch: pytest.MonkeyPatch, seed: int) -> None:
        compactions_write_pages(patch, seed)
        super().__init__(path, history)
        self.tally = ReadTally()

    def pruned(self, part: Filter) -> list[int]:
        """The keys that a read with skipping gives."""
        reader = TableReader.open(self.storage, use_index=False)
        plan = reader.plan(condition=part, columns=["id"])
        return sorted(key for batch in reader.batches(plan, self.tally) for key in batch.column("id").to_pylist())


@settings(
    max_examples=scaled(80),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(drawn=drawn_tables(12))
def test_a_read_that_skips_gives_the_rows_of_one_that_does_not(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, drawn: Drawn
) -> None:
    history, parts, seed = drawn
    table = PagedTable(tmp_path_factory.mktemp("skips") / "t", history, monkeypatch, seed)
    for part in parts:
        assert table.pruned(part) == passing(table.rows, part), part


# -- controls


def logs_are_not_regarded(patch: pytest.MonkeyPatch) -> None:
    """Base rows are skipped by the condition alone: older rows of the log come back."""
    patch.setattr(slice_module, "contested", lambda *args: NOT_HELD_BACK)


#: A broken rule, and the seed of tables among whose first ones is one that shows it.
MUTATIONS = [
    (logs_are_not_regarded, 0),
]


@pytest.mark.full
@pytest.mark.parametrize(("mutate", "seed"), MUTATIONS, ids=[mutate.__name__ for mutate, _ in MUTATIONS])
def test_the_controls_a_broken_rule_is_found_out(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None],
    seed: int,
) -> None:
    mutate(monkeypatch)

    def differs(drawn: Drawn) -> bool:
        table = PagedTable(tmp_path_factory.mktemp("mutant") / "t", drawn[0], monkeypatch, drawn[2])
        return any(table.pruned(part) != passing(table.rows, part) for part in drawn[1])

    found = find(
        drawn_tables(24),
        differs,
        random=Random(seed),
        settings=settings(max_examples=2_000, database=None, phases=[Phase.generate]),
    )
    assert found
