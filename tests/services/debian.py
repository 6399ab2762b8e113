"""Packages of Debian, unpacked into the cache without being installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from binlake.stream.spark.cache import cached
from hudilake.errors import TransientError, UnsupportedError


def unpacked(package: str, inside: str) -> Path:
    """A directory of a package, such as ``usr/bin``. The first call fetches the package with apt, as any user.

    Raises:
        UnsupportedError: the machine has no apt or dpkg.
        TransientError: the package could not be fetched.
    """
    return cached(package, lambda work: _fetch(package, work) / inside)


def _fetch(package: str, work: Path) -> Path:
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise UnsupportedError(f"{package} comes by apt, which is not here", do_next="run this on Debian or Ubuntu")
    # apt's own lists, when they are there, need no rights; without them apt-get update is tried.
    for command in (["download", package], ["update"], ["download", package]):
        done = subprocess.run(["apt-get", "--quiet", *command], cwd=work, capture_output=True, text=True, check=False)
        if list(work.glob("*.deb")):
            break
    packages = list(work.glob("*.deb"))
    if not packages:
        raise TransientError(f"{package} was not fetched: {done.stderr.strip()[-300:]}", do_next="run apt-get update")
    subprocess.run(["dpkg", "-x", packages[0], work / "unpacked"], check=True)
    return work / "unpacked"
