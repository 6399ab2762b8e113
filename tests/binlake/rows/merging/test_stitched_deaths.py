"""A process that writes a stitched table dies at any of its calls: the batch comes again, and the rows are right."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest

from hudilake.errors import LakeError
from tests.binlake.rows.merging.stitched import Event, Model, merging
from tests.binlake.rows.merging.stitched_table import StitchedTable
from tests.binlake.rows.merging.test_stitched_table import judged
from tests.binlake.stream.dying_store import CHANGING, Answer, DyingStore, Fate, Killed
from tests.hypothesis_profile import scaled

FIRST = [Event(0, 1, 10, {"a": 1}), Event(1, 1, 5, {"c": 1}), Event(0, 2, 11, {"a": 2}), Event(2, 3, 9, {"d": "x"})]
SECOND = [Event(1, 1, 6, {"c": 2}), Event(0, 2, 12, None), Event(0, 3, 13, {"a": 3}), Event(2, 4, 10, None)]
LATE = [Event(1, 1, 4, {"c": 0}), Event(0, 2, 11, {"a": 0}), Event(2, 4, 9, {"d": "y"}), Event(0, 4, 1, {"b": "z"})]


def after_death(path: Path, fate: Fate) -> StitchedTable:
    """A new process on a table whose writer died in the second batch."""
    here = StitchedTable.at(path, merging())
    here = replace(here, alone=True)
    here.run(FIRST)
    here.root, whole = DyingStore(here.root, fate), here.root
    here.restart()
    with contextlib.suppress(Killed, LakeError):
        here.run(SECOND)
    fate.settle()
    here.root = whole
    here.restart()
    return here


def changing_calls(path: Path) -> list[int]:
    """The numbers of the calls that change the store."""
    fate = Fate()
    after_death(path, fate)
    return [at for at, (method, _) in enumerate(fate.calls) if method in CHANGING]


@pytest.mark.first(1)
@pytest.mark.parametrize("part", range(2))
def test_a_death_at_any_call(tmp_path: Path, part: int) -> None:
    model = Model(merging())
    model.take([*FIRST, *SECOND, *LATE])
    calls = changing_calls(tmp_path / "whole")
    assert len(calls) > 8
    for at in calls[part :: max(1, 4 // scaled(2))]:
        for answer in (Answer.LOST, Answer.DONE)[part::2]:
            here = after_death(tmp_path / f"{at}-{answer}", Fate(at, answer))
            here.run(SECOND)
            here.run(LATE)
            judged(here, model)
