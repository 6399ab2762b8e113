"""The methods that are served: for each name its handler, and the generated classes of its arguments and result.

It stands alone: all handlers make their methods by it, and it imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakemetastore.hive.context import Context
from lakemetastore.hive.generated import Struct, arguments_class, declared_exceptions, result_class

Handler = Callable[[Context, Struct], object]
"""Gets the method's arguments; gives what it returns: a value, or `encoded.Encoded`. Raises CatalogError."""


@dataclass(frozen=True, slots=True)
class HiveMethod:
    """A method. ``result`` is None if it is not answered; ``declared``: exception class to field of the result."""

    name: str
    handler: Handler
    arguments: type
    result: Struct
    declared: dict[type, str]


def methods(handlers: Mapping[str, Handler]) -> dict[str, HiveMethod]:
    """The methods of some handlers."""
    return {name: _method(name, handler) for name, handler in handlers.items()}


def _method(name: str, handler: Handler) -> HiveMethod:
    return HiveMethod(name, handler, arguments_class(name), result_class(name), declared_exceptions(name))
