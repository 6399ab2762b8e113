"""The generated classes have no types: what is a value of one is said here once, and which classes a method has.

It stands alone: the router and all handlers use these classes, and handlers may not import the router.
"""

from types import ModuleType
from typing import Any

from fb303 import FacebookService
from hive_metastore import ThriftHiveMetastore

Struct = Any
"""A value of a class of ``hive_metastore.ttypes``, or a method's arguments."""

_STRUCT = 12


def arguments_class(method: str) -> type:
    """The class of a method's arguments. Raises AttributeError for an unknown method."""
    return getattr(_module(method), f"{method}_args")  # type: ignore[no-any-return]


def result_class(method: str) -> Struct:
    """The class of a method's result; None for a method without an answer."""
    return getattr(_module(method), f"{method}_result", None)


def declared_exceptions(method: str) -> dict[type, str]:
    """The exceptions that a method declares: class to field of the result."""
    fields = getattr(result_class(method), "thrift_spec", None) or ()
    return {field[3][0]: field[2] for field in fields if field and field[0] > 0 and field[1] == _STRUCT}


def _module(method: str) -> ModuleType:
    module: ModuleType = ThriftHiveMetastore if hasattr(ThriftHiveMetastore, f"{method}_args") else FacebookService
    return module
