"""Runs targets in processes of their own, with limits on time and memory, and keeps what fails.

``python -m tests.programs.fuzz --seconds 600`` fuzzes all targets; ``--target log --seed 5`` one of them. An input that
fails is kept in ``tests/data/fuzz/<target>/``, and each test run reads it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.paths import DATA, ROOT
from tests.programs.fuzz import events, files

CORPUS = DATA / "fuzz"
TARGETS = (*events.TARGETS, *files.TARGETS)
#: The memory of a worker in bytes, and how long it may take beyond its time: for its start, and for one input.
MEMORY, GRACE_S = 6 << 30, 90


@dataclass
class Outcome:
    """What a worker found: the number of inputs, and a text for each failure with the inputs that caused it."""

    targets: tuple[str, ...]
    done: int = 0
    failures: list[str] = field(default_factory=list)
    inputs: list[bytes] = field(default_factory=list)
    failed_target: str = ""


def kept(target: str) -> list[Path]:
    """The corpus of a target."""
    return sorted((CORPUS / target).glob("*"))


def fuzz(targets: Sequence[str], seed: int, seconds: float, count: int = 1 << 60) -> Outcome:
    """Run targets in one process, each for so many seconds or inputs, after its corpus."""
    outcome = Outcome(tuple(targets))
    with tempfile.TemporaryDirectory() as place:
        corpora = {target: [str(path) for path in kept(target)] for target in targets}
        arguments = {"place": place, "targets": corpora, "seed": seed, "seconds": seconds, "count": count}
        try:
            done = subprocess.run(
                [sys.executable, "-X", "faulthandler", "-m", "tests.programs.fuzz.worker", json.dumps(arguments)],
                capture_output=True,
                text=True,
                timeout=seconds * len(targets) + GRACE_S,
                cwd=ROOT,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                preexec_fn=_limited,
                check=False,
            )
        except subprocess.TimeoutExpired:
            outcome.failures.append("the worker hangs")
        else:
            _note(outcome, done)
        if outcome.failures:
            outcome.inputs = _inputs(Path(place))
            target = Path(place) / "target"
            outcome.failed_target = target.read_text() if target.exists() else ""
    return outcome


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _note(outcome: Outcome, done: subprocess.CompletedProcess[str]) -> None:
    for line in done.stdout.splitlines():
        told = json.loads(line) if line.startswith("{") else {}
        outcome.done = told.get("done", outcome.done)
        if "failed" in told:
            outcome.failures.append(told["failed"])
    if done.returncode != 0 or not outcome.done:
        outcome.failures.append(f"the worker died with {done.returncode}: {done.stderr[-1500:]}")


def _inputs(place: Path) -> list[bytes]:
    """The inputs that failed; for a worker that died or hung, those it had in hand."""
    found = [path.read_bytes() for path in sorted(place.glob("failed-*"))]
    if found or not (place / "current").exists():
        return found
    data = (place / "current").read_bytes()
    while data:
        size = int.from_bytes(data[:8], "big")
        found.append(data[8 : 8 + size])
        data = data[8 + size :]
    return found


def keep(outcome: Outcome) -> None:
    """Keep the inputs of a failure in the corpus, by their digests."""
    directory = CORPUS / outcome.failed_target
    directory.mkdir(parents=True, exist_ok=True)
    for data in outcome.inputs:
        (directory / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
