"""TLC: found by ``$BINLAKE_TLA_TOOLS`` or in the cache, or built once from the sources of the TLA+ tools.

No registry of Java libraries has it. ``$BINLAKE_TLA_TOOLS`` names a ``tla2tools.jar`` of any release since 1.8;
``$BINLAKE_TLA_SOURCES`` a checkout of the tools, which is compiled with the JDK's own compiler (half a minute) into
``tla/tla2tools.jar`` in the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

_BELOW = "tlatools/org.lamport.tlatools"
#: Libraries that TLC's start needs; their classes go into the jar, as in the released one.
_BUNDLED = ("gson/*.jar", "javax.mail/*.jar")


class NoToolsError(Exception):
    """TLC or Java is not here; the text says what to do."""


def tlc_jar() -> Path:
    """The jar with TLC. Raises NoToolsError."""
    named = os.environ.get("BINLAKE_TLA_TOOLS")
    cached = Path(os.environ.get("BINLAKE_CACHE", Path.home() / ".cache/binlake")) / "tla" / "tla2tools.jar"
    jar = Path(named) if named else cached
    if shutil.which("java") is None:
        raise NoToolsError("there is no java on the path: install a Java of version 11 or newer")
    if not jar.exists() and not named and (sources := os.environ.get("BINLAKE_TLA_SOURCES")):
        build(Path(sources) / _BELOW, jar)
    if not jar.exists():
        raise NoToolsError(
            f"{jar} does not exist: name tla2tools.jar in BINLAKE_TLA_TOOLS, or a checkout of the TLA+ tools in "
            "BINLAKE_TLA_SOURCES"
        )
    return jar


def build(project: Path, jar: Path) -> None:
    """Compile the tools. Raises NoToolsError with the compiler's last lines.

    Args:
        project: with ``src`` and ``lib``.
        jar: to be made.
    """
    classes = jar.with_suffix(".classes")
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    libraries = os.pathsep.join(map(str, sorted((project / "lib").rglob("*.jar"))))
    sources = [str(path) for path in sorted((project / "src").rglob("*.java"))]
    flags = ["-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", str(classes), "-cp", libraries]
    done = subprocess.run(["javac", *flags, *sources], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoToolsError("the TLA+ tools do not compile: " + done.stderr[-500:])
    for path in sorted((project / "src").rglob("*")):
        if path.is_file() and path.suffix != ".java":
            target = classes / path.relative_to(project / "src")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    for library in (path for pattern in _BUNDLED for path in (project / "lib").glob(pattern)):
        with zipfile.ZipFile(library) as archive:
            archive.extractall(classes, [name for name in archive.namelist() if not name.startswith("META-INF")])
    with zipfile.ZipFile(jar.with_suffix(".part"), "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(classes.rglob("*")):
            if path.is_file() and path.name != "module-info.class":
                archive.write(path, path.relative_to(classes))
    jar.with_suffix(".part").replace(jar)
    shutil.rmtree(classes)
