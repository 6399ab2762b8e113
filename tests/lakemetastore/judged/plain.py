"""Values of the Thrift interface as plain JSON values, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hive_metastore import ttypes

#: The key that names a structure's class.
CLASS = "_"

#: None, a truth value, a number, a text, or a list or dictionary of plain values.
Plain = Any


def to_plain(value: Any) -> Plain:  # noqa: ANN401 - a value of the generated classes, which have no types
    """A Thrift value as JSON. Fields that are not set are left out; bytes are hexadecimal text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((to_plain(one) for one in value), key=repr)
    if isinstance(value, dict):
        return {str(key): to_plain(one) for key, one in sorted(value.items())}
    fields = {name: to_plain(one) for name, one in vars(value).items() if one is not None}
    return {CLASS: type(value).__name__, **fields}


def to_thrift(value: Plain) -> Any:  # noqa: ANN401 - as above
    """The Thrift value of a plain one."""
    if isinstance(value, list):
        return [to_thrift(one) for one in value]
    if isinstance(value, dict):
        made = {key: to_thrift(one) for key, one in value.items() if key != CLASS}
        return getattr(ttypes, str(value[CLASS]))(**made) if CLASS in value else made
    return value


def changed(value: Plain, change: Callable[[str, Plain], Plain], name: str = "") -> Plain:
    """A copy in which ``change(field's name, value)`` was applied to each value, from the leaves up."""
    if isinstance(value, list):
        value = [changed(one, change, name) for one in value]
    elif isinstance(value, dict):
        value = {key: changed(one, change, key) for key, one in value.items()}
    return change(name, value)
