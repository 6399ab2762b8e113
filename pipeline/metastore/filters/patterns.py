"""The two dialects of LIKE.

The Hive Metastore up to 3 reads a regular expression of which only ``.`` (a character), ``.*`` (any text) and the
backslash are understood; Spark sends ``value.*``, ``.*value`` and ``.*value.*``. Version 4 and SQL use ``_`` and ``%``.
A pattern with ``.*`` is a regular expression. Of the others one with ``%`` or ``_`` is SQL's, where a dot is itself.
What is left is a regular expression again. So the one text that changes its meaning is an old client's pattern with
``%`` or ``_`` and without ``.*``: here they match more than themselves.
"""

from __future__ import annotations

import re
from functools import lru_cache

_NO_CASE = "(?i)"


@lru_cache(maxsize=1024)
def like(pattern: str) -> re.Pattern[str]:
    """A compiled expression that a whole value must match. Case counts, unless the pattern begins with ``(?i)``."""
    if pattern.startswith(_NO_CASE):
        return _compiled(pattern.removeprefix(_NO_CASE), {".": "."}, many=".*", flags=re.IGNORECASE)
    if ".*" in pattern or not re.search(r"[%_]", pattern):
        return _compiled(pattern, {".": "."}, many=".*")
    return _compiled(pattern, {"_": ".", "%": ".*"}, many=None)


def _compiled(pattern: str, special: dict[str, str], many: str | None, flags: int = 0) -> re.Pattern[str]:
    parts, i = [], 0
    while i < len(pattern):
        if many and pattern.startswith(many, i):
            parts.append(".*")
            i += len(many)
        elif pattern[i] == "\\" and i + 1 < len(pattern):
            parts.append(re.escape(pattern[i + 1]))
            i += 2
        else:
            parts.append(special.get(pattern[i]) or re.escape(pattern[i]))
            i += 1
    return re.compile("".join(parts), re.DOTALL | flags)
