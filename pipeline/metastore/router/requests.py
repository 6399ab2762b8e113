"""Which databases a request names, where they are, and the request as the backend must get it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.metastore.hive.wire import Message
from pipeline.metastore.router.errors import RefusedCallError
from pipeline.metastore.router.name_fields import CATALOG, FULL_NAME, argument_names
from pipeline.metastore.router.replies import EMPTY_LISTING, spliced
from pipeline.metastore.router.rules import Place, Rules
from pipeline.metastore.router.walker import names_in

#: The catalog that the rules are about. Hive 3 and later have several; others are left to the primary backend.
_HIVE: Final = "hive"
_MARK: Final = "@"
_SEPARATOR: Final = "#"

REFUSED: Final = ("MetaException", "InvalidOperationException", "InvalidObjectException", "NoSuchObjectException")
_UNKNOWN: Final = ("NoSuchObjectException", "UnknownDBException", EMPTY_LISTING, *REFUSED)


@dataclass(frozen=True, slots=True)
class Name:
    """A database's name in a request: position and length of its text in the struct, what stands before and after it
    in the text, and where it is (None: no rule matches it)."""

    position: int
    length: int
    before: str
    text: str
    after: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Names:
    """What a request names. ``foreign``: it names another catalog than ``hive``."""

    names: Sequence[Name]
    foreign: bool

    @property
    def places(self) -> list[Place]:
        """Where the databases are, each once.

        Raises:
            RefusedCallError: no rule matches one of them.
        """
        found = {name.place.seen: name.place for name in self.names if name.place is not None}
        for name in self.names:
            if name.place is None:
                raise RefusedCallError(f"Database {name.text} is in no metastore: no rule matches it", _UNKNOWN)
        return list(found.values())


def names_of(request: Message, rules: Rules) -> Names:
    """The databases that a request to a known method names."""
    body = memoryview(request.raw)[request.start :]
    names, foreign = [], False
    for position, length, kind in names_in(body, argument_names(request.name)):
        text = bytes(body[position : position + length]).decode()
        if kind == CATALOG:
            foreign = foreign or text.lower() not in ("", _HIVE)
            continue
        before, database = split_catalog(text)
        foreign = foreign or before.lower() not in ("", f"{_MARK}{_HIVE}{_SEPARATOR}")
        dot = database.find(".") if kind == FULL_NAME else -1
        after = database[dot:] if dot >= 0 else ""
        database = database[: len(database) - len(after)]
        if database and database != "!":
            names.append(Name(position, length, before, database, after, rules.place(database.lower())))
    return Names(names, foreign)


def split_catalog(text: str) -> tuple[str, str]:
    """A name as Hive 3 and later send it, ``@catalog#database``: what stands before the database, and the database."""
    if not text.startswith(_MARK) or _SEPARATOR not in text:
        return "", text
    before, separator, database = text.partition(_SEPARATOR)
    return before + separator, database


def for_backend(request: Message, names: Names, backend: str) -> Message:
    """The request with the names that its databases have in the backend. Names of databases elsewhere stay."""
    changes = [
        (name.position, name.length, f"{name.before}{name.place.name}{name.after}".encode())
        for name in names.names
        if name.place and name.place.backend == backend and name.place.name != name.text.lower()
    ]
    if not changes:
        return request
    return dataclasses.replace(request, raw=spliced(request.raw, request.start, changes))
