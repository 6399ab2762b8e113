"""Values of cells as HBase's ``Bytes`` writes them, whole columns at a time.

The rules are those of ``org.apache.hadoop.hbase.util.Bytes`` (2.5): numbers are big-endian two's complement of their
own length, floats their raw IEEE 754 bits, a boolean is one byte (``toBytes`` writes 0xFF or 0, ``toBoolean`` takes
every byte but 0 for true), a decimal is its scale as four bytes and then its unscaled number in two's complement of
any length (``toBigDecimal``: five bytes at least). A value of another length is none of the type: it is never cut or
padded, although ``toLong`` and its like read the beginning of a longer one (``tests/data/golden/hbase_bytes.json``).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.types.encoded_bytes import bytes_and_bounds
from binlake.hbase.rules.buffers import Int64s, Mask, validity
from binlake.hbase.rules.decimals import decode_decimals
from binlake.hbase.rules.piecewise import Converted, piecewise
from binlake.hbase.rules.texts import converter_of_text
from binlake.hbase.settings.columns import CellType, WideColumn

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


def decode_values(values: pa.Array, column: WideColumn) -> Converted:
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
    return _texts(values) if column.type == "utf8" else Converted(values, np.zeros(len(values), dtype=bool))


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


def _from_text(values: pa.Array, column: WideColumn, kind: pa.DataType) -> Converted:
    texts = _texts(values)
    if column.type == "utf8":
        return texts
    known = texts.values.drop_null()
    parsed = piecewise(converter_of_text(column.type, kind), known, kind)
    places = np.flatnonzero(~texts.bad)
    bad = texts.bad.copy()
    bad[places[parsed.bad]] = True
    return Converted(_spread(parsed.values, places, len(values)), bad)


def _spread(values: pa.Array, places: Int64s, count: int) -> pa.Array:
    """``count`` values: ``values`` at ``places``, null elsewhere."""
    if len(places) == count:
        return values
    index = np.zeros(count, dtype=np.int64)
    index[places] = np.arange(len(places))
    absent = np.ones(count, dtype=bool)
    absent[places] = False
    return values.take(pa.array(index, mask=absent))


def _texts(values: pa.Array) -> Converted:
    return piecewise(lambda part: part.cast(pa.string()), values, pa.string())


def _numbers(values: pa.Array, stored: str, made: str, kind: pa.DataType) -> Converted:
    data, bounds = bytes_and_bounds(values)
    size = np.dtype(stored).itemsize
    fits = np.diff(bounds) == size
    if fits.all():
        exact = np.ascontiguousarray(data).view(stored)
    else:
        exact = np.zeros(len(values), dtype=stored)
        taken = data[(bounds[:-1][fits, None] + np.arange(size)).ravel()]
        exact[fits] = np.ascontiguousarray(taken).view(stored)
    return Converted(_array(exact.astype(made), kind, fits), ~fits)


def _array(numbers: npt.NDArray[np.generic], kind: pa.DataType, valid: Mask) -> pa.Array:
    """NumPy's bits as they are: a NaN keeps its payload."""
    return pa.Array.from_buffers(kind, len(numbers), [validity(valid), pa.py_buffer(np.ascontiguousarray(numbers))])


def _booleans(values: pa.Array) -> Converted:
    data, bounds = bytes_and_bounds(values)
    fits = np.diff(bounds) == 1
    true = np.zeros(len(values), dtype=bool)
    true[fits] = data[bounds[:-1][fits]] != 0
    return Converted(pa.array(true, mask=~fits), ~fits)
