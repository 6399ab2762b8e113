"""The tables below a directory, such as the root of a lake.

A module of its own because commands over whole lakes and metastores look for tables, and no table needs it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hudilake.errors import LakeError
from hudilake.storage import Storage
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class BrokenTable:
    """A table that was named, or lies in the lake, and cannot be opened."""

    name: str
    error: LakeError


def paths_of_tables(root: Storage, depth: int, skipped: Collection[str] = (), under: str = "") -> list[str]:
    """The paths of the tables below a root, at most ``depth`` directories deep.

    Args:
        root: where to look.
        depth: 1 for tables directly in ``under``.
        skipped: names of directories that are not looked into.
        under: a path below the root; "" for the root itself.

    Raises StorageError.
    """
    paths: list[str] = []
    for name in root.list_dirs(under):
        path = f"{under}/{name}" if under else name
        if name in skipped:
            continue
        if ".hoodie" in root.list_dirs(path):
            if HudiTable.exists(root.sub(path)):  # else a run died while it created the table
                paths.append(path)
        elif depth > 1:
            paths += paths_of_tables(root, depth - 1, skipped, path)
    return paths
