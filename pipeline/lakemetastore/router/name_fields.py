"""Which fields of the Hive Metastore's structs name databases and catalogs: tables for the walker over bytes.

The generated classes say which fields there are; the field's own name says which of them are names, which is
how the interface's authors mark them, and by a short list of exceptions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import numpy as np
from thrift.Thrift import TType

from lakemetastore.hive.generated import arguments_class, result_class

#: What a string field is: nothing of interest, the name of a database, of a catalog, or ``database.table``.
OTHER: Final = -1
DATABASE: Final = -2
CATALOG: Final = -3
FULL_NAME: Final = -4

_DATABASE_FIELDS = frozenset(
    {"dbname", "db_name", "dbName", "table_db", "pktable_db", "fktable_db", "parent_db_name", "foreign_db_name"}
    | {"source_db", "dest_db", "db", "database"}
)
_CATALOG_FIELDS = frozenset({"catName", "catalogName", "catalog"})
_EXCEPTIONS = {
    ("Database", "name"): DATABASE,
    ("GetDatabaseRequest", "name"): DATABASE,
    ("DropDatabaseRequest", "name"): DATABASE,
    ("get_database_args", "name"): DATABASE,
    ("drop_database_args", "name"): DATABASE,
    ("GetValidWriteIdsRequest", "fullTableNames"): FULL_NAME,
    ("TableValidWriteIds", "fullTableName"): FULL_NAME,
    ("CreationMetadata", "tablesUsed"): FULL_NAME,
}
#: More than the greatest field id of a struct that holds names.
FIELDS: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class NameFields:
    """Where names are in a struct: ``children[struct, field id]`` is the number of the struct in the field (also as
    element of a list, set or map), or DATABASE, CATALOG, FULL_NAME, OTHER. Struct 0 is the whole."""

    children: np.ndarray

    @property
    def any_names(self) -> bool:
        """Whether a struct within holds the name of a database."""
        return bool(((self.children == DATABASE) | (self.children == FULL_NAME)).any())


@dataclass(slots=True)
class _TypeNumbers:
    rows: list[list[int]] = field(default_factory=list)
    numbers: dict[type, int] = field(default_factory=dict)

    def number(self, kind: type) -> int:
        if kind not in self.numbers:
            self.numbers[kind] = len(self.rows)
            row = [OTHER] * FIELDS
            self.rows.append(row)
            for spec in filter(None, kind.thrift_spec or ()):  # type: ignore[attr-defined]
                row[spec[0]] = self._child(kind, spec)
        return self.numbers[kind]

    def _child(self, kind: type, spec: Any) -> int:  # noqa: ANN401 - a tuple of the generated classes
        _, wire_type, name, argument, _ = spec
        if (kind.__name__, name) in _EXCEPTIONS:
            return _EXCEPTIONS[kind.__name__, name]
        if wire_type == TType.STRING:
            return DATABASE if name in _DATABASE_FIELDS else CATALOG if name in _CATALOG_FIELDS else OTHER
        inner = _struct_within(wire_type, argument)
        return OTHER if inner is None else self.number(inner)


def _struct_within(wire_type: int, argument: Any) -> type | None:  # noqa: ANN401 - a tuple of the generated classes
    if wire_type == TType.STRUCT:
        return argument[0]  # type: ignore[no-any-return]
    if wire_type in (TType.LIST, TType.SET):
        return _struct_within(argument[0], argument[1])
    if wire_type == TType.MAP:
        return _struct_within(argument[2], argument[3])
    return None


@cache
def argument_names(method: str) -> NameFields:
    """Where names are in the arguments of a known method."""
    return _name_fields(arguments_class(method))


@cache
def result_names(method: str) -> NameFields | None:
    """Where names are in the result of a known method; None for a method without an answer."""
    kind = result_class(method)
    return None if kind is None else _name_fields(kind)


def _name_fields(kind: type) -> NameFields:
    numbered = _TypeNumbers()
    numbered.number(kind)
    children = np.array(numbered.rows, dtype=np.int64)
    return NameFields(_without_nameless(children))


def _without_nameless(children: np.ndarray) -> np.ndarray:
    """The same with OTHER for structs that have no names within, so that the walker passes over them as a whole."""
    structs, inner = children >= 0, np.maximum(children, 0)
    named: np.ndarray = np.any(children < OTHER, axis=1)
    while True:
        leads: np.ndarray = np.any(structs & named[inner], axis=1) | named
        if np.array_equal(leads, named):
            return np.where(structs & ~named[inner], OTHER, children)
        named = leads
