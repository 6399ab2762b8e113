"""What real processes do to a store is a history of the model; the controls: calls in another order are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.hypothesis_profile import scaled
from tests.programs.proofs.model.following import CASTS, followed, recorded, unlike
from tests.programs.proofs.model.lake_works import LAKE_WORKS
from tests.programs.proofs.model.traces import Seen, Shown
from tests.selection import first

RUNS = scaled(10, least=3)
#: A run at one of so many calls, before and after in turn.
EACH = 7
#: Of the calls of a lake's work, each with two deaths and two errors: so all of these come.
_STEP = 11
_FIRST = ("streams", "crash points of a writer")


@pytest.mark.parametrize("name", first(2, sorted(CASTS, key=lambda name: name not in _FIRST)))
def test_traces_are_histories_of_the_model(tmp_path: Path, name: str) -> None:
    """Whichever call a process dies at, too. With ``unlike`` comes its control."""
    cast, _ = CASTS[name]
    step = EACH if cast.each_call else 1
    traces = recorded(cast, tmp_path, range(0, step * RUNS, step))
    assert unlike(cast.case(), traces) == []
    assert all(any(one.st == "done" for one in trace[-1].shows) for trace in traces)


@pytest.mark.parametrize("name", first(1, sorted(LAKE_WORKS, key=lambda name: name != "a batch")))
def test_traces_of_a_lakes_works_are_histories_of_the_model(tmp_path: Path, name: str) -> None:
    """Whichever call that changes the table dies or fails."""
    traces, wrong = LAKE_WORKS[name].unlike(tmp_path, step=_STEP)
    assert len(traces) > 1
    assert wrong == []


def test_a_death_is_where_it_was(tmp_path: Path) -> None:
    """The control: a commit that a successor rolls back is of a process that has died, and had not before."""
    cast, _ = CASTS["crash points of a writer"]
    traces = recorded(cast, tmp_path, range(6, 13, 2))
    [whole, *_] = [trace for trace in traces if any(one.act == "roll" for seen in trace for one in seen.shows)]
    [death] = [n for n, seen in enumerate(whole) if seen.died]
    begun, rolled = (next(n for n, seen in enumerate(whole) if any(map(is_so, seen.shows))) for is_so in (_open, _roll))
    assert begun < death < rolled
    living = [*whole[:death], *whole[death + 1 :]]
    too_late = [*living[:rolled], whole[death], *living[rolled:]]
    too_early = [*living[:begun], whole[death], *living[begun:]]
    reached = followed(cast.case(), [whole, living, too_late, too_early])
    assert reached == [len(whole), rolled - 1, rolled - 1, rolled]


def _open(one: Shown) -> bool:
    return one.act == "write" and one.st != "done"


def _roll(one: Shown) -> bool:
    return one.act == "roll"


@pytest.mark.full
def test_a_swapped_or_missing_step_is_none(tmp_path: Path) -> None:
    """The control."""
    cast, _ = CASTS["two writers"]
    (trace,) = recorded(cast, tmp_path, [0])
    told = next(n for n, seen in enumerate(trace) if seen.shows[-1].told)
    assert trace[told + 1].shows[-1].st == "done"
    begun = next(n for n, seen in enumerate(trace) if seen.shows[-1].st == "inf")
    broken = [
        [*trace[:told], _with_last(trace[told], st="done", told=False), *trace[told + 1 :]],
        [*trace[:begun], *trace[begun + 1 :]],
        [*trace[:told], *trace[told + 1 :]],
        [*trace[:-1], replace(trace[-1], by=next(seen.by for seen in trace if seen.by != trace[-1].by))],
    ]
    reached = followed(cast.case(), [trace, *broken])
    assert reached == [len(trace), told, begun, told, len(trace) - 1]


def _with_last(seen: Seen, *, st: str, told: bool) -> Seen:
    return replace(seen, shows=(*seen.shows[:-1], replace(seen.shows[-1], st=st, told=told)))
