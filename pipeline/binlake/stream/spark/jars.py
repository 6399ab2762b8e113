"""Fetches Maven artifacts with their dependencies by the Ivy that PySpark ships: Maven need not be installed.

Each set is an entry of the cache (``cache.py``), named after the requested artifacts: it is resolved once, and a second
call does no work. ``$BINLAKE_MAVEN_REPOSITORY`` names another repository than Maven Central, for machines that can
reach only a company's own repository.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from binlake.stream.spark.cache import cached
from binlake.stream.spark.java import find_java
from binlake.stream.spark.lines import SPARK_PROVIDES, connector_coordinate, spark_line
from hudilake.errors import ConfigError, TransientError

_log = logging.getLogger(__name__)

_ATTEMPTS = 4
_PAUSE_S = 2.0
_TIMEOUT_S = 900


def resolve(coordinates: Sequence[str], name: str, *, exclude: Sequence[str] = ()) -> list[Path]:
    """Fetch Maven artifacts and everything they need at run time.

    Args:
        coordinates: ``group:artifact:version``, one or more.
        name: the name of the set in the cache.
        exclude: ``group:artifact`` or ``group:*`` to leave out wherever they appear.

    Returns:
        The jars, sorted by name.

    Raises:
        TransientError: the repository could not be reached, or lacks an artifact, after several attempts.
        ConfigError: no Java, or a coordinate without exactly three parts.
    """
    home = cached(f"{name}-{_digest(coordinates, exclude)}", lambda work: _fetch(coordinates, exclude, work))
    return sorted(home.glob("*.jar"))


def resolve_archive(coordinate: str, name: str) -> Path:
    """Fetch one artifact without what it depends on: ``group:artifact:version:packaging``, or with a classifier
    ``group:artifact:version:jar:tests``.

    ``name``: of its place in the cache. Returns the file. Raises as ``resolve``.
    """
    home = cached(f"{name}-{_digest([coordinate], ())}", lambda work: _fetch([coordinate], (), work))
    return next(home.iterdir())


def kafka_connector() -> list[Path]:
    """Jars with which the installed PySpark plans batches of Kafka; none where it needs none.

    Raises:
        UnsupportedError: this line of Spark is not known.
        TransientError, ConfigError: as for :func:`resolve`.
    """
    coordinate = connector_coordinate()
    return resolve([coordinate], f"spark-kafka-{spark_line()}", exclude=SPARK_PROVIDES) if coordinate else []


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
    """Run Ivy in ``work``, more than once if necessary. Returns the directory that holds the set."""
    _log.info("fetching Java libraries from Maven, once: %s", " ".join(coordinates))
    _write_ivy_files(work, coordinates, exclude)
    for attempt in range(1, _ATTEMPTS + 1):
        outcome = _run_ivy(work)
        if outcome.returncode == 0:
            return work / "jars"
        if attempt < _ATTEMPTS:
            time.sleep(_PAUSE_S * 2 ** (attempt - 1))
    raise TransientError(
        f"could not fetch Java libraries from Maven: {_problems(outcome.stdout)}",
        do_next="check the connection to Maven Central, or name another repository in BINLAKE_MAVEN_REPOSITORY",
        wanted=" ".join(coordinates),
        attempts=_ATTEMPTS,
    )


def _write_ivy_files(work: Path, coordinates: Sequence[str], exclude: Sequence[str]) -> None:
    root = os.environ.get("BINLAKE_MAVEN_REPOSITORY")
    attribute = f" root={quoteattr(root)}" if root else ""
    # Without the two lookups Ivy does not ask for sources and javadoc of every module: two requests of three saved.
    (work / "ivysettings.xml").write_text(
        "<ivysettings>"
        '<property name="ivy.maven.lookup.sources" value="false"/>'
        '<property name="ivy.maven.lookup.javadoc" value="false"/>'
        '<settings defaultResolver="maven"/>'
        f'<resolvers><ibiblio name="maven" m2compatible="true"{attribute}/></resolvers>'
        "</ivysettings>"
    )
    wanted = "".join(_dependency(coordinate) for coordinate in coordinates)
    without = "".join(_exclusion(pattern) for pattern in exclude)
    (work / "ivy.xml").write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="binlake" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{wanted}{without}</dependencies></ivy-module>"
    )


def _dependency(coordinate: str) -> str:
    parts = coordinate.split(":")
    if len(parts) not in (3, 4, 5):
        raise ConfigError("a Maven coordinate has three parts", do_next="write group:artifact:version", got=coordinate)
    group, artifact, version, *packaging = map(quoteattr, parts)
    named = f"<dependency org={group} name={artifact} rev={version}"
    if not packaging:
        return f'{named} conf="default-&gt;default"/>'
    classified = f" m:classifier={packaging[1]}" if len(packaging) > 1 else ""
    kind = f"<artifact name={artifact} type={packaging[0]} ext={packaging[0]}{classified}/>"
    return f'{named} conf="default-&gt;default" transitive="false">{kind}</dependency>'


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
    """The problems in Ivy's log: its unresolved and failed lines, else its last lines."""
    lines = [line.strip(" \t:") for line in log.splitlines()]
    telling = [line for line in lines if "not found" in line or "FAILED" in line or "Exception" in line]
    return "; ".join(list(dict.fromkeys(telling))[:5] or lines[-3:])
