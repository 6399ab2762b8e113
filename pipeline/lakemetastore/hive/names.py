"""Names of databases as clients of Hive 3 and later send them: with the name of the catalog before them.

It stands alone: most handlers read names by it, and it imports none of them.
"""

from __future__ import annotations

from lakemetastore.errors import NoSuchObjectError
from lakemetastore.hive.to_thrift import CATALOG

_MARK, _SEPARATOR, _EMPTY = "@", "#", "!"


def plain(name: str | None) -> str | None:
    """``@hive#sales`` as ``sales``, ``@hive#!`` as the empty name, ``@hive#`` as no name. Other names stay as they are.

    Raises:
        NoSuchObjectError: the name is in another catalog than ``hive``.
    """
    if name is None or not name.startswith(_MARK) or _SEPARATOR not in name:
        return name
    catalog, _, rest = name[1:].partition(_SEPARATOR)
    of_catalog(catalog)
    return "" if rest == _EMPTY else rest or None


def database_name(name: str | None) -> str:
    """The name of one database; what is no name is the empty name, of which there is no database."""
    return plain(name) or ""


def of_catalog(catalog: str | None) -> None:
    """Check the name of a catalog that a request gives. Raises NoSuchObjectError."""
    if catalog and catalog.lower() != CATALOG:
        raise NoSuchObjectError(
            f"No catalog {catalog}", do_next=f"there is one catalog, it is called {CATALOG}", catalog=catalog
        )
