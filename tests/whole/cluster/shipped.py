"""The environment that Spark ships to containers: a Python with binlake and what it needs, and without Spark."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from packaging.requirements import Requirement

#: Spark brings its own; the three packages are installed from their wheels.
_LEFT_OUT = ("pyspark", "py4j", "hudilake", "lakemetastore", "binlake")


def _needed(name: str, extras: frozenset[str] = frozenset()) -> set[str]:
    """The names of the distributions that one needs, with their own needs."""
    names = {_plain(name)}
    for text in importlib.metadata.requires(name) or ():
        requirement = Requirement(text)
        contexts = [{"extra": extra} for extra in extras or {""}]
        if requirement.marker is None or any(requirement.marker.evaluate(context) for context in contexts):
            names |= _needed(requirement.name, frozenset(requirement.extras))
    return names


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def make_environment(place: Path, wheels: Path) -> None:
    """Make ``environment`` in a directory: what ``pip install -r`` of the lock would make, from the packages that this
    Python has, which are linked and not copied; and the wheels of a directory, installed without the network."""
    venv.create(place / "environment", symlinks=True)
    [target] = (place / "environment" / "lib").glob("python*/site-packages")
    for name in sorted(_needed("binlake") - set(_LEFT_OUT)):
        for file in importlib.metadata.distribution(name).files or ():
            source = Path(str(file.locate()))
            if file.parts[0] != ".." and source.suffix != ".pyc" and source.is_file():
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                _link(source, target / file)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "environment" / "bin" / "python")]
    subprocess.run([*pip, "install", "-q", "--no-index", "--no-deps", *map(str, wheels.glob("*.whl"))], check=True)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy(source, target)


def run(place: Path, command: str) -> None:
    """Run a command of the page; archives are made quickly rather than small."""
    subprocess.run(command, shell=True, cwd=place, env={**os.environ, "GZIP": "-1"}, check=True, timeout=600)
