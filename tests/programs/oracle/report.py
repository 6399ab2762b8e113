"""What a run came to, in numbers and examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.programs.oracle.script import Script
from tests.programs.oracle.services import Lost
from tests.programs.oracle.trial import Trial


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
    named: Counter[str] = field(default_factory=Counter)

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        self.trials += 1
        self.excuses += trial.excuses.used
        self.named.update(trial.named)
        for kind in dict.fromkeys(failure.kind for failure in trial.failures):
            self.kinds[kind] += 1
            self.failing_seeds.add(trial.recording.name)
            self.examples.setdefault(kind, []).append(trial)

    def count(self, seeds: int, scripts: Sequence[Script]) -> None:
        """Count scripts that were run."""
        self.seeds += seeds
        self.statements += sum(len(script.statements) for script in scripts)
        self.refused += sum(s.error is not None for script in scripts for s in script.statements)

    def lines(self) -> Iterator[str]:
        """The summary for people."""
        yield f"{self.seeds} seeds, {self.statements} statements run, {self.refused} refused by the server"
        yield f"{self.trials} times played, {len(self.failing_seeds)} seeds with a failure"
        for kind, count in self.kinds.most_common():
            names = ", ".join(f"{t.recording.name} {t.way}" for t in self.examples[kind][:3])
            yield f"{count:5} {kind} ({names})"
        for name, count in self.excuses.items():
            yield f"{count:5} cells that the connector does not deliver: {name}"
        for name, count in self.named.items():
            yield f"{count:5} differences that the lake names: {name}"
        for lost in self.lost:
            yield f"the connector could not follow {lost.script.name}: {lost.why}"


def smallest(report: Report) -> list[Trial]:
    """The smallest example of each kind of failure."""
    chosen = [min(trials, key=_size) for trials in report.examples.values()]
    return [_with_first(trial, kind) for kind, trial in zip(report.examples, chosen, strict=True)]


def _size(trial: Trial) -> int:
    return len(trial.recording.script.accepted.statements)


def _with_first(trial: Trial, kind: str) -> Trial:
    """The trial with a failure of this kind in front: shrinking keeps that one."""
    failures = sorted(trial.failures, key=lambda failure: failure.kind != kind)
    return replace(trial, failures=tuple(failures))
