"""Locations as the Hive Metastore stores them: Hadoop's form of a path, and the places of what comes without one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lakemetastore.catalog.names import DEFAULT_DATABASE, folded, partition_name
from lakemetastore.errors import MetaError
from lakemetastore.model import Database, Table

_URI = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(.*)", re.DOTALL)
_LOCAL = "file"
_S3 = "s3"
_DOT = re.compile("%2e", re.IGNORECASE)


def normal_location(text: str) -> str:
    """A location without doubled and trailing slashes, ``.`` and ``..``; local ones as ``file:/path``.

    A path without a scheme stays without one, since there is no default file system here. ``%`` is a character like
    any other, as with Hadoop. Raises MetaError for a local path that is not absolute, and if
    ``..`` leads above the root, or would if ``%2e`` were read as a dot.
    """
    match = _URI.fullmatch(text)
    assert match is not None
    scheme, authority, path = match.groups()
    if not path.startswith("/") and (scheme or _LOCAL).lower() == _LOCAL:
        raise MetaError(f"The location {text} is not absolute", do_next="write file:/the/whole/path")
    path = _walked(path, text)
    if scheme is None:
        return path if authority is None else f"//{authority}{path}"
    host = f"//{authority}" if authority and scheme.lower() != _LOCAL else ""
    return f"{_LOCAL if scheme.lower() == _LOCAL else scheme}:{host}{path}"


def _walked(path: str, text: str) -> str:
    """A path with ``.`` and ``..`` gone along and without empty segments."""
    kept_segments: list[str] = []
    for segment in path.split("/"):
        if segment not in ("", ".", ".."):
            if _DOT.sub(".", segment) in (".", ".."):
                raise _wrong(text)
            kept_segments.append(segment)
        elif segment == "..":
            if not kept_segments:
                raise _wrong(text)
            kept_segments.pop()
    return ("/" if path.startswith("/") else "") + "/".join(kept_segments)


def _wrong(text: str) -> MetaError:
    return MetaError(f"The location {text} leads out of its root", do_next="write the path without `..`")


def comparable(location: str) -> str:
    """A location as it is compared with others: engines write ``/lake/t``, ``file:///lake/t``, ``s3a://`` and ``s3://``
    for one place."""
    match = _URI.fullmatch(location)
    assert match is not None
    scheme, authority, path = match.groups()
    scheme = (scheme or _LOCAL).lower()
    path = re.sub("/+", "/", path).rstrip("/")
    if scheme in (_LOCAL, "local"):
        return f"{_LOCAL}:{path}"
    return f"{_S3 if scheme in (_S3, 's3a', 's3n') else scheme}://{authority or ''}{path}"


def same_place(one: str | None, other: str | None) -> bool:
    """Whether two locations are one."""
    return one is not None and other is not None and comparable(one) == comparable(other)


def covers(outer: str, inner: str) -> bool:
    """Whether a place is another one, or has it somewhere below. Both are ``comparable``."""
    return inner == outer or inner.startswith(f"{outer.rstrip('/')}/")


def moved_below(location: str | None, old: str, new: str) -> str | None:
    """A location after the directory ``old`` became ``new``: another one if it is there or below."""
    if location is None or not covers(comparable(old), comparable(location)):
        return location
    return new.rstrip("/") + comparable(location)[len(comparable(old)) :]


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


def partition_location(table: Table, values: Sequence[str]) -> str | None:
    """The place of a partition that comes without one; None in a view."""
    return None if table.location is None else below(table.location, partition_name(table.partition_keys, values))


def is_at_default(table: Table, home: Database) -> bool:
    """Whether a table is where one without a location of its own is put: directly in its database's directory, under
    its name in any case. A rename moves no others (Hive Metastore 3.1.3)."""
    parent, _, directory = comparable(table.location or "").rpartition("/")
    return parent == comparable(home.location or "") and directory.lower() == table.name
