"""Values that a store holds as text (``#s``): the forms that Java's ``toString`` writes, and no others.

Blanks, hexadecimal digits, digit separators and words for numbers are refused, as is what a column's type cannot hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.settings.cells.columns import CellType

_INTEGER: Final = r"^[+-]?[0-9]+$"
_NUMBER: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NO_NUMBER: Final = r"^(NaN|[+-]?Infinity)$"
_PLUS: Final = r"^\+"
_BOOLEAN: Final = r"^(?i:true|false)$"
_SHORTS: Final = np.iinfo(np.int16)


def converter_of_text(type_: CellType, kind: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """What reads an array of texts as values of a type, and raises ValueError for a text that is none.

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
    if not pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py():
        raise ValueError("a text that is no value of its type")
    return texts


def _integers(texts: pa.Array, kind: pa.DataType, *, short: bool) -> pa.Array:
    """The pattern is needed, since Arrow reads 0x10 as 16; Arrow refuses the plus sign that Java takes."""
    numbers = pc.replace_substring_regex(_matching(texts, _INTEGER), _PLUS, "").cast(kind)
    if short and len(numbers):
        extremes = pc.min_max(numbers)
        if extremes["min"].as_py() < _SHORTS.min or extremes["max"].as_py() > _SHORTS.max:
            raise ValueError("a number beyond two bytes")
    return numbers


def _floats(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Arrow makes an infinity of a number beyond the range; only the word is one."""
    words = pc.match_substring_regex(texts, _NO_NUMBER)
    if not pc.all(pc.or_(words, pc.match_substring_regex(texts, _NUMBER)), min_count=0).as_py():
        raise ValueError("a text that is no number")
    numbers = texts.cast(kind)
    if pc.any(pc.and_(pc.is_inf(numbers), pc.invert(words)), min_count=0).as_py():
        raise ValueError("a number beyond the range of its type")
    return numbers


def _booleans(texts: pa.Array) -> pa.Array:
    return pc.equal(pc.utf8_lower(_matching(texts, _BOOLEAN)), "true")
