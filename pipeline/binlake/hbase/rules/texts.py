"""Values that a store holds as text (``#s``): the forms that Java's ``toString`` writes, and no others.

Blanks, hexadecimal digits, digit separators and words for numbers are refused, as is what a column's type cannot hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.hbase.settings.columns import CellType

_INTEGER: Final = r"^[+-]?[0-9]+$"
_NUMBER: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NO_NUMBER: Final = r"^(NaN|[+-]?Infinity)$"
_PLUS: Final = r"^\+"
_BOOLEAN: Final = r"^(?i:true|false)$"
_SHORTS: Final = np.iinfo(np.int16)


def converter_of_text(type_: CellType, kind: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """What reads an array of texts as values of a type: null for a text that is none, or ValueError.

    Args:
        type_: any but ``utf8`` and ``bytes``.
        kind: the Arrow type of the values.
    """
    if type_ == "boolean":
        return _booleans
    if type_ in ("double", "float"):
        return lambda texts: _floats(texts, kind)
    if type_ == "decimal":
        return lambda texts: _matching(texts, _NUMBER).cast(kind)
    return lambda texts: _integers(texts, kind, short=type_ == "short")


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    return _where(pc.match_substring_regex(texts, pattern), texts)


def _where(good: pa.Array, values: pa.Array) -> pa.Array:
    """The values, null where they are not good."""
    return pc.if_else(good, values, pa.scalar(None, values.type))


def _integers(texts: pa.Array, kind: pa.DataType, *, short: bool) -> pa.Array:
    """The pattern is needed, since Arrow reads 0x10 as 16; Arrow refuses the plus sign that Java takes."""
    numbers = pc.replace_substring_regex(_matching(texts, _INTEGER), _PLUS, "").cast(kind)
    if not short:
        return numbers
    low, high = pa.scalar(_SHORTS.min, kind), pa.scalar(_SHORTS.max, kind)
    return _where(pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high)), numbers)


def _floats(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Arrow makes an infinity of a number beyond the range; only the word is one."""
    words = pc.match_substring_regex(texts, _NO_NUMBER)
    numbers = _where(pc.or_(words, pc.match_substring_regex(texts, _NUMBER)), texts).cast(kind)
    return _where(pc.or_(words, pc.invert(pc.is_inf(numbers))), numbers)


def _booleans(texts: pa.Array) -> pa.Array:
    return pc.equal(pc.utf8_lower(_matching(texts, _BOOLEAN)), "true")
