"""``binlake run`` in its own process, with its progress events."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from binlake.stream.monitoring.progress import ProgressEvent
from demo.produce import Offsets
from hudilake.clock import monotonic_s
from hudilake.errors import TransientError

_POLL_S = 0.1
_LAST_WORDS = 3_000


class StreamProcess:
    """A running stream.

    Args:
        conf: its settings file.
        environment: its environment variables.
        log: file for its standard error.
        say: called for every line of its standard error, from another thread; None for no call.
        on_progress: called for every batch from the start on, from a thread of this object.
    """

    def __init__(
        self,
        conf: Path,
        environment: Mapping[str, str],
        log: Path,
        say: Callable[[str], None] | None = None,
        on_progress: Callable[[ProgressEvent], None] | None = None,
    ) -> None:
        self._log = log
        self._on_progress = on_progress or _nobody
        self._say = say
        self._positions: Offsets = {}
        self._errors: dict[str, str] = {}
        # The stream has its own session: Ctrl-C reaches the demo first, which stops the stream cleanly.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "binlake.cli", "run", str(conf), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read_progress, name="stream-progress", daemon=True)
        self._log_reader = threading.Thread(target=self._read_log, name="stream-log", daemon=True)
        self._reader.start()
        self._log_reader.start()

    @property
    def errors(self) -> dict[str, str]:
        """Tables whose last commit failed, with the reason."""
        return {table: error for table, error in self._errors.items() if error}

    @property
    def positions(self) -> Offsets:
        """Up to which offset each partition has been applied."""
        return dict(self._positions)

    def has_reached(self, ends: Offsets) -> bool:
        """Whether every partition has been applied up to these offsets."""
        return all(end == 0 or self._positions.get(place, 0) >= end for place, end in ends.items())

    def wait_until_reached(self, ends: Offsets, timeout_s: float) -> None:
        """Wait for ``has_reached``. Raises TransientError when the stream ends first, or the time is over."""
        deadline = monotonic_s() + timeout_s
        while not self.has_reached(ends):
            self.check()
            if monotonic_s() > deadline:
                behind = {f"{t}/{p}": f"{self._positions.get((t, p), 0)} of {e}" for (t, p), e in ends.items()}
                raise TransientError(
                    f"the stream did not apply everything within {timeout_s:.0f} s", do_next=self._next(), **behind
                )
            time.sleep(_POLL_S)

    def wait_for_first_batch(self, timeout_s: float) -> None:
        """Wait until one batch has been applied. Raises TransientError when the stream ends before, or too late."""
        deadline = monotonic_s() + timeout_s
        while not self._positions:
            self.check()
            if monotonic_s() > deadline:
                raise TransientError(f"the stream made no batch within {timeout_s:.0f} s", do_next=self._next())
            time.sleep(_POLL_S)

    def check(self) -> None:
        """Raise TransientError if the stream has ended by itself."""
        code = self._process.poll()
        if code is not None:
            self._log_reader.join(5)
            raise TransientError(f"the stream ended with exit code {code}: {self._last_words()}", do_next=self._next())

    def stop(self, timeout_s: float = 60) -> int:
        """Ask the stream to finish its batch and end; returns its exit code. It is killed after ``timeout_s``."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(5)
        self._log_reader.join(5)
        return self._process.returncode

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with self._log.open("wb") as log:
            for line in self._process.stderr:
                log.write(line)
                log.flush()
                if self._say is not None:
                    self._say(line.decode(errors="replace").rstrip())

    def _read_progress(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{"):
                self._take(ProgressEvent.from_json(json.loads(line)))

    def _take(self, event: ProgressEvent) -> None:
        for part in event.partitions:
            self._positions[(part.topic, part.partition)] = part.position
        for table in event.tables:
            self._errors[table.table] = table.error or ""
        self._on_progress(event)

    def _next(self) -> str:
        return f"read {self._log} (keep it with --keep DIR)"

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-_LAST_WORDS:].strip()


def _nobody(_: ProgressEvent) -> None:
    """Nobody is told."""
