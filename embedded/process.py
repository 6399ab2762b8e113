"""A service in its own process: started here, stopped cleanly or killed."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hudilake import clock
from hudilake.errors import TransientError

HOST = "127.0.0.1"


class EmbeddedService(ABC):
    """One process at a time, for the duration of the ``with`` block. It may be stopped and started in between.

    Args:
        data_dir: directory for all files of the service.
        log_name: file in ``data_dir`` that its output is appended to.
        start_timeout_s: the most time a start may take, in seconds.
    """

    def __init__(self, data_dir: Path, log_name: str, start_timeout_s: float = 120) -> None:
        self._dir = Path(data_dir).absolute()
        self._log_name = log_name
        self._log_start = 0
        self._timeout_s = start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def start(self) -> None:
        """Start the service and wait until it serves."""

    def stop(self, timeout_s: float = 20) -> None:
        """Stop the service cleanly; kill it after ``timeout_s`` seconds. No effect if it does not run."""
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
        """Kill the service with SIGKILL, as a power failure would. No effect if it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    @property
    def pid(self) -> int | None:
        """The service's process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def log_file(self) -> Path:
        """The output of the service, over all starts on this directory."""
        return self._dir / self._log_name

    def _spawn(
        self, command: Sequence[str], *, directory: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start the process in its own session: Ctrl-C must not end a service that a job still needs."""
        with self.log_file.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=directory,
                env=environment,
            )

    def _serve(self, name: str, command: Sequence[str], serves: Callable[[], bool]) -> None:
        """Start the process and wait until it serves.

        Args:
            name: of the service, for people.
            command: of the process.
            serves: whether it does.

        Raises TransientError with the end of its log."""
        self._spawn(command)
        self._await(name, serves)

    def _await(self, name: str, serves: Callable[[], bool]) -> None:
        """Wait until a process that was started serves. Arguments and errors as ``_serve``."""
        problem = self._wait_until(serves)
        if problem:
            raise TransientError(f"{name} did not start: {problem}", do_next="read its log", log=str(self.log_file))

    def _prepare(self, name: str, command: Sequence[str]) -> None:
        """Run a program that makes the files of a service. Raises TransientError with its last lines."""
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise TransientError(
                f"{name} could not make its files: {last_words(done.stdout)}",
                do_next="use an empty directory",
                path=str(self._dir),
            )

    def _wait_until(self, serves: Callable[[], bool], pause_s: float = 0.1) -> str | None:
        """Wait for the service; None when it serves, else the error text after the process has ended."""
        deadline = clock.monotonic_s() + self._timeout_s
        while not serves():
            ended = self._process.poll() if self._process else None
            if ended is not None or clock.monotonic_s() > deadline:
                self.kill()
                why = f"not serving after {self._timeout_s:g} s" if ended is None else f"exit code {ended}"
                return f"{why}; {last_words(self._printed())}"
            time.sleep(pause_s)
        return None

    def _printed(self) -> str:
        """The output of the service since its last start."""
        with self.log_file.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")


def last_words(log: str) -> str:
    """The last six lines of a log without Java's stack frames, as one line."""
    return "; ".join([line.strip() for line in log.splitlines() if not line.startswith("\tat ")][-6:])


def free_ports(count: int) -> list[int]:
    """Different free ports of the loopback interface: all are held open while they are chosen."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [int(probe.getsockname()[1]) for probe in probes]


def is_free(port: int) -> bool:
    """Whether a server could listen at a port of the loopback interface."""
    with socket.socket() as probe:
        # The same option as a Java server's: a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
