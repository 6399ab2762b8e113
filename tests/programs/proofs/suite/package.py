"""The suite: Debian's package ``mariadb-test-data``, fetched once into the cache. It stands alone: nothing else here
knows where files come from."""

from __future__ import annotations

from pathlib import Path

from tests.services.debian import unpacked


def suite_home() -> Path:
    """The directory ``mysql-test``. Raises as ``unpacked``."""
    return unpacked("mariadb-test-data", "usr/share/mysql/mysql-test")


def files(home: Path) -> list[str]:
    """The names of all test files, relative to the suite, in order."""
    return sorted(str(path.relative_to(home)) for path in home.rglob("*.test"))
