"""Values of cells as HBase's ``Bytes`` writes them, whole columns at a time.

The rules are those of ``org.apache.hadoop.hbase.util.Bytes`` (2.5): numbers are big-endian two's complement of their
own length, floats their raw IEEE 754 bits, a boolean is one byte (``toBytes`` writes 0xFF or 0, ``toBoolean`` takes
every byte but 0 for true), a decimal is its scale as four bytes and then its unscaled number in two's complement of
any length (``toBigDecimal``: five bytes at least). A value of another length is none of the type: it is never cut or
padded, although ``toLong`` and its like read the beginning of a longer one (``tests/data/golden/hbase_bytes.json``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.types.encoded_bytes import bytes_and_bounds
from binlake.hbase.rules.decimals import decode_decimals
from binlake.hbase.rules.piecewise import ConvertedValues, Int64s, Mask, piecewise, validity
from binlake.hbase.settings.declared import CellType, WideColumn

# Values that a store holds as text (``#s``): the forms that Java's ``toString`` writes, and no others.
#
# Blanks, hexadecimal digits, digit separators and words for numbers are refused, as is what a column's type
# cannot hold.

_INTEGER: Final = r"^[+-]?[0-9]+$"
_NUMBER: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_ZERO: Final = r"^[+-]?[0.]+(?:[eE][+-]?[0-9]+)?$"
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
        return _boolean_texts
    if type_ in ("double", "float"):
        return lambda texts: _floats(texts, kind)
    if type_ == "decimal":
        return lambda texts: _decimals(texts, kind)
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


def _decimals(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Arrow refuses a zero whose exponent is beyond the type's digits."""
    numbers = _matching(texts, _NUMBER)
    return pc.if_else(pc.match_substring_regex(numbers, _ZERO), pa.scalar("0", numbers.type), numbers).cast(kind)


def _floats(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Arrow makes an infinity of a number beyond the range; only the word is one."""
    words = pc.match_substring_regex(texts, _NO_NUMBER)
    numbers = _where(pc.or_(words, pc.match_substring_regex(texts, _NUMBER)), texts).cast(kind)
    return _where(pc.or_(words, pc.invert(pc.is_inf(numbers))), numbers)


def _boolean_texts(texts: pa.Array) -> pa.Array:
    return pc.equal(pc.utf8_lower(_matching(texts, _BOOLEAN)), "true")


_NUMBERS: Final[dict[CellType, tuple[str, str]]] = {
    "long": (">i8", "i8"),
    "int": (">i4", "i4"),
    "short": (">i2", "i4"),
    "double": (">f8", "f8"),
    "float": (">f4", "f4"),
}
_ARROW: Final[dict[CellType, pa.DataType]] = {
    "utf8": pa.string(),
    "long": pa.int64(),
    "int": pa.int32(),
    "short": pa.int32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "bytes": pa.binary(),
}


def value_type(column: WideColumn) -> pa.DataType:
    """The Arrow type of a column's values (of a map's items). A short is an int, since Avro has nothing shorter."""
    return pa.decimal128(column.precision, column.scale) if column.type == "decimal" else _ARROW[column.type]


def decode_values(values: pa.Array, column: WideColumn) -> ConvertedValues:
    """The values of n cells as the column declares them.

    Args:
        values: binary array of n without nulls.
        column: type and storage (``as_text``).
    """
    kind = value_type(column)
    if column.as_text:
        return _from_text(values, column, kind)
    if column.type in _NUMBERS:
        return _numbers(values, *_NUMBERS[column.type], kind)
    if column.type == "boolean":
        return _booleans(values)
    if column.type == "decimal":
        return decode_decimals(values, column.precision, column.scale)
    return _texts(values) if column.type == "utf8" else ConvertedValues(values, np.zeros(len(values), dtype=bool))


def expectation(column: WideColumn) -> str:
    """What a value of the column must be, for a fault's detail."""
    if column.as_text:
        return f"the text of {_named(column)}"
    if column.type in _NUMBERS:
        return f"{np.dtype(_NUMBERS[column.type][0]).itemsize} bytes, a big-endian {column.type}"
    if column.type == "decimal":
        return f"four bytes of scale and an unscaled number that fits {_named(column)}"
    return "one byte, a boolean" if column.type == "boolean" else "UTF-8"


def _named(column: WideColumn) -> str:
    return f"decimal({column.precision},{column.scale})" if column.type == "decimal" else column.type


def _from_text(values: pa.Array, column: WideColumn, kind: pa.DataType) -> ConvertedValues:
    texts = _texts(values)
    if column.type == "utf8":
        return texts
    known = texts.values.drop_null()
    parsed = piecewise(converter_of_text(column.type, kind), known, kind)
    places = np.flatnonzero(~texts.bad)
    bad = texts.bad.copy()
    bad[places[parsed.bad]] = True
    return ConvertedValues(_spread(parsed.values, places, len(values)), bad)


def _spread(values: pa.Array, places: Int64s, count: int) -> pa.Array:
    """``count`` values: ``values`` at ``places``, null elsewhere."""
    if len(places) == count:
        return values
    index = np.zeros(count, dtype=np.int64)
    index[places] = np.arange(len(places))
    absent = np.ones(count, dtype=bool)
    absent[places] = False
    return values.take(pa.array(index, mask=absent))


def _texts(values: pa.Array) -> ConvertedValues:
    return piecewise(lambda part: part.cast(pa.string()), values, pa.string())


def _numbers(values: pa.Array, stored: str, made: str, kind: pa.DataType) -> ConvertedValues:
    data, bounds = bytes_and_bounds(values)
    size = np.dtype(stored).itemsize
    fits = np.diff(bounds) == size
    if fits.all():
        exact = np.ascontiguousarray(data).view(stored)
    else:
        exact = np.zeros(len(values), dtype=stored)
        taken = data[(bounds[:-1][fits, None] + np.arange(size)).ravel()]
        exact[fits] = np.ascontiguousarray(taken).view(stored)
    return ConvertedValues(_array(exact.astype(made), kind, fits), ~fits)


def _array(numbers: npt.NDArray[np.generic], kind: pa.DataType, valid: Mask) -> pa.Array:
    """NumPy's bits as they are: a NaN keeps its payload."""
    return pa.Array.from_buffers(kind, len(numbers), [validity(valid), pa.py_buffer(np.ascontiguousarray(numbers))])


def _booleans(values: pa.Array) -> ConvertedValues:
    data, bounds = bytes_and_bounds(values)
    fits = np.diff(bounds) == 1
    true = np.zeros(len(values), dtype=bool)
    true[fits] = data[bounds[:-1][fits]] != 0
    return ConvertedValues(pa.array(true, mask=~fits), ~fits)
