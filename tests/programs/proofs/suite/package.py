"""The suite: Debian's package ``mariadb-test-data``, fetched once into the cache. It stands alone: nothing else here
knows where files come from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from binlake.stream.spark.cache import cached
from hudilake.errors import TransientError, UnsupportedError

_PACKAGE = "mariadb-test-data"
_INSIDE = Path("usr/share/mysql/mysql-test")


def suite_home() -> Path:
    """The directory ``mysql-test``. The first call fetches the package with apt, as any user.

    Raises:
        UnsupportedError: the machine has no apt or dpkg.
        TransientError: the package could not be fetched.
    """
    return cached(_PACKAGE, _fetch)


def files(home: Path) -> list[str]:
    """The names of all test files, relative to the suite, in order."""
    return sorted(str(path.relative_to(home)) for path in home.rglob("*.test"))


def _fetch(work: Path) -> Path:
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise UnsupportedError(f"{_PACKAGE} comes by apt, which is not here", do_next="run this on Debian or Ubuntu")
    # apt's own lists, when they are there, need no rights; without them apt-get update is tried.
    for command in (["download", _PACKAGE], ["update"], ["download", _PACKAGE]):
        done = subprocess.run(["apt-get", "--quiet", *command], cwd=work, capture_output=True, text=True, check=False)
        if list(work.glob("*.deb")):
            break
    packages = list(work.glob("*.deb"))
    if not packages:
        raise TransientError(f"{_PACKAGE} was not fetched: {done.stderr.strip()[-300:]}", do_next="run apt-get update")
    subprocess.run(["dpkg", "-x", packages[0], work / "unpacked"], check=True)
    return work / "unpacked" / _INSIDE
