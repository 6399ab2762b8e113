"""Templates of the settings, such as ``{database}/{table}``: their placeholders, and which paths they can give."""

from __future__ import annotations

import re
import string
from collections.abc import Collection

#: Directories of the lake that belong to binlake and Hudi; no name of a table may lead there.
QUARANTINE_DIRECTORY = "_quarantine"
_PLACEHOLDER = re.compile(r"\{\w+\}")


def placeholders(template: str) -> set[str]:
    """The names in a template of ``str.format``.

    Raises ValueError for a brace that stands alone, and for everything that ``str.format`` allows besides names: an
    attribute, an index, a conversion or a format (``{table:>999999999}`` would fill the memory).
    """
    named: set[str] = set()
    for _, name, form, conversion in string.Formatter().parse(template):
        if name is None:
            continue
        if form or conversion or not re.fullmatch(r"\w+", name):
            raise ValueError("a placeholder is a name in braces")
        named.add(name)
    return named


def check_relative(path: str) -> str | None:
    """The fault of a path template below the lake's root; None if no name can make it leave its place.

    Refused are empty, ``.`` and ``..`` parts, and parts with a leading dot: ``.hoodie`` is Hudi's, ``.binlake`` holds
    the state of the streams.
    """
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "must be a relative path"
    if any(part.startswith(".") for part in parts):
        return "may have no part with a leading dot: such directories belong to Hudi and binlake"
    return None


def may_meet(template: str, path: str, never: Collection[str]) -> bool:
    """Whether a path that the template gives can be the path, or lie above or below it.

    Args:
        template: with placeholders, each standing for one or more characters of one directory's name.
        path: a path without placeholders.
        never: names of directories that no placeholder alone gives.
    """
    pairs = zip(template.split("/"), path.split("/"), strict=False)
    return all(_may_be(part, name, never) for part, name in pairs)


def _may_be(part: str, name: str, never: Collection[str]) -> bool:
    if _PLACEHOLDER.fullmatch(part):
        return name not in never
    return re.fullmatch(".+".join(map(re.escape, _PLACEHOLDER.split(part))), name) is not None


# How lake tables are named: later tables of one source name, and names as parts of paths.

_NOT_IN_PATHS = re.compile(r"[^A-Za-z0-9_-]")
#: The name of a later lake table of one source name, see ``later_table``.
_LATER = re.compile(r"(.+)@@(\d{1,3})")


def later_table(table: str, number: int) -> str:
    """The name of the lake table of the ``number``-th table that the source called ``table``, where the lake tables of
    the earlier ones go on under other names: ``t@@2``. The first one has the name itself."""
    return table if number == 1 else f"{table}@@{number}"


def plain_table(table: str) -> str:
    """The source's name in a name of ``later_table``."""
    return numbered(table)[0]


def numbered(table: str) -> tuple[str, int]:
    """The reverse of ``later_table``."""
    later_match = _LATER.fullmatch(table)
    return (later_match[1], int(later_match[2])) if later_match is not None else (table, 1)


def path_name(identifier: str) -> str:
    """A MySQL identifier as a path part. No two identifiers collide, and none leaves its directory.

    Letters, digits, _ and - stay; every other UTF-16 code unit becomes ``@`` and four hexadecimal digits. The idea is
    that of MySQL's own mapping of identifiers to file names. The name of the quarantine's directory is spelled
    ``@005fquarantine``, so that no database of that name writes into it.
    """
    if identifier == QUARANTINE_DIRECTORY:
        return "@005f" + identifier[1:]
    return _NOT_IN_PATHS.sub(_code_units, identifier)


def _code_units(match: re.Match[str]) -> str:
    data = match[0].encode("utf-16-be")
    return "".join(f"@{data[i : i + 2].hex()}" for i in range(0, len(data), 2))
