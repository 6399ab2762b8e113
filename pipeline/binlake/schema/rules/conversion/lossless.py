"""Changes of type that change no stored value, so that no row needs to be written again for its value."""

from __future__ import annotations

import pyarrow as pa

from binlake.decode.types.mysql_types import MysqlType, charset_of
from binlake.schema.rules.conversion.declared import size_in_bytes
from binlake.schema.rules.conversion.numbers import INTEGERS, integer_range

_UNICODE = frozenset({None, "utf8mb4", "utf16", "utf16le", "utf32"})


def keeps_values(old: MysqlType, new: MysqlType) -> bool:
    """Whether every value of ``old`` is the same value in ``new``, in the lake too but for a wider number."""
    if old.base in INTEGERS and new.base in INTEGERS:
        (low, high), (least, largest) = integer_range(old), integer_range(new)
        return least <= low and high <= largest
    if (old.base, new.base) == ("float", "double"):
        return new.scale is None
    if old.base in ("varchar", "text", "char") and new.base in ("varchar", "text"):
        same = charset_of(old.text) == charset_of(new.text) or charset_of(new.text) in _UNICODE
        return same and _characters(old) <= _characters(new)
    if old.base in ("varbinary", "blob") and new.base in ("varbinary", "blob"):
        return _bytes(old) <= _bytes(new)
    if old.base != new.base or pa.types.is_string(old.lake_type) != pa.types.is_string(new.lake_type):
        return False
    if old.base == "decimal":
        whole = (old.precision - (old.scale or 0)) <= (new.precision - (new.scale or 0))
        return whole and (old.scale or 0) <= (new.scale or 0) and (old.unsigned or not new.unsigned)
    if old.base in ("enum", "set"):
        return new.options[: len(old.options)] == old.options
    if old.base in ("datetime", "timestamp", "time"):
        return (old.length or 0) <= (new.length or 0)
    if old.base in ("float", "double"):
        return new.scale is None and (old.unsigned or not new.unsigned)
    if old.base == "char":
        return charset_of(old.text) == charset_of(new.text) and (old.length or 1) <= (new.length or 1)
    return old == new


def _characters(kind: MysqlType) -> int:
    return (kind.length or 1) if kind.base != "text" else size_in_bytes(kind) // 4


def _bytes(kind: MysqlType) -> int:
    return size_in_bytes(kind) if kind.base == "blob" else kind.length or 1
