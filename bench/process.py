"""The measured process: starts it, observes it while it works, and ends it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from bench.spec import Spec
from bench.todays.environments import environment_of
from bench.tree import Memory, processes
from hudilake.clock import monotonic_s
from hudilake.errors import LakeError

_RSS_EVERY_S, _PSS_EVERY = 0.2, 3
_TIMEOUT_S = 4 * 3600.0


class WorkerFailed(Exception):
    """The process ended before its work was done; the message has its last output."""


def run_worker(spec: Spec, while_it_works: Callable[[], None] | None = None) -> Memory:
    """Run one spec in its own process; returns its peak memory up to the last batch, without the check of the table.

    ``while_it_works`` is called repeatedly from a thread that does nothing else.
    """
    try:
        environment = environment_of(spec.writer)
    except LakeError as error:
        raise WorkerFailed(str(error)) from error
    spec.place.mkdir(parents=True, exist_ok=True)
    (spec.place / "spec.json").write_text(spec.to_json())
    log = spec.place / "log.txt"
    memory, over = Memory(), threading.Event()
    with log.open("ab") as out:
        command = [sys.executable, "-m", "bench.worker", str(spec.place / "spec.json")]
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
    root = psutil.Process(process.pid)
    aside = threading.Thread(target=_again_and_again, args=(while_it_works, over), daemon=True)
    aside.start()
    deadline, turn = monotonic_s() + _TIMEOUT_S, 0
    try:
        while process.poll() is None:
            if monotonic_s() > deadline:
                raise WorkerFailed(f"no end after {_TIMEOUT_S:g} s; see {log}")
            if not (spec.place / "done").exists():
                memory.sample(root, shared=turn % _PSS_EVERY == 0)
            turn += 1
            over.wait(_RSS_EVERY_S)
    finally:
        over.set()
        if process.poll() is None:
            _end(process, root)
    if process.returncode:
        raise WorkerFailed(f"exit code {process.returncode}: {_last_words(log)}")
    return memory


def _again_and_again(action: Callable[[], None] | None, over: threading.Event) -> None:
    while action is not None and not over.wait(_RSS_EVERY_S):
        action()


def _end(process: subprocess.Popen[bytes], root: psutil.Process) -> None:
    for one in processes(root):
        if one.pid != process.pid and one.is_running():
            one.kill()
    process.kill()
    process.wait()


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if not line.startswith(("\tat ", "    "))]
    return " / ".join(lines[-8:])[-1500:]


def tree_bytes(place: Path, without: str = ".binlake") -> int:
    """The size of all files in a directory in bytes, except those in one of its subdirectories."""
    return sum(f.stat().st_size for f in place.rglob("*") if f.is_file() and without not in f.relative_to(place).parts)
