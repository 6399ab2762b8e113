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
