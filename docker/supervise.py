#!/usr/bin/env python3
"""Runs a command in a container, ``supervise.py COMMAND...``, and decides by its exit code.

Docker and a Deployment of Kubernetes cannot: both start again after every failure or after none.

70, 75         somebody else took over; an outage that may pass: started again after SUPERVISE_PAUSE seconds (30)
by a signal    killed (out of memory): started again, too
0              the end
any other      waits for a person: the container stays, without the command, so its health check fails and nobody starts
               the command again; restart the container when the cause is gone

SIGTERM and SIGINT end the command in order (binlake finishes the batch in hand); its exit code is that of this program.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator

AGAIN = {70, 75}
#: They stay blocked and are asked for, so that none comes between two steps.
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}


class Supervisor:
    """Runs a command until it succeeds or a signal asks to stop."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._stops = False
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    def run(self, pause_s: float) -> int:
        """The exit code of the last run, as a shell has it: 128 and the number of the signal that killed it."""
        while True:
            code = self._run_once()
            shown = code if code >= 0 else 128 - code
            if code and not self._stops:
                if code < 0 or code in AGAIN:
                    say(f"exit code {shown}: starts again in {pause_s:g} s")
                    self._sleep(time.monotonic() + pause_s)
                else:
                    say(f"exit code {shown} waits for a person; restart the container when the cause is gone")
                    self._sleep(float("inf"))
            if not code or self._stops:
                return shown

    def _run_once(self) -> int:
        pid = os.posix_spawnp(self._command[0], self._command, os.environ, setsigmask=())
        while True:
            for ended, status in ended_children():
                if ended == pid:
                    return os.waitstatus_to_exitcode(status)
            if signal.sigwait(SIGNALS) != signal.SIGCHLD:
                self._stops = True
                os.kill(pid, signal.SIGTERM)

    def _sleep(self, until: float) -> None:
        while not self._stops and (left := until - time.monotonic()) > 0:
            came = signal.sigtimedwait(SIGNALS, min(left, 3600))
            self._stops = came is not None and came.si_signo != signal.SIGCHLD
            list(ended_children())


def ended_children() -> Iterator[tuple[int, int]]:
    """Process and status of each child that has ended. The first process of a container is given orphans, too."""
    try:
        while (child := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            yield child
    except ChildProcessError:  # there is none
        return


def say(text: str) -> None:
    """Print a line on standard error."""
    sys.stderr.write(f"supervise: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(Supervisor(sys.argv[1:]).run(float(os.environ.get("SUPERVISE_PAUSE", "30"))))
