"""Names of partitions, and patterns of names, as the Hive Metastore spells them (3.1.3: Warehouse, FileUtils).

A partition's name is ``key=value/key=value`` in the order of the partition keys. Characters that a path cannot hold are
percent-escaped; an empty value is spelled ``__HIVE_DEFAULT_PARTITION__``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from hudilake.format.definition.keys import DEFAULT_PARTITION, escape_partition_value
from lakemetastore.errors import MetaError
from lakemetastore.model import Column

#: The names of a database and of a table in it.
TableName = tuple[str, str]
CATALOG = "hive"
DEFAULT_DATABASE = "default"
_PAIR = re.compile(r"([^/]+)=([^/]+)")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")


def folded(name: str) -> str:
    """A name of a database or table as it is stored: without spaces around it, in lower case."""
    return name.strip().lower()


def qualified(database: str, table: str) -> str:
    """A table as messages name it: ``hive.database.table``."""
    return f"{CATALOG}.{database}.{table}"


def escaped(text: str) -> str:
    """A key or value as a part of a partition's name."""
    return escape_partition_value(text) if text else DEFAULT_PARTITION


def unescaped(text: str) -> str:
    """The text that ``escaped`` was given, but for the empty one."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text) if "%" in text else text


def partition_name(keys: Sequence[Column], values: Sequence[str]) -> str:
    """The name of a partition. Raises MetaError if there is not one value for each key."""
    return namer(keys)(values)


def namer(keys: Sequence[Column]) -> Callable[[Sequence[str]], str]:
    """What names the partitions of a table by their values; it raises as ``partition_name``."""
    heads = [f"{escaped(key.name.lower())}=" for key in keys]

    def name(values: Sequence[str]) -> str:
        if len(heads) != len(values) or not heads:
            shown = "".join(f"{key.name}, " for key in keys), "".join(f"{value}, " for value in values)
            raise MetaError(f"Invalid partition key & values; keys [{shown[0]}], values [{shown[1]}]")
        return "/".join([head + escaped(value) for head, value in zip(heads, values, strict=True)])

    return name


def partition_spec(name: str) -> dict[str, str]:
    """Keys and values of a partition's name, in its order; parts that are no pair are left out.

    Raises MetaError for an empty name.
    """
    if not name:
        raise MetaError(f"Partition name is invalid. {name}")
    pairs = (_PAIR.fullmatch(part) for part in name.split("/"))
    return {unescaped(pair[1]): unescaped(pair[2]) for pair in pairs if pair}


def partition_values(name: str) -> tuple[str, ...]:
    """The values of a partition's name, in its order. Raises MetaError for an empty name."""
    return tuple(partition_spec(name).values())


def name_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of database or table names: ``*`` is any text, ``.`` any character, ``|`` separates alternatives.

    Case does not count. The Metastore turns ``*`` into ``.*`` and hands the text to its database as a regular
    expression of which only ``.`` and ``.*`` are understood, so that ``a.*`` needs a character after the ``a``.
    """
    return re.compile("|".join(map(_alternative, pattern.split("|"))), re.IGNORECASE | re.DOTALL)


def _alternative(text: str) -> str:
    return re.escape(text).replace(r"\.", ".").replace(r"\*", ".*")


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """The names that match a pattern, ascending; all of them for None and ``*``."""
    if pattern in (None, "*"):
        return sorted(names)
    compiled = name_pattern(pattern or "")
    return sorted(name for name in names if compiled.fullmatch(name))
