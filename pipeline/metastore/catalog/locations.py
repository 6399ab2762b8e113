"""Locations as the Hive Metastore stores them: Hadoop's form of a path, and the places of what comes without one."""

from __future__ import annotations

import re

from pipeline.metastore.catalog.names import DEFAULT_DATABASE, folded
from pipeline.metastore.model.objects import Database

_URI = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
_LOCAL = "file"


def normal_location(text: str) -> str:
    """A location without doubled and trailing slashes; local ones as ``file:/path``.

    A path without a scheme stays without one, since there is no default file system here.
    """
    match = _URI.fullmatch(text)
    assert match is not None
    scheme, authority, path = match.groups()
    path = re.sub("/+", "/", path)
    path = path.rstrip("/") if len(path) > 1 else path
    if scheme is None:
        return path if authority is None else f"//{authority}{path}"
    host = f"//{authority}" if authority and scheme.lower() != _LOCAL else ""
    return f"{scheme}:{host}{path}"


def below(location: str, name: str) -> str:
    """The location of a directory in another one."""
    return f"{location.rstrip('/')}/{name}"


def database_location(name: str, warehouse: str) -> str:
    """The place of a database that comes without one."""
    return normal_location(below(warehouse, f"{folded(name)}.db"))


def table_location(home: Database, name: str, warehouse: str) -> str:
    """The place of a table that comes without one. Other characters than letters, digits, ``_`` become codes."""
    root = warehouse if home.name == DEFAULT_DATABASE else home.location or database_location(home.name, warehouse)
    directory = "".join(c if c.isalnum() or c == "_" else f"-{ord(c)}-" for c in folded(name))
    return normal_location(below(root, directory))
