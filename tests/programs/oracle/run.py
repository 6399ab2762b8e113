"""A run of the oracle: seeds in rounds, each recording in its ways, failures made small and written down."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.programs.oracle.desk import Author, Written
from tests.programs.oracle.forms import Form
from tests.programs.oracle.generate.maker import Maker
from tests.programs.oracle.play import WAYS
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.services import Lost, Round, Services
from tests.programs.oracle.shrink import shrunk
from tests.programs.oracle.trial import Trial, tried

_ROUND = 40


@dataclass
class Report:
    """What a run came to. ``examples``: of each kind of failure the first trials, made small if that was asked for."""

    seeds: int = 0
    statements: int = 0
    refused: int = 0
    trials: int = 0
    failing_seeds: set[str] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Trial]] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)
    excuses: Counter[str] = field(default_factory=Counter)

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        self.trials += 1
        self.excuses += trial.excuses.used
        for kind in dict.fromkeys(failure.kind for failure in trial.failures):
            self.kinds[kind] += 1
            self.failing_seeds.add(trial.recording.name)
            self.examples.setdefault(kind, []).append(trial)

    def lines(self) -> Iterator[str]:
        """The summary for people."""
        yield f"{self.seeds} seeds, {self.statements} statements run, {self.refused} refused by the server"
        yield f"{self.trials} times played, {len(self.failing_seeds)} seeds with a failure"
        for kind, count in self.kinds.most_common():
            names = ", ".join(f"{t.recording.name} {t.way}" for t in self.examples[kind][:3])
            yield f"{count:5} {kind} ({names})"
        for name, count in self.excuses.items():
            yield f"{count:5} cells that the connector does not deliver: {name}"
        for lost in self.lost:
            yield f"the connector could not follow {lost.script.name}: {lost.why}"


@dataclass
class Run:
    """One run with running services.

    Args:
        services: the services.
        ways: in which recordings are played.
        forms: of the records. They take turns.
        kinds: of statements that seeds draw from; None for all.
        kept: where the recordings of failing seeds go.
        say: where lines for people go.
        report: what the run has come to.
        each: in how many of the ways each recording is played; the ways take turns.
    """

    services: Services
    ways: Sequence[str] = WAYS
    forms: Sequence[Form] = tuple(Form)
    kinds: Collection[str] | None = None
    kept: Path | None = None
    say: Callable[[str], None] = lambda line: print(line, flush=True)
    report: Report = field(default_factory=Report)
    each: int = len(WAYS)

    def seeds(self, numbers: Sequence[int]) -> Report:
        """Generated scripts."""
        for first in range(0, len(numbers), _ROUND):
            part = numbers[first : first + _ROUND]
            self.scripts([Maker(number, self.kinds) for number in part])
            self.say(f"seeds {part[0]} to {part[-1]}: {len(self.report.failing_seeds)} with a failure so far")
        return self.report

    def scripts(self, authors: Sequence[Author]) -> Report:
        """Any scripts, in one round."""
        self._count(len(authors), found := self.services.record(authors))
        for recording in found.recordings:
            self._try(recording)
        return self.report

    def shrink(self) -> list[Trial]:
        """The smallest scripts found for one example of each kind of failure."""

        def run(scripts: Sequence[Written]) -> Round:
            whole = Round()
            for first in range(0, len(scripts), _ROUND * 2):
                part = self.services.record(scripts[first : first + _ROUND * 2])
                whole.recordings += part.recordings
            return whole

        chosen = [min(trials, key=_size) for trials in self.report.examples.values()]
        first = [_with_first(trial, kind) for kind, trial in zip(self.report.examples, chosen, strict=True)]
        return shrunk(first, run, self.say)

    def _count(self, seeds: int, found: Round) -> None:
        scripts = [r.script for r in found.recordings] + [lost.script for lost in found.lost]
        self.report.seeds += seeds
        self.report.statements += sum(len(script.statements) for script in scripts)
        self.report.refused += sum(s.error is not None for script in scripts for s in script.statements)
        self.report.lost += found.lost

    def _try(self, recording: Recording) -> None:
        """Each way in the next form: what a way and a form do to each other shows over many seeds."""
        name = zlib.crc32(recording.name.encode())
        first = name // len(self.forms)
        for number in {(first + turn) % len(self.ways) for turn in range(self.each)}:
            trial = tried(recording, self.ways[number], self.forms[(name + number) % len(self.forms)])
            self.report.add(trial)
            if trial.failures and self.kept is not None:
                recording.save(self.kept / f"{recording.name}.json.gz")


def _size(trial: Trial) -> int:
    return len(trial.recording.script.accepted.statements)


def _with_first(trial: Trial, kind: str) -> Trial:
    """The trial with a failure of this kind in front: shrinking keeps that one."""
    failures = sorted(trial.failures, key=lambda failure: failure.kind != kind)
    return replace(trial, failures=tuple(failures))
