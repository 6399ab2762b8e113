"""Applies mutants in a copy of the tree, one at a time, and runs the tests that should notice."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.paths import ROOT
from tests.programs.mutants.mutant import Mutant

_COPIED = ("pipeline", "tests")
#: Large directories of the copied ones, that no mutant changes.
_LINKED = (Path("tests/data"),)
_SECONDS = 600
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant. ``by``: the first test that failed; empty if none did."""

    mutant: Mutant
    by: str

    @property
    def noticed(self) -> bool:
        """Whether a test failed."""
        return bool(self.by)


@contextmanager
def copied_tree() -> Iterator[Path]:
    """A copy of the project, in which files may be changed."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        root = Path(place)
        for entry in ROOT.iterdir():
            if entry.name in _COPIED:
                shutil.copytree(entry, root / entry.name, ignore=_not_copied)
            elif not entry.name.startswith("."):
                (root / entry.name).symlink_to(entry)
        for path in _LINKED:
            (root / path).symlink_to(ROOT / path)
        yield root


def _not_copied(folder: str, names: list[str]) -> set[str]:
    linked = {ROOT / path for path in _LINKED}
    return {name for name in names if name == "__pycache__" or Path(folder, name) in linked}


def run(mutant: Mutant, root: Path) -> Verdict:
    """Run a mutant's tests in a copied tree, which is afterwards as it was. Raises ValueError as ``Mutant.applied``."""
    file = root / mutant.file
    sound = file.read_text()
    file.write_text(mutant.applied(root))
    try:
        return Verdict(mutant, _first_failure(root, mutant.tests))
    finally:
        file.write_text(sound)


def _first_failure(root: Path, tests: tuple[str, ...]) -> str:
    for test in tests:
        try:
            done = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-x",
                    "-q",
                    "-n",
                    "0",
                    "-p",
                    "no:cacheprovider",
                    "--tb=no",
                    *_usual,
                    test,
                ],
                capture_output=True,
                text=True,
                cwd=root,
                env={
                    **os.environ,
                    "PYTHONPATH": f"{root / 'pipeline'}{os.pathsep}{root}",
                    "PYTHONDONTWRITEBYTECODE": "1",
                },
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{test} (it took more than {_SECONDS} s)"
        if done.returncode == 1:
            failed = _FAILED.search(done.stdout)
            return failed[1].partition("[")[0] if failed else test
        if done.returncode != 0:
            raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return ""


#: Tests with services are left out: a mutant is noticed in seconds.
_usual = ("-m", "not (spark or kafka or database or hdfs or judge or cluster)")
