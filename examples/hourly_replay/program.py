"""Runs ``binlake``, and says of a failure whether another try may help.

The orchestrator needs no binlake in its own Python: ``BINLAKE`` names the program (by default ``binlake`` on the path).
It stands alone: Airflow's tasks and Dagster's assets both run it.
"""

from __future__ import annotations

import os
import subprocess
import sys

#: Somebody else took over; an outage that may pass. Any other code waits for a person.
RETRY = frozenset({70, 75})


class BinlakeError(Exception):
    """A command of binlake failed: its last line, and its exit code.

    Args:
        words: of the command.
        code: its exit code; below zero, the signal that killed it.
        line: what it said last.
    """

    def __init__(self, words: tuple[str, ...], code: int, line: str) -> None:
        super().__init__(f"binlake {' '.join(words)}: exit code {code}: {line}")
        self.code = code

    @property
    def may_pass(self) -> bool:
        """Whether the same command may succeed later: after 70, 75 and a kill."""
        return self.code in RETRY or self.code < 0


def binlake(*words: str) -> str:
    """What a command prints on standard output; both streams go to this process's output too. Raises BinlakeError."""
    command = [os.environ.get("BINLAKE", "binlake"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout + done.stderr)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise BinlakeError(words, done.returncode, lines[-1] if lines else "it said nothing")
    return done.stdout


def settings() -> str:
    """The settings file of the stream."""
    return os.environ["BINLAKE_SETTINGS"]


def replay(hour: str) -> str:
    """Replay the dumps of one hour (``2026-11-21T05``, UTC), each file once. Without ``--in-process`` Spark runs it."""
    return binlake("replay", settings(), "--hour", hour, "--in-process", "--no-display")


def audit() -> str:
    """Account for every record of every commit. Where the settings have ``source.database``, ``verify`` proves more."""
    return binlake("audit", settings())
