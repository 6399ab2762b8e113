"""A terminal: one bash that keeps its directory, its variables and what it has activated, with what it prints."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from hudilake.clock import monotonic_s

_LOOK_S = 0.1


class Shell:
    """Commands that are typed one after the other. A context manager.

    Args:
        directory: where it begins.
        environment: its variables.
        limit_s: the longest that a command may take, in seconds.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str], limit_s: float) -> None:
        self._limit_s = limit_s
        self.printed: list[str] = []
        self._typed = 0
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
            start_new_session=True,
        )
        threading.Thread(target=self._read, name="shell", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def run(self, line: str) -> tuple[int, list[str]]:
        """Type a line and wait for its end; exit code and output. Raises TimeoutError."""
        self._typed += 1
        mark, first = f"--- {self._typed} ended with ", len(self.printed)
        # A line of its own, after an output that does not end its last line, as curl's.
        self._type(f"{line}\nprintf '\\n%s%s\\n' '{mark}' \"$?\"")
        end = self.wait_for(mark, first)
        return int(self.printed[end].removeprefix(mark)), [text for text in self.printed[first:end] if text]

    def start(self, line: str) -> int:
        """Type a command that goes on beside those that follow; its process id."""
        code, printed = self.run(f'( exec {line}\n) & echo "pid $!"')  # the line may end with a comment
        assert code == 0
        return int(next(text for text in printed if text.startswith("pid ")).removeprefix("pid "))

    def stop(self, pid: int) -> int:
        """Send SIGTERM to a command that was started, and wait for its end; its exit code."""
        return self.run(f"kill -TERM {pid}; wait {pid}")[0]

    def wait_for(self, beginning: str, first: int = 0) -> int:
        """The number of the line that begins so, from a line on; waits for it. Raises TimeoutError."""
        deadline = monotonic_s() + self._limit_s
        while True:
            for number, text in enumerate(self.printed[first:], first):
                if text.startswith(beginning):
                    return number
            if monotonic_s() > deadline or self._process.poll() is not None:
                raise TimeoutError(f"no line {beginning!r} within {self._limit_s:.0f} s: {self.printed[first:][-20:]}")
            time.sleep(_LOOK_S)

    def _type(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.printed.append(line.rstrip("\n"))
