"""HBase's jars, and the classes of ``embedded/java`` compiled on them: by Eclipse's compiler, since a JRE has none."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from binlake.stream.spark.cache import cached
from binlake.stream.spark.jars import resolve
from binlake.stream.spark.java import find_java
from embedded.jars import ECLIPSE_COMPILER, HBASE
from embedded.process import last_words
from hudilake.errors import CorruptDataError

_SOURCES: Final = Path(__file__).parent / "java" / "binlake" / "hbase"
#: What a region server of a user needs; the other classes are for tests.
_ENDPOINT: Final = ("WalToKafka", "WalDocument", "CellEvent")
#: The oldest Java that HBase 2.5 runs on.
_JAVA_LEVEL: Final = "1.8"
_TIMEOUT_S: Final = 300


def class_path() -> str:
    """The class path of HBase, its client and the endpoint. The first call fetches 138 MB and compiles.

    Raises:
        TransientError: the jars could not be fetched.
        ConfigError: no Java.
        CorruptDataError: the sources do not compile.
    """
    return f"{_classes()}:{_jars()}/*"


def write_endpoint(jar: Path) -> None:
    """Write the replication endpoint as a jar for the region servers of a user. Raises as :func:`class_path`."""
    classes = _classes()
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _ENDPOINT:
            inside = f"binlake/hbase/{name}.class"
            archive.write(classes / inside, inside)


def _jars() -> Path:
    return resolve(HBASE, "hbase")[0].parent


def _classes() -> Path:
    sources = sorted(_SOURCES.glob("*.java"))
    made_of = "\0".join([*HBASE, *ECLIPSE_COMPILER, *(source.read_text() for source in sources)])
    return cached(
        f"hbase-classes-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}", lambda work: _compiled(sources, work)
    )


def _compiled(sources: Sequence[Path], work: Path) -> Path:
    [compiler] = resolve(ECLIPSE_COMPILER, "eclipse-compiler")
    java = [str(find_java().command), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", str(compiler)]
    level = ["-source", _JAVA_LEVEL, "-target", _JAVA_LEVEL, "-nowarn", "-proc:none"]
    # The compiler takes no pattern of jars.
    jars = ":".join(map(str, sorted(_jars().glob("*.jar"))))
    command = [*java, *level, "-classpath", jars, "-d", str(work / "classes"), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise CorruptDataError(
            f"the Java sources do not compile: {last_words(done.stdout + done.stderr)}",
            do_next="restore them from the repository",
            path=str(_SOURCES),
        )
    return work / "classes"


def main(arguments: Sequence[str]) -> int:
    """``python -m embedded.hbase_programs JAR`` writes the replication endpoint for a user's HBase."""
    if len(arguments) != 1:
        sys.stderr.write(f"{main.__doc__}\n")
        return 2
    write_endpoint(Path(arguments[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
