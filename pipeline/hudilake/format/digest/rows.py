"""128-bit digests of Arrow rows: one value for one row, whichever file or side it was read from.

A cell counts by its value and its column's name and kind, not by its width: a column that takes longer integers, and a
column that is new and null, leave the digests as they were. -0.0 differs from 0.0, a trailing blank counts, and text
that is empty differs from null. They tell rows apart; they are no signature: who knows the rule can make two rows of
one digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError

Ulongs = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
_ALL_VALID: Bytes = np.empty(0, dtype=np.uint8)
#: Odd numbers by which the place of an element in its list, and the length of the list, are multiplied.
_PLACE, _LENGTH = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True, slots=True)
class Digests:
    """128-bit digests of n rows: the lower and the upper 64 bits, uint64 arrays of n."""

    low: Ulongs
    high: Ulongs

    def take(self, chosen: Flags | Longs) -> Digests:
        """The digests of some rows."""
        return Digests(self.low[chosen], self.high[chosen])


def row_digests(columns: Mapping[str, pa.Array | pa.ChunkedArray], count: int, salt: str = "") -> Digests:
    """The digest of each of n rows.

    Args:
        columns: by name, n cells each.
        count: n.
        salt: what the rows are, where rows of several sorts must not have one digest.

    Raises UnsupportedError for a type that no table has.
    """
    from hudilake.format.digest import kernel  # compiled loops, a second to import

    first = np.uint64(_seed(salt, "") if salt else 0)
    low, high = np.full(count, first), np.full(count, first)
    for name, column in columns.items():
        seed, start = _seed(name, kind(column.type)), 0
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            end = start + len(chunk)
            if len(chunk) and chunk.null_count < len(chunk):
                _add(chunk, seed, low[start:end], high[start:end])
            start = end
    kernel.finish(low, high)
    return Digests(low, high)


def kinds(schema: pa.Schema) -> dict[str, str]:
    """The kind of each column by its name. Rows keep their digests in a schema that has all columns in their kinds."""
    return {field.name: kind(field.type) for field in schema}


@lru_cache(maxsize=4096)
def kind(data_type: pa.DataType) -> str:
    """What values of a type mean; types of one kind differ in width only. Raises UnsupportedError."""
    if pa.types.is_dictionary(data_type):
        return kind(data_type.value_type)
    for is_such, name in _KINDS:
        if is_such(data_type):
            return name
    if pa.types.is_timestamp(data_type) or pa.types.is_time(data_type):
        return f"{'time' if pa.types.is_time(data_type) else 'timestamp'} {data_type.unit}"
    if pa.types.is_decimal(data_type):
        return f"decimal {data_type.scale}"
    if pa.types.is_map(data_type):
        return f"list<struct<key {kind(data_type.key_type)}, value {kind(data_type.item_type)}>>"
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return f"list<{kind(data_type.value_type)}>"
    if pa.types.is_struct(data_type):
        return f"struct<{', '.join(f'{field.name} {kind(field.type)}' for field in data_type)}>"
    raise UnsupportedError(
        f"there is no digest of values of the type {data_type}", do_next="report this error with the table's schema"
    )


_KINDS = (
    (pa.types.is_integer, "integer"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_floating, "float"),
    (pa.types.is_date, "date"),
    (pa.types.is_string, "text"),
    (pa.types.is_large_string, "text"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_fixed_size_binary, "bytes"),
    (pa.types.is_null, "null"),
)


@lru_cache(maxsize=4096)
def _seed(name: str, kind_name: str) -> int:
    data = f"{name}\0{kind_name}".encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") | 1


def _add(array: pa.Array, seed: int, low: Ulongs, high: Ulongs) -> None:
    """Add a column of n cells, one of them not null, to n rows."""
    from hudilake.format.digest import kernel

    if pa.types.is_dictionary(array.type) and not array.null_count and not array.dictionary.null_count:
        coded = np.asarray(array.indices.to_numpy())
        low_parts, high_parts = (np.zeros(len(array.dictionary), dtype=np.uint64) for _ in range(2))
        _add(array.dictionary, seed, low_parts, high_parts)
        low += low_parts[coded]
        high += high_parts[coded]
        return
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    valid = _ALL_VALID
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    words = _words(array)
    if words is not None:
        kernel.add_words(words, valid, seed, low, high)
    else:
        data, bounds = _bytes(array)
        kernel.add_bytes(data, bounds, valid, seed, low, high)


def _words(array: pa.Array) -> Ulongs | None:
    """A word for each cell; None where cells are byte strings. Those of null cells have no meaning."""
    data_type = array.type
    if pa.types.is_nested(data_type):
        return _struct_words(array) if pa.types.is_struct(data_type) else _list_words(array)
    if pa.types.is_boolean(data_type):
        array = array.cast(pa.int8())
    elif pa.types.is_floating(data_type):
        array = array.cast(pa.float64())
    elif not (pa.types.is_integer(data_type) or pa.types.is_temporal(data_type)):
        return None
    width = array.type.bit_width // 8
    letter = "f" if pa.types.is_floating(array.type) else "u" if pa.types.is_unsigned_integer(array.type) else "i"
    offset = array.offset * width
    cells = np.frombuffer(array.buffers()[1], dtype=f"{letter}{width}", count=len(array), offset=offset)
    if width < 8:
        cells = cells.astype(f"{letter}8")
    return cells.view(np.uint64)


def _bytes(array: pa.Array) -> tuple[Bytes, Longs]:
    """The bytes of a column of texts, byte strings or decimals, and n + 1 bounds of its cells in them."""
    count, buffers = len(array), array.buffers()
    variable = len(buffers) == 3
    data = buffers[2] if variable else buffers[1]
    if variable:
        width = 8 if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type) else 4
        bounds = np.frombuffer(buffers[1], dtype=f"i{width}", count=count + 1, offset=array.offset * width)
        bounds = bounds.astype(np.int64)
    else:
        width = array.type.bit_width // 8
        bounds = (np.arange(count + 1, dtype=np.int64) + array.offset) * width
    return np.frombuffer(data, dtype=np.uint8) if data is not None else _ALL_VALID, bounds


def _struct_words(array: pa.StructArray) -> Ulongs:
    fields = zip(array.type, array.flatten(), strict=True)
    return row_digests({field.name: part for field, part in fields}, len(array), "struct").low


def _list_words(array: pa.Array) -> Ulongs:
    """Elements count with their places."""
    if pa.types.is_map(array.type):
        pair = pa.struct([pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)])
        entries = array.to_pylist()
        rows = [None if cell is None else [{"key": key, "value": value} for key, value in cell] for cell in entries]
        array = pa.array(rows, pa.list_(pair))
    sizes = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    elements = array.flatten()
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    places = (np.arange(len(elements), dtype=np.int64) - np.repeat(bounds[:-1], sizes) + 1).view(np.uint64)
    words = row_digests({"": elements}, len(elements), "element").low * (places * _PLACE | np.uint64(1))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64)])
    return np.asarray((sums[bounds[1:]] - sums[bounds[:-1]]) ^ (sizes.view(np.uint64) * _LENGTH))


def columns_of(rows: pa.Table, without: frozenset[str]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """The columns of a table by name, some left out."""
    return ((name, rows.column(name)) for name in rows.schema.names if name not in without)
