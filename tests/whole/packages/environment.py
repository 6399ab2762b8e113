"""A clean Python environment: one wheel after the other is installed, and programs run in it."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

from binlake.stream.spark.java import find_java
from tests.paths import ROOT

_INSTALL_S, _RUN_S = 900, 600
#: Beginnings of variables by which this process's own packages would be found, by Python or by Spark.
_OWN = ("PYTHONPATH", "VIRTUAL_ENV", "PYSPARK", "SPARK")


@dataclass(frozen=True)
class Environment:
    """A virtual environment of its own. What binlake fetches and keeps is in it, too.

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

    @property
    def cache(self) -> Path:
        """The cache of binlake: Java libraries, and the classes of this environment's Spark."""
        return self.place / "cache"

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
        done = subprocess.run(command, env=self._variables(), capture_output=True, text=True, timeout=_INSTALL_S)
        assert done.returncode == 0, done.stderr[-4000:]

    def has(self, module: str) -> bool:
        """Whether a top-level module can be imported."""
        look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        command = [self.program("python"), "-I", "-c", look]
        return subprocess.run(command, timeout=_RUN_S).returncode == 0

    def run(self, command: list[str], cwd: Path, code: int = 0) -> str:
        """What a command of the environment prints. It must end with ``code``."""
        command = [self.program(command[0]), *command[1:]]
        done = subprocess.run(command, cwd=cwd, env=self._variables(), capture_output=True, text=True, timeout=_RUN_S)
        assert done.returncode == code, (command, done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout + done.stderr

    def start(self, command: list[str], cwd: Path) -> subprocess.Popen[str]:
        """A command that goes on; its standard output is a pipe."""
        command = [self.program(command[0]), *command[1:]]
        return subprocess.Popen(command, cwd=cwd, env=self._variables(), stdout=subprocess.PIPE, text=True)

    def _variables(self) -> dict[str, str]:
        """The variables of this process without a way to its own packages. No wheel brings Java."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
        own = {"PATH": os.defpath, "JAVA_HOME": str(find_java().home), "BINLAKE_CACHE": str(self.cache)}
        return kept | own | {"PYTHONDONTWRITEBYTECODE": "1"}
