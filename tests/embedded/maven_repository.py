"""A Maven repository on disk, for tests that must not reach the network."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def repository_environment(place: Path) -> dict[str, str]:
    """Environment variables that make ``place/repository`` the one repository and ``place/cache`` the cache."""
    return {
        "BINLAKE_CACHE": str(place / "cache"),
        "BINLAKE_MAVEN_REPOSITORY": (place / "repository").as_uri() + "/",
    }


def publish(
    place: Path, coordinate: str, *, needs: Sequence[str] = (), files: Mapping[str, str | bytes] | None = None
) -> Path:
    """Put a jar and its POM, with checksums, where Maven would.

    Args:
        place: the directory of the repository's directory.
        coordinate: ``group:artifact:version``.
        needs: coordinates that the artifact depends on.
        files: the jar's members, path -> content.

    Returns:
        The jar.
    """
    group, artifact, version = coordinate.split(":")
    home = place / "repository" / group.replace(".", "/") / artifact / version
    home.mkdir(parents=True)
    stem = f"{artifact}-{version}"
    with zipfile.ZipFile(home / f"{stem}.jar", "w") as archive:
        for path, content in (files or {"name": stem}).items():
            archive.writestr(path, content)
    wanted = "".join(f"<dependency>{_identity(need)}</dependency>" for need in needs)
    (home / f"{stem}.pom").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"{_identity(coordinate)}<dependencies>{wanted}</dependencies></project>"
    )
    for kind in ("jar", "pom"):
        content = (home / f"{stem}.{kind}").read_bytes()
        (home / f"{stem}.{kind}.sha1").write_text(hashlib.sha1(content).hexdigest())
    return home / f"{stem}.jar"


def _identity(coordinate: str) -> str:
    group, artifact, version = coordinate.split(":")
    return f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
