"""Containers of binlake's image, by Docker's command line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from binlake.stream.spark.cache import locked
from hudilake import clock
from tests.paths import ROOT
from tests.services.kafka import docker_required
from tests.services.kafka_container import daemon_problem

IMAGE = "binlake:tests"
_BUILD = ROOT / "docker" / "build_binlake.sh"


def image_problem() -> str | None:
    """Why the image cannot be tried here; None when it can, and it is up to date then.

    Raises RuntimeError where it cannot be built, or ``BINLAKE_REQUIRE_DOCKER`` is set (CI) and Docker does not answer.
    """
    if problem := daemon_problem():
        if docker_required():
            raise RuntimeError(f"BINLAKE_REQUIRE_DOCKER is set, but {problem}")
        return problem
    with locked("image-binlake"):
        done = subprocess.run([str(_BUILD), IMAGE], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{_BUILD.name} failed: {done.stderr[-3000:]}")
    sys.stdout.write(done.stdout)
    return None


def docker(*arguments: str, timeout_s: float = 300) -> subprocess.CompletedProcess[str]:
    """Docker's client; the caller looks at the exit code."""
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False, timeout=timeout_s)


def run(arguments: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
    """A container of the image that runs to its end, on this machine's network."""
    return docker("run", "--rm", "--network", "host", *options, IMAGE, *arguments)


@contextmanager
def running(name: str, arguments: Sequence[str], *options: str, log: Path) -> Iterator[str]:
    """A container of the image in the background for the ``with`` block; its output goes to ``log`` at the end."""
    name = f"binlake-test-{name}-{os.getpid()}"
    started = docker("run", "--detach", "--network", "host", "--name", name, *options, IMAGE, *arguments)
    try:
        assert started.returncode == 0, started.stderr
        yield name
    finally:
        said = docker("logs", name)
        log.write_text(said.stdout + said.stderr)
        docker("rm", "--force", name)


def wait_for_words(name: str, words: str, timeout_s: float = 180) -> None:
    """Wait until a container has said something. Raises TimeoutError, or RuntimeError if it ended before."""
    deadline = clock.monotonic_s() + timeout_s
    while True:
        said = docker("logs", name)
        if words in said.stdout + said.stderr:
            return
        state = docker("inspect", "--format", "{{.State.Status}}", name).stdout.strip()
        if state != "running":
            raise RuntimeError(f"{name} is {state}: {(said.stdout + said.stderr)[-2000:]}")
        if clock.monotonic_s() > deadline:
            raise TimeoutError(f"{name} never said {words!r}: {(said.stdout + said.stderr)[-2000:]}")
        time.sleep(0.2)
