"""What real processes do to a store is a history of the model; the controls: calls in another order are none."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.hypothesis_profile import scaled
from tests.programs.proofs.model.following import CASTS, followed, recorded, unlike
from tests.programs.proofs.model.lake_works import DEADLY, LAKE_WORKS
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
    if name.startswith("a clean"):
        assert all(any(one.act == "clean" and one.st == "done" for one in trace[-1].shows) for trace in traces)
    if name.startswith("an archival"):
        assert all(any(len(b.shows) < len(a.shows) for a, b in pairwise(trace)) for trace in traces)


@pytest.mark.parametrize("name", first(1, sorted(LAKE_WORKS, key=lambda name: name != "a batch")))
def test_traces_of_a_lakes_works_are_histories_of_the_model(tmp_path: Path, name: str) -> None:
    """Whichever call that changes the table dies or fails."""
    traces, wrong = LAKE_WORKS[name].unlike(tmp_path, step=_STEP)
    assert len(traces) > 1
    assert wrong == []


@pytest.mark.full
@pytest.mark.parametrize("name", ["clean", "archival", "restore"])
def test_a_service_that_does_it_otherwise_is_none(tmp_path: Path, name: str) -> None:
    """The control: what it must not do, and from which of its calls on that shows."""
    work = LAKE_WORKS[name]
    trace = list(work.traces(tmp_path, DEADLY, step=1 << 20)[0])
    trace = [seen for seen in trace if not seen.died]
    broken = {"clean": _cleans_wrongly, "archival": _archives_wrongly, "restore": _restores_wrongly}[name](trace)
    reached = followed(work.case(), [trace, *(wrong for wrong, _ in broken)], of_lake=True)
    assert reached == [len(trace), *(at for _, at in broken)]


#: A trace that is none, and how many of its calls the model makes.
_Broken = tuple[list[Seen], int]


def _cleans_wrongly(trace: list[Seen]) -> list[_Broken]:
    """It deletes the base file that is read; its entry is there before the files are gone; it completes without one."""
    begun = next(n for n, seen in enumerate(trace) if any(one.act == "clean" for one in seen.shows))
    told = next(n for n, seen in enumerate(trace) if any(one.act == "clean" and one.told for one in seen.shows))
    others = [
        replace(seen, shows=tuple(replace(one, bases=frozenset()) for one in trace[begun].shows))
        for seen in trace[begun + 1 : told]
    ]
    early = replace(trace[told], shows=(*trace[begun].shows[:-1], trace[told].shows[-1]))
    return [
        ([*trace[: begun + 1], replace(others[0], soft=False)], begun + 1),
        ([*trace[: begun + 1], early, *trace[begun + 1 :]], begun + 1),
        ([*trace[:told], *trace[told + 1 :]], told),
    ]


def _archives_wrongly(trace: list[Seen]) -> list[_Broken]:
    """The oldest instant stays while later ones leave; one leaves that is read; the newest leaves, too."""
    at = next(n for n in range(1, len(trace)) if len(trace[n].shows) < len(trace[n - 1].shows))
    before, after = trace[at - 1].shows, trace[at].shows
    return [
        ([*trace[:at], replace(trace[at], shows=shows)], at)
        for shows in ((before[0], *after), after[1:], (), (*before[: len(before) - len(after) - 1], *after))
    ]


def _restores_wrongly(trace: list[Seen]) -> list[_Broken]:
    """An older commit is undone and a later one stays; it completes without its inflight file, or leaves one half."""
    inflight = next(n for n, seen in enumerate(trace) if seen.shows[-1].act == "rest" and seen.shows[-1].st == "inf")
    done = next(n for n, seen in enumerate(trace) if seen.shows[-1].act == "rest" and seen.shows[-1].st == "done")
    before, last = trace[inflight].shows, trace[done].shows
    kept = len(last) - 1
    half = replace(before[kept], st="inf")
    return [
        ([*trace[: inflight + 1], replace(trace[done], shows=(*last[:-1], before[-2], last[-1]))], inflight + 1),
        ([*trace[:inflight], *trace[done:]], inflight),
        ([*trace[: inflight + 1], replace(trace[done], shows=(*last[:-1], half, last[-1]))], inflight + 1),
    ]


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
