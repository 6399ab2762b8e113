"""The processes of the soak that are killed: the stream, and the compaction beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from binlake.stream.monitoring.progress import ProgressEvent
from demo.stream_process import StreamProcess
from hudilake.clock import monotonic_s


class Victim(StreamProcess):
    """A stream that is killed rather than stopped, together with its JVM or without it."""

    def __init__(
        self, conf: Path, environment: Mapping[str, str], log: Path, on_progress: Callable[[ProgressEvent], None]
    ) -> None:
        super().__init__(conf, environment, log, on_progress=on_progress)
        self.log = log
        self._family: list[psutil.Process] = []

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def kill(self, *, with_children: bool) -> None:
        """kill -9. Without its children the JVM goes on for a moment, as its tasks do on a cluster."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._family = [*self._family, *children]
        self._process.kill()
        for child in children if with_children else []:
            _kill(child)
        self._process.wait()
        self._reader.join(5)

    def bury(self) -> None:
        """End whatever of it is still there."""
        if self.running:
            self.kill(with_children=True)
        for child in self._family:
            _kill(child)


def _kill(process: psutil.Process) -> None:
    """``psutil`` looks at the start time too, so a number that was given anew is safe."""
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


class CompactorProcess:
    """``binlake compact CONF`` again and again, as from cron.

    ``runs``: how many were started; ``failures``: what those that were not killed could not do.
    """

    def __init__(self, conf: Path, environment: Mapping[str, str], log: Path, pause_s: float = 1.0) -> None:
        self._command = [sys.executable, "-m", "binlake.cli", "compact", str(conf), "--json"]
        self._environment, self._log, self._pause_s = dict(environment), log, pause_s
        self._process: psutil.Popen | None = None
        self._next_s = 0.0
        self.runs = 0
        self.failures: list[str] = []

    def tick(self) -> None:
        """Start it if it is time; note what became of the last one."""
        if self._process is not None and self._process.poll() is not None:
            self._note(self._process.returncode)
            self._process, self._next_s = None, monotonic_s() + self._pause_s
        if self._process is None and monotonic_s() >= self._next_s:
            self.runs += 1
            with self._log.open("wb") as log:
                self._process = psutil.Popen(
                    self._command, stdout=log, stderr=subprocess.STDOUT, env=self._environment, start_new_session=True
                )

    def _note(self, code: int) -> None:
        """A run has ended by itself."""
        said = self._log.read_text(errors="replace")
        told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        trouble = [
            f"{one['table']}: {one['error'] or one['warning']}" for one in told if one["error"] or one["warning"]
        ]
        if code or trouble:
            self.failures.append(f"exit code {code}: {'; '.join(trouble) or said[-2000:].strip()}")

    def kill(self) -> None:
        """kill -9, if it is at work."""
        if self._process is not None and self._process.poll() is None:
            _kill(self._process)
            self._process.wait()
            self._process = None

    def rest(self, timeout_s: float = 120) -> None:
        """Wait until the one under way has ended; ``tick`` goes on."""
        if self._process is not None:
            self._process.wait(timeout_s)
            self._note(self._process.returncode)
            self._process = None
