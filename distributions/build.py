"""Builds the wheels of the three distributions, and one archive with all three for ``spark-submit --py-files``.

``python -m distributions.build DIRECTORY``. It builds a copy of the sources: setuptools leaves beside them what it
took, and takes it again where the sources have it no more.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: Where each distribution is defined, in the order of what they need.
PLACES = ("distributions/hudilake", "distributions/lakemetastore", ".")
ARCHIVE = "binlake.zip"
_SOURCES = ("pyproject.toml", "README.md", "LICENSE", "pipeline", "distributions")


def build(out: Path) -> list[Path]:
    """Build into a directory; the wheels in the order of ``PLACES``. Older ones there are removed.

    Raises subprocess.CalledProcessError, after what the build printed.
    """
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("*.whl"), *out.glob(ARCHIVE)):
        old.unlink()
    with tempfile.TemporaryDirectory() as place:
        _copy(Path(place))
        wheels = [_wheel(Path(place, where), out) for where in PLACES]
    _archive(wheels, out / ARCHIVE)
    return wheels


def _copy(place: Path) -> None:
    for name in _SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
        else:
            shutil.copy(source, place / name)


def _wheel(project: Path, out: Path) -> Path:
    before = set(out.glob("*.whl"))
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(project)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.stderr.write(done.stdout)
        done.check_returncode()
    (wheel,) = set(out.glob("*.whl")) - before
    return wheel


def _archive(wheels: Iterable[Path], target: Path) -> None:
    """All wheels in one: their packages, and their metadata, by which entry points are looked up."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as part:
                for name in part.namelist():
                    archive.writestr(name, part.read(name))


if __name__ == "__main__":
    for built in build(Path(sys.argv[1])):
        sys.stdout.write(f"{built}\n")
