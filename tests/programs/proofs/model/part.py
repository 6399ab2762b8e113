"""The part of the proofs: every case holds, and breaks without each of its guards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.programs.proofs.model.cases import CASES, GUARDS, LARGE
from tests.programs.proofs.model.checking import explore
from tests.programs.proofs.model.following import CASTS, recorded, unlike
from tests.programs.proofs.model.lake_works import LAKE_WORKS
from tests.programs.proofs.model.locks import LOCKS
from tests.programs.proofs.model.tools import NoToolsError, tlc_jar
from tests.programs.proofs.model.traces import Trace
from tests.programs.proofs.part import Outcome, Task, Verdict

_NAME = "Histories"


class Explored(Protocol):
    """What TLC can be given."""

    def module(self, name: str) -> str:
        """The module."""

    def settings(self, off: Iterable[str] = ()) -> str:
        """TLC's configuration, with guards switched off."""


def holds(case: Explored, source: str) -> Verdict:
    """A verdict on histories in which nothing may break."""
    seen = explore(_NAME, case.module(_NAME), case.settings(), workers=2, heap_mb=6000)
    detail = f"{seen.states:,} states" + (f": {' '.join(seen.steps)}" if seen.broken else "")
    return Verdict(source, Outcome.WRONG if seen.broken else Outcome.EQUAL, seen.broken, detail)


def breaks(case: Explored, guard: str, source: str) -> Verdict:
    """A verdict on histories that must break without a guard."""
    seen = explore(_NAME, case.module(_NAME), case.settings([guard]))
    if not seen.broken:
        return Verdict(source, Outcome.WRONG, "the model holds without the guard", f"{seen.states:,} states")
    return Verdict(source, Outcome.EQUAL, f"breaks {seen.broken}", " ".join(seen.steps))


@dataclass(frozen=True)
class Model:
    """Small cases, guards, and with ``--option model=large`` the large cases too."""

    name: str = "model"
    owner: str = "binlake (checked by TLC)"
    inputs: str = "sets of histories"
    about: str = (
        "All histories of some processes on a table, as the model in `docs/model` allows them. A case is equal if "
        "every invariant holds in every state, and a case without one of its guards is equal if an invariant breaks. "
        "`python -m tests.programs.proofs model --option model=large` adds larger cases. Traces are what the store of "
        "a real table showed after each call of some processes: each must be a history of the model."
    )

    def run(self, task: Task) -> Iterator[Verdict]:
        """Judge the cases one after the other; "not run" without TLC."""
        jobs: list[tuple[str, Explored, str]] = [(case.name, case, "") for case in CASES]
        jobs += [(f"{case.name} without {guard}", case, guard) for guard, case in GUARDS.items()]
        jobs += [(lock.name, lock, "") for lock in LOCKS]
        jobs += [(f"{lock.name} without {guard}", lock, guard) for lock in LOCKS for guard in lock.guards]
        if "large" in task.options:
            jobs += [(case.name, case, "") for case in LARGE]
        for source, case, guard in [job for job in jobs[task.start :] if job[0] not in task.judged][: task.limit]:
            try:
                tlc_jar()
            except NoToolsError as error:
                yield Verdict(source, Outcome.SKIPPED, "TLC is not here", str(error))
                continue
            yield breaks(case, guard, source) if guard else holds(case, source)
        if task.limit is None:
            yield from _traces(task)


def _traces(task: Task) -> Iterator[Verdict]:
    for name, work in LAKE_WORKS.items():
        if (source := f"traces of a lake's work: {name}") not in task.judged:
            with tempfile.TemporaryDirectory() as place:
                traces, wrong = work.unlike(Path(place))
            yield _followed(source, "every call", traces, wrong)
    for name, (cast, runs) in CASTS.items():
        if (source := f"traces of {name}") not in task.judged:
            with tempfile.TemporaryDirectory() as place:
                traces = recorded(cast, Path(place), range(runs))
            yield _followed(source, f"{runs} runs", traces, unlike(cast.case(), traces))


def _followed(source: str, runs: str, traces: Sequence[Trace], wrong: Sequence[str]) -> Verdict:
    detail = f"{runs}, {len(traces)} traces, {sum(map(len, traces))} calls; {'; '.join(wrong)[:1000]}"
    if wrong:
        return Verdict(source, Outcome.WRONG, "no history of the model", detail)
    return Verdict(source, Outcome.EQUAL, "", detail)
