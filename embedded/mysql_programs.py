"""MySQL's server and client from Debian's unstable suite, the only registry that has builds of today's MySQL.

The packages are newer than most machines' C library, so their own libraries and their own loader come with them. apt
checks the signatures and chooses the packages; which version it is, the suite decides.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from binlake.stream.spark.cache import cached
from hudilake.errors import TransientError, UnsupportedError

_PACKAGES = ("mysql-server-core", "mysql-client-core")
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_LIBRARIES = Path("usr/lib/x86_64-linux-gnu")


def mysql_home() -> Path:
    """The directory with the unpacked packages, 400 MB. The first call fetches them, as any user.

    Raises:
        UnsupportedError: the machine has no apt, or not Debian's keys.
        TransientError: the packages could not be fetched.
    """
    return cached("mysql-debian", _fetch)


def program(home: Path, name: str) -> list[str]:
    """The command of a program (``usr/sbin/mysqld``) with the loader and the libraries of its packages."""
    libraries = home / _LIBRARIES
    return [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries), str(home / name)]


def _mirror() -> str:
    """The mirror that this machine's apt takes Debian from."""
    command = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    sites = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    mirror = next((site for site in sites if site.rstrip("/").endswith("/debian")), None)
    if mirror is None:
        raise UnsupportedError("apt has no mirror of Debian", do_next="run this on Debian, after apt-get update")
    return mirror


def _fetch(work: Path) -> Path:
    if not (shutil.which("apt-get") and shutil.which("dpkg") and _KEYS.exists()):
        raise UnsupportedError("MySQL comes by apt from Debian, which is not here", do_next="run this on Debian")
    for folder in ("state/lists/partial", "cache/archives/partial", "empty"):
        (work / folder).mkdir(parents=True)
    (work / "status").touch()  # nothing is installed there: all libraries come along
    (work / "sources.list").write_text(f"deb [signed-by={_KEYS}] {_mirror()} sid main\n")
    own = {
        "Dir::State": work / "state",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": work / "empty",
        "Dir::Etc::preferencesparts": work / "empty",
        "Acquire::Languages": "none",
    }
    options = [word for name, value in own.items() for word in ("-o", f"{name}={value}")]
    for command in (["update"], ["install", "--yes", "--download-only", "--no-install-recommends", *_PACKAGES]):
        done = subprocess.run(["apt-get", "--quiet", *options, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise TransientError(f"MySQL was not fetched: {done.stderr.strip()[-300:]}", do_next="try again later")
    home = work / "unpacked"
    for package in sorted((work / "cache" / "archives").glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, home], check=True)
    return home
