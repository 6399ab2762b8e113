"""A clean Python environment: one wheel after the other is installed, and programs run in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.paths import ROOT

_INSTALL_S, _RUN_S = 900, 300


@dataclass(frozen=True)
class Environment:
    """A virtual environment of its own.

    Args:
        place: where it is made.
        wheels: the directory with the distributions.
    """

    place: Path
    wheels: Path

    def __post_init__(self) -> None:
        venv.create(self.place, with_pip=True, symlinks=True)
        # Hashes of a lock would be asked of the wheels too, which have none; the versions are what matters here.
        lock = (ROOT / "requirements.lock").read_text()
        pins = re.findall(r"^[\w.-]+==[^\s\\]+(?: ; [^\\\n]+)?", lock, re.MULTILINE)
        (self.place / "constraints.txt").write_text("\n".join(pins) + "\n")

    def program(self, name: str) -> str:
        """The path of a program of the environment."""
        return str(self.place / "bin" / name)

    def install(self, wheel: Path) -> None:
        """Install a distribution with what it needs."""
        self.add(str(wheel))

    def add(self, *requirements: str) -> None:
        """Install requirements, in the versions of the lock where it has them."""
        command = [self.program("python"), "-m", "pip", "install", "--quiet", "--find-links", str(self.wheels)]
        command += ["--constraint", str(self.place / "constraints.txt"), *requirements]
        done = subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=_INSTALL_S)
        assert done.returncode == 0, done.stderr[-4000:]

    def has(self, module: str) -> bool:
        """Whether a top-level module can be imported."""
        look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        command = [self.program("python"), "-I", "-c", look]
        return subprocess.run(command, timeout=_RUN_S).returncode == 0

    def run(self, command: list[str], cwd: Path, code: int = 0) -> str:
        """What a command of the environment prints. It must end with ``code``."""
        command = [self.program(command[0]), *command[1:]]
        done = subprocess.run(command, cwd=cwd, env=_environment(), capture_output=True, text=True, timeout=_RUN_S)
        assert done.returncode == code, (command, done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout + done.stderr

    def start(self, command: list[str], cwd: Path) -> subprocess.Popen[str]:
        """A command that goes on; its standard output is a pipe."""
        command = [self.program(command[0]), *command[1:]]
        return subprocess.Popen(command, cwd=cwd, env=_environment(), stdout=subprocess.PIPE, text=True)


def _environment() -> dict[str, str]:
    """The variables of this process without its own path to the packages."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1", "PATH": os.defpath + os.pathsep + str(Path(sys.executable).parent)}
