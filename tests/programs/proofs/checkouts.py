"""SQL files of a repository that the user has: a checkout, or a git directory without a work tree."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hudilake.errors import ConfigError


def checkout_of(options: Sequence[str]) -> Path | None:
    """The absolute path among a task's options; None if there is none. Raises ConfigError if nothing is there."""
    paths = [Path(word) for word in options if Path(word).is_absolute()]
    if not paths:
        return None
    if not paths[-1].is_dir():
        raise ConfigError("no checkout is there", do_next="name the directory of a clone", path=str(paths[-1]))
    return paths[-1]


def sql_files(checkout: Path, below: str = "") -> Iterator[tuple[str, str]]:
    """The names and texts of its ``.sql`` files, of a git directory those of HEAD; a byte that is no UTF-8 survives.

    Args:
        checkout: the directory.
        below: only names that begin so.

    Raises ConfigError for a git directory that cannot be read.
    """
    if (checkout / "HEAD").exists():
        command = ["git", "-C", str(checkout), "archive", "HEAD", ":(glob)**/*.sql"]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            raise ConfigError(f"git refused: {done.stderr.decode().strip()}", do_next="fetch it whole")
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None and member.name.startswith(below):
                    yield member.name, content.read().decode("utf-8", "surrogateescape")
        return
    for path in sorted(checkout.rglob("*.sql")):
        name = str(path.relative_to(checkout))
        if name.startswith(below):
            yield name, path.read_bytes().decode("utf-8", "surrogateescape")
