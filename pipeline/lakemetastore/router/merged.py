"""Listings of all backends put together. Their elements are decoded, for each backend's must be chosen and renamed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from lakemetastore.hive.generated import arguments_class, result_class
from lakemetastore.hive.message import decode, encode, reply
from lakemetastore.hive.wire import ThriftMessage
from lakemetastore.router.older import is_unknown_method
from lakemetastore.router.replies import body_of, is_exception
from lakemetastore.router.requests import is_foreign, split_catalog
from lakemetastore.router.rules import Rules

Ask = Callable[[ThriftMessage], bytes]
"""A whole request to a backend's whole reply."""


@dataclass(frozen=True, slots=True)
class _ListingShape:
    """A method's listing. ``within``: the field of the answer that has the list, if the answer is a struct.
    ``database``: the field of an element that names its database; None if elements are the names themselves.
    ``pattern``: the argument that chooses databases."""

    within: str | None = None
    database: str | None = None
    pattern: str | None = None


_LISTINGS: Final[Mapping[str, _ListingShape]] = MappingProxyType(
    {
        "get_all_databases": _ListingShape(),
        "get_databases": _ListingShape(pattern="pattern"),
        "get_table_meta": _ListingShape(database="dbName", pattern="db_patterns"),
        "get_all_functions": _ListingShape(within="functions", database="dbName"),
        "get_all_materialized_view_objects_for_rewriting": _ListingShape(database="dbName"),
        "show_compact": _ListingShape(within="compacts", database="dbname"),
    }
)


class MergedListing:
    """The answer to a request for a listing, backend by backend."""

    def __init__(self, request: ThriftMessage, rules: Rules) -> None:
        self._request = request
        self._rules = rules
        self._listing = _LISTINGS[request.name]
        self._elements: list[Any] = []
        self._failure: bytes | None = None
        self._unknown: bytes | None = None
        self._answered = False

    @property
    def foreign(self) -> bool:
        """Whether the request asks for another catalog than ``hive``, which only the primary backend can have."""
        if self._listing.pattern is None:
            return False
        pattern = getattr(decode(self._request.body, arguments_class(self._request.name)), self._listing.pattern)
        return is_foreign(split_catalog(pattern or "")[0])

    def take(self, backend: str, ask: Ask) -> None:
        """Ask a backend and take in its elements. The first exception of a backend will be the answer.

        A backend of a release that does not have the call has none of its elements: it is left out.
        """
        pattern = None
        request = self._request
        if self._listing.pattern and backend in self._rules.renaming:
            request, pattern = self._asks_for_all()
        answer = ask(request)
        if is_unknown_method(answer):
            self._unknown = answer
            return
        self._answered = True
        result = None if is_exception(answer) else decode(body_of(answer), result_class(request.name))
        if result is None or result.success is None:
            self._failure = self._failure or answer
            return
        elements = getattr(result.success, self._listing.within) if self._listing.within else result.success
        self._elements += filter(None, (self._seen(backend, element, pattern) for element in elements or ()))

    def reply(self) -> bytes:
        """All elements in one answer; names of databases are sorted."""
        if self._failure is not None:
            return self._failure
        if self._unknown is not None and not self._answered:
            return self._unknown
        elements: Any = self._elements if self._listing.database else sorted(set(self._elements))
        kind = result_class(self._request.name)
        if self._listing.within:
            elements = kind.thrift_spec[0][3][0](**{self._listing.within: elements})
        return reply(self._request.name, self._request.sequence, encode(kind(success=elements)))

    def _seen(self, backend: str, element: Any, pattern: re.Pattern[str] | None) -> Any:  # noqa: ANN401 - generated
        """An element as clients see it; None if they do not."""
        field = self._listing.database
        name = getattr(element, field) if field else element
        place = self._rules.seen_as(backend, name)
        if place is None or (pattern is not None and not pattern.fullmatch(place.seen)):
            return None
        if place.seen == name.lower():
            return element
        if field is None:
            return place.seen
        setattr(element, field, place.seen)
        return element

    def _asks_for_all(self) -> tuple[ThriftMessage, re.Pattern[str]]:
        """The request for all databases, and the pattern that clients' names must match."""
        arguments: Any = decode(self._request.body, arguments_class(self._request.name))
        field = self._listing.pattern
        assert field is not None
        catalog, pattern = split_catalog(getattr(arguments, field) or "*")
        setattr(arguments, field, f"{catalog}*")
        head = self._request.raw[: self._request.start]
        raw = head + encode(arguments)
        return ThriftMessage(self._request.name, self._request.kind, self._request.sequence, raw, len(head)), _regex(
            pattern
        )


def _regex(pattern: str) -> re.Pattern[str]:
    """A pattern of the Hive Metastore: alternatives between ``|``, in which ``*`` stands for any characters.

    Rule: the interface's definition of get_databases, tried with 3.1.3.
    """
    alternatives = (part.strip().replace("*", ".*") for part in pattern.split("|"))
    try:
        return re.compile("|".join(f"(?:{part})" for part in alternatives), re.IGNORECASE)
    except re.error:
        return re.compile("|".join(re.escape(part) for part in pattern.split("|")), re.IGNORECASE)
