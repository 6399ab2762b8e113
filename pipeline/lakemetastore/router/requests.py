"""Which databases a request names, where they are, and the request as the backend must get it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from lakemetastore.hive.wire import ThriftMessage
from lakemetastore.router.errors import RefusedCallError
from lakemetastore.router.name_fields import CATALOG, FULL_NAME, argument_names
from lakemetastore.router.replies import EMPTY_LISTING, spliced
from lakemetastore.router.rules import Place, Rules
from lakemetastore.router.walker import names_in

#: The catalog that the rules are about. Hive 3 and later have several; others are left to the primary backend.
_HIVE: Final = "hive"
_MARK: Final = "@"
_SEPARATOR: Final = "#"

REFUSED: Final = ("MetaException", "InvalidOperationException", "InvalidObjectException", "NoSuchObjectException")
_UNKNOWN: Final = ("NoSuchObjectException", "UnknownDBException", EMPTY_LISTING, *REFUSED)


@dataclass(frozen=True, slots=True)
class _DatabaseText:
    """A database's name, what stands before and after it in its text, and where it is (None: no rule matches it)."""

    before: str
    name: str
    after: str
    place: Place | None


class Name(NamedTuple):
    """A database's name in a request: position and length of its text in the struct, and what it says."""

    position: int
    length: int
    read: _DatabaseText


@dataclass(frozen=True, slots=True)
class RequestNames:
    """What a request names. ``foreign``: it names another catalog than ``hive``."""

    names: Sequence[Name]
    foreign: bool

    @property
    def places(self) -> list[Place]:
        """Where the databases are, each once.

        Raises:
            RefusedCallError: no rule matches one of them.
        """
        places_by_name = {}
        for name in self.names:
            if name.read.place is None:
                raise RefusedCallError(f"Database {name.read.name} is in no metastore: no rule matches it", _UNKNOWN)
            places_by_name[name.read.place.seen] = name.read.place
        return list(places_by_name.values())


def names_of(request: ThriftMessage, rules: Rules) -> RequestNames:
    """The databases that a request to a known method names."""
    body = memoryview(request.raw)[request.start :]
    names, foreign = [], False
    known: dict[tuple[bytes, int], _DatabaseText | None] = {}
    for position, length, kind in names_in(body, argument_names(request.name)):
        text = bytes(body[position : position + length])
        if kind == CATALOG:
            foreign = foreign or text.lower() not in (b"", _HIVE.encode())
            continue
        if (text, kind) not in known:
            known[text, kind] = _read(text.decode(errors="surrogateescape"), kind, rules)
        read = known[text, kind]
        if read is not None:
            foreign = foreign or is_foreign(read.before)
            names.append(Name(position, length, read))
    return RequestNames(names, foreign)


def _read(text: str, kind: int, rules: Rules) -> _DatabaseText | None:
    """The text of a field that names a database; None if it names none."""
    before, database = split_catalog(text)
    dot = database.find(".") if kind == FULL_NAME else -1
    after = database[dot:] if dot >= 0 else ""
    database = database[: len(database) - len(after)]
    if not database or database == "!":
        return None
    return _DatabaseText(before, database, after, rules.place(database.lower()))


def split_catalog(text: str) -> tuple[str, str]:
    """A name as Hive 3 and later send it, ``@catalog#database``: what stands before the database, and the database."""
    if not text.startswith(_MARK) or _SEPARATOR not in text:
        return "", text
    before, separator, database = text.partition(_SEPARATOR)
    return before + separator, database


def is_foreign(prefix: str) -> bool:
    """Whether what stands before a database's name is another catalog than ``hive``."""
    return prefix.lower() not in ("", f"{_MARK}{_HIVE}{_SEPARATOR}")


def for_backend(request: ThriftMessage, names: RequestNames, backend: str) -> ThriftMessage:
    """The request with the names that its databases have in the backend. Names of databases elsewhere stay."""
    changes = []
    for position, length, read in names.names:
        place = read.place
        if place is not None and place.backend == backend and place.name != read.name.lower():
            changes.append(
                (position, length, f"{read.before}{place.name}{read.after}".encode(errors="surrogateescape"))
            )
    if not changes:
        return request
    return dataclasses.replace(request, raw=spliced(request.raw, request.start, changes))
