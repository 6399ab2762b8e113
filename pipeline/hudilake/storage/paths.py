"""Valid paths of a storage, and the names of files that are still being written."""

from __future__ import annotations

import re

from hudilake.clock import new_uuid
from hudilake.errors import UnsupportedError

# An empty, `.` or `..` segment would lead out of the root or mean different files in different stores; control
# characters and lone surrogates are refused by some stores, so they are refused by all.
_REFUSED = re.compile(r"(?:^|/)\.{0,2}(?:/|$)|[\x00-\x1f\x7f\ud800-\udfff]")

# No Hudi reader takes such a name for a base file (no extension it knows) or a log file (no `.log.`), and every engine
# skips names that start with a dot.
_TEMPORARY_PREFIX = ".binlake-"
_TEMPORARY_SUFFIX = ".tmp"


def file_path(path: str) -> str:
    """The path of a file below a root, as given.

    Raises:
        UnsupportedError: it has an empty, ``.`` or ``..`` segment (so it is not below the root), or a character that
            not every store can hold.
    """
    if _REFUSED.search(path):
        raise UnsupportedError(
            "some stores cannot hold a file of this path",
            do_next="look for `..`, an empty name or a control character in the data that the path is made from",
            path=repr(path),
        )
    return path


def dir_path(prefix: str) -> str:
    """The path of a directory below a root, without a trailing slash; the root itself is the empty string.

    Raises:
        UnsupportedError: as for :func:`file_path`.
    """
    prefix = prefix.rstrip("/")
    return file_path(prefix) if prefix else ""


def join(parent: str, path: str) -> str:
    """One path below another; either may be empty."""
    return f"{parent}/{path}" if parent and path else parent or path


def temporary_name() -> str:
    """A new name for a file that is still being written. Listings leave such names out."""
    return f"{_TEMPORARY_PREFIX}{new_uuid()}{_TEMPORARY_SUFFIX}"


def is_temporary(name: str) -> bool:
    """True for what :func:`temporary_name` gives."""
    return name.startswith(_TEMPORARY_PREFIX) and name.endswith(_TEMPORARY_SUFFIX)


def temporary_pattern() -> str:
    """The glob pattern of such names."""
    return f"{_TEMPORARY_PREFIX}*{_TEMPORARY_SUFFIX}"
