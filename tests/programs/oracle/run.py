"""A run of the oracle: seeds in rounds, each recording in its ways, failures made small and written down."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.programs.oracle.desk import Author, Written
from tests.programs.oracle.forms import Form
from tests.programs.oracle.generate.maker import Maker
from tests.programs.oracle.play import WAYS
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.report import Report, smallest
from tests.programs.oracle.services import Round, Services
from tests.programs.oracle.shrink import shrunk
from tests.programs.oracle.trial import Trial, tried

_ROUND = 40


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

        return shrunk(smallest(self.report), run, self.say)

    def _count(self, seeds: int, found: Round) -> None:
        scripts = [r.script for r in found.recordings] + [lost.script for lost in found.lost]
        self.report.count(seeds, scripts)
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
