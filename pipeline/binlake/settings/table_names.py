"""How lake tables are named: later tables of one source name, and names as parts of paths."""

from __future__ import annotations

import re

from binlake.settings.templates import QUARANTINE_DIRECTORY

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
    found = _LATER.fullmatch(table)
    return (found[1], int(found[2])) if found is not None else (table, 1)


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
