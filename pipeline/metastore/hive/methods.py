"""The methods that are served: for each name its handler, and the generated classes of its arguments and result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType

from fb303 import FacebookService
from hive_metastore import ThriftHiveMetastore

from pipeline.metastore.hive.context import Context
from pipeline.metastore.hive.generated import Struct

Handler = Callable[[Context, Struct], object]
"""Gets the method's arguments; gives what it returns: a value, or `encoded.Encoded`. Raises CatalogError."""

_STRUCT = 12


@dataclass(frozen=True, slots=True)
class Method:
    """A method. ``result`` is None if it is not answered; ``declared``: exception class to field of the result."""

    name: str
    handler: Handler
    arguments: type
    result: Struct
    declared: dict[type, str]


def methods(handlers: Mapping[str, Handler]) -> dict[str, Method]:
    """The methods of some handlers."""
    return {name: _method(name, handler) for name, handler in handlers.items()}


def _method(name: str, handler: Handler) -> Method:
    module = _module(name)
    result = getattr(module, f"{name}_result", None)
    return Method(name, handler, getattr(module, f"{name}_args"), result, _declared(result))


def _module(name: str) -> ModuleType:
    module: ModuleType = ThriftHiveMetastore if hasattr(ThriftHiveMetastore, f"{name}_args") else FacebookService
    return module


def _declared(result: Struct) -> dict[type, str]:
    fields = [field for field in getattr(result, "thrift_spec", ()) if field and field[0] > 0 and field[1] == _STRUCT]
    return {field[3][0]: field[2] for field in fields}
