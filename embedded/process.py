"""A service of its own process: started here, ended in order or by force."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path


class ServiceProcess:
    """One process at a time; what it prints goes to the end of ``log_file``."""

    def __init__(self, log_file: Path) -> None:
        self.log_file = log_file
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """With which it ended by itself; None while it runs, or if it was never started."""
        return self._process.poll() if self._process is not None else None

    def start(self, command: Sequence[str]) -> None:
        """Start it, in a session of its own: Ctrl-C reaches the job first, which still needs it to stop in order."""
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def stop(self, timeout_s: float) -> None:
        """End it in order, and by force after ``timeout_s`` seconds. No effect if it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """End it with SIGKILL. No effect if it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
