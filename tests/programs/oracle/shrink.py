"""Makes a failing script small: statements are left out while the failure stays (delta debugging).

A candidate is run as a fresh database. Candidates of all failing scripts share the rounds, because a round costs about
as much as many candidates.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.programs.oracle.desk import Written
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.script import Script
from tests.programs.oracle.services import Round
from tests.programs.oracle.trial import Trial, tried

#: Runs scripts at the source.
Run = Callable[[Sequence[Written]], Round]
#: Plays a recording in a way and a form.
Retry = Callable[[Recording, str, str], Trial]
_ROUNDS = 14


@dataclass
class Small:
    """A failing script on its way down. ``trial``: the failure at its present size. ``parts``: how finely it is cut."""

    trial: Trial
    parts: int = 4
    done: bool = False
    #: Name of a candidate -> the candidate, and the places in ``script`` that it lacks.
    candidates: dict[str, tuple[Script, frozenset[int]]] = field(default_factory=dict)
    #: Places that can each be left out alone: all of them at once is worth a try.
    spare: frozenset[int] = frozenset()

    @property
    def script(self) -> Script:
        """The smallest script so far that fails."""
        return self.trial.recording.script.accepted

    @property
    def kind(self) -> str:
        """What must stay."""
        return self.trial.failures[0].kind

    def cut(self) -> None:
        """Make the next candidates: the script without each of its parts, and without all that seemed to be spare."""
        count = len(self.script.statements)
        self.parts = min(self.parts, count)
        bounds = [part * count // self.parts for part in range(self.parts + 1)]
        without = [frozenset(range(low, high)) for low, high in itertools.pairwise(bounds)]
        self.candidates = {}
        for number, lacking in enumerate([*without, *([self.spare] if self.spare else [])]):
            kept = [at for at in range(count) if at not in lacking]
            candidate = replace(self.script.kept(kept), name=f"{self.script.name} {self.kind} {number}")
            self.candidates[candidate.name] = (candidate, lacking)

    def judge(self, failing: Mapping[str, Trial]) -> None:
        """Go on from the smallest candidate that still fails; ``failing`` has them by name."""
        if failing:
            best = min(failing, key=lambda name: len(failing[name].recording.script.accepted.statements))
            gone = self.candidates[best][1]
            spare = frozenset().union(*(self.candidates[name][1] for name in failing)) - gone
            clean = len(failing[best].recording.script.accepted.statements) == len(self.script.statements) - len(gone)
            left = [at for at in range(len(self.script.statements)) if at not in gone]
            # Places are counted anew; where the server refused more, nothing is known of them.
            self.spare = frozenset(left.index(at) for at in spare) if clean else frozenset()
            self.trial = failing[best]
        elif self.parts >= len(self.script.statements):
            self.done = True
        else:
            self.parts, self.spare = self.parts * 2, frozenset()


def shrunk(
    trials: Sequence[Trial], run: Run, say: Callable[[str], None] = lambda _: None, retry: Retry = tried
) -> list[Trial]:
    """Failing trials with the smallest scripts found that fail in the same way with a failure of the same kind; an
    interrupt ends the search."""
    cases = [Small(trial) for trial in trials]
    with contextlib.suppress(KeyboardInterrupt):
        for number in range(_ROUNDS):
            under_way = [case for case in cases if not case.done]
            if not under_way:
                break
            say(f"shrinking, round {number + 1}: {[len(case.script.statements) for case in under_way]} statements")
            for case in under_way:
                case.cut()
            authors = [Written(script) for case in under_way for script, _ in case.candidates.values()]
            recorded = {recording.name: recording for recording in run(authors).recordings}
            for case in under_way:
                case.judge(_failing(case, recorded, retry))
    return [case.trial for case in cases]


def _failing(case: Small, recorded: Mapping[str, Recording], retry: Retry) -> dict[str, Trial]:
    found = {}
    for name in case.candidates.keys() & recorded.keys():
        trial = retry(recorded[name], case.trial.way, case.trial.form)
        if any(failure.kind == case.kind for failure in trial.failures):
            found[name] = _renamed(trial, case)
    return found


def _renamed(trial: Trial, case: Small) -> Trial:
    """Under the name of the whole script, with the failure that is looked for in front."""
    script = replace(trial.recording.script, name=case.script.name)
    failures = sorted(trial.failures, key=lambda failure: failure.kind != case.kind)
    return replace(trial, recording=replace(trial.recording, script=script), failures=tuple(failures))
