"""TLC run on a module: what it found, in how many states."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from binlake.stream.spark.java import find_java
from tests.paths import ROOT
from tests.programs.proofs.model.tools import tlc_jar

MODEL = ROOT / "docs" / "model"
_ACTION = re.compile(r"^State \d+: <(\w+(?:\([^)]*\))?)", re.MULTILINE)


class ModelError(Exception):
    """TLC did not come to an end: it does not understand a module, or has no memory left."""


@dataclass(frozen=True)
class Exploration:
    """What TLC found.

    Attributes:
        broken: the invariant that does not hold, or "".
        steps: the actions that lead there.
        states: the distinct states that it saw.
    """

    broken: str
    steps: tuple[str, ...]
    states: int


def explore(module: str, text: str, settings: str, workers: int = 1, heap_mb: int = 1500) -> Exploration:
    """Check a module that extends one of the model's.

    Args:
        module: its name.
        text: the module.
        settings: TLC's configuration.
        workers: threads.
        heap_mb: of Java.

    Raises NoToolsError, ModelError.
    """
    return _read(said(module, text, settings, workers, heap_mb))


def said(module: str, text: str, settings: str, workers: int = 1, heap_mb: int = 1500) -> str:
    """What TLC prints on a module; the arguments of ``explore``. Raises NoToolsError."""
    jar = tlc_jar()
    with tempfile.TemporaryDirectory() as place:
        for path in MODEL.glob("*.tla"):
            shutil.copy(path, place)
        Path(place, f"{module}.tla").write_text(text)
        Path(place, f"{module}.cfg").write_text(settings)
        java = [str(find_java().command), f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-cp", str(jar), "tlc2.TLC"]
        flags = ["-deadlock", "-nowarning", "-workers", str(workers), "-metadir", f"{place}/seen"]
        done = subprocess.run([*java, *flags, module], cwd=place, capture_output=True, text=True, check=False)
    return done.stdout


def _read(said: str) -> Exploration:
    broken = re.search(r"Invariant (\w+) is violated", said)
    counts = re.findall(r"([\d,]+) distinct states found", said)
    if broken is None and "No error has been found" not in said:
        noise = ("Parsing", "Semantic", "Linting")
        errors = [line for line in said.splitlines() if line.strip() and not line.startswith(noise)]
        raise ModelError("TLC did not come to an end: " + " / ".join(errors[-8:]))
    steps = tuple(_ACTION.findall(said)) if broken else ()
    return Exploration(broken.group(1) if broken else "", steps, int(counts[-1].replace(",", "")) if counts else 0)
