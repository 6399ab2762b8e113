"""A process of the service as its parent sees it: started, asked, and started again when it dies."""

from __future__ import annotations

import logging
import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from hudilake.clock import monotonic_s
from hudilake.errors import TransientError
from lakemetastore.service.part import Answer, LogOf, Part, Report, StartReport, run_part

#: How long a process may take to begin; imports alone take seconds on a busy machine.
_START_S = 120.0
_ANSWER_S = 5.0
_KILLED_S = 5.0
#: The pause before a process is started again: doubled for each death that follows a start within ``_SOON_S``.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _SOON_S = 0.1, 10.0, 30.0
_spawn = multiprocessing.get_context("spawn")
_log = logging.getLogger(__name__)


class Child:
    """One process, from several threads.

    Args:
        name: what it is called in logs and metrics.
        make: gives its part, within the process; can be pickled.
        log: the log of the process.
    """

    def __init__(self, name: str, make: Callable[[], Part], log: LogOf) -> None:
        self.name = name
        self.restarts = 0
        self._make, self._log = make, log
        self._lock = threading.Lock()
        self._began, self._pause, self._again_at = 0.0, _FIRST_PAUSE_S, 0.0
        self._asked, self._dead = 0, False
        self._process, self._pipe = self._new()

    @property
    def pid(self) -> int | None:
        """The id of the process; None if it does not run."""
        return self._process.pid if self._process.is_alive() else None

    @property
    def sentinel(self) -> int:
        """What ``multiprocessing.connection.wait`` takes to wait for the end of the process."""
        return self._process.sentinel

    def wait_ready(self) -> None:
        """Wait until it has begun. Raises the error that ended it, TransientError if it died or takes too long."""
        with self._lock:
            message = self._next(_START_S)
        if isinstance(message, StartReport) and message.error is not None:
            raise message.error
        if not isinstance(message, StartReport):
            raise TransientError(
                "a process of the metastore did not begin",
                do_next="look at what it logged, then start again",
                process=self.name,
            )

    def keep(self) -> None:
        """Start the process again if it has died, but not at once if it dies again and again."""
        with self._lock:
            if self._process.is_alive():
                return
            if not self._dead:
                self._note_death()
            if monotonic_s() >= self._again_at:
                self._begin_again()

    def report(self) -> Report:
        """How it is; a process that gives no answer is not well."""
        with self._lock:
            if not self._process.is_alive():
                return Report((f"process {self.name} is down; it is started again",), "")
            self._asked += 1
            try:
                self._pipe.send(self._asked)
            except OSError:
                return Report((f"process {self.name} does not answer",), "")
            until = monotonic_s() + _ANSWER_S
            while (message := self._next(until - monotonic_s())) is not None:
                if isinstance(message, Answer) and message.number == self._asked:
                    return message.report
            return Report((f"process {self.name} does not answer",), "")

    def end(self, seconds: float) -> None:
        """Tell the process to stop; kill it if that takes longer than this."""
        self._process.terminate()
        self._process.join(seconds)
        if self._process.is_alive():
            _log.warning("process %s did not stop, so it is killed", self.name, extra={"event": "process_killed"})
            self._process.kill()
            self._process.join(_KILLED_S)
        self._pipe.close()

    def _new(self) -> tuple[SpawnProcess, Connection]:
        ours, theirs = _spawn.Pipe()
        process = _spawn.Process(
            target=run_part, args=(self._make, theirs, self._log), name=f"metastore-{self.name}", daemon=True
        )
        process.start()
        theirs.close()  # only the process has this end now, so its death is the end of the pipe
        self._began = monotonic_s()
        return process, ours

    def _begin_again(self) -> None:
        try:
            self._process, self._pipe = self._new()
        except OSError as error:  # too many processes, no memory: the next look tries again
            self._again_at = monotonic_s() + _LONGEST_PAUSE_S
            _log.error("process %s cannot be started: %s", self.name, error, extra={"event": "process_not_started"})
            return
        self._dead = False
        self.restarts += 1

    def _next(self, seconds: float) -> object:
        """What the process says next; None if it says nothing for so long, or is gone."""
        try:
            return self._pipe.recv() if self._pipe.poll(max(0.0, seconds)) else None
        except (EOFError, OSError):
            return None

    def _note_death(self) -> None:
        self._dead = True
        message = self._next(0)
        why = str(message.error) if isinstance(message, StartReport) and message.error is not None else ""
        code = self._process.exitcode
        self._pipe.close()
        now = monotonic_s()
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_S) if now - self._began < _SOON_S else _FIRST_PAUSE_S
        self._again_at = now + self._pause
        _log.error(
            "process %s has died (exit code %s) and is started again. %s",
            self.name,
            code,
            why,
            extra={"event": "process_died", "part": self.name, "exit_code": code},
        )
