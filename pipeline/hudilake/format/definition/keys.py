"""Record keys and partition paths as Hudi's key generators spell them.

One key field gives the value's text (``6``); several give ``a:1,b:x`` (Hudi 1.2.0, ``KeyGenUtils``). Values are the
texts that Hudi's Avro key generator makes: integers in decimal, dates as ``2024-02-29``, timestamps as microseconds
since the epoch, booleans as ``true``/``false``. Binary has no text in Hudi; here it is lower-case hex.

Within what a key names one row, a partition or the whole table, is its ``KeyScope``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucket import EMPTY_KEY_PART, NULL_KEY_PART

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
#: Between the partition path and the record key where both name a row. No path has it.
_BETWEEN = "\0"
_ESCAPES = {c: f"%{c:02X}" for c in (*range(0x20), *map(ord, "\"#%'*/:=?\\\x7f{[]^"))}
_NEEDS_ESCAPE = r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]"


def key_text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One key column as text, string array of the same length; nulls stay null.

    Raises UnsupportedError for a type that cannot be a key (floats, nested types).
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = array.type
    if pa.types.is_string(kind):
        return array
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return array.cast(pa.int64()).cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.array([None if v is None else v.hex() for v in array.to_pylist()], pa.string())
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return array.cast(pa.string())
    if pa.types.is_large_string(kind):
        return array.cast(pa.string())
    raise UnsupportedError(
        f"a column of type {kind} cannot be part of a record key", do_next="choose other key columns"
    )


def record_keys(table: pa.Table, key_fields: Sequence[str]) -> pa.Array:
    """The record key of every row, string array of n.

    Args:
        table: n rows with at least the key columns.
        key_fields: names of the key columns in key order; one gives bare values, several give ``name:value`` pairs.
    """
    if len(key_fields) == 1:
        return key_text(table.column(key_fields[0]))
    parts: list[pa.Array | pa.Scalar] = []
    for i, name in enumerate(key_fields):
        text = pc.fill_null(key_text(table.column(name)), NULL_KEY_PART)
        parts.append(pa.scalar(f"{',' if i else ''}{name}:"))
        parts.append(pc.if_else(pc.equal(text, ""), EMPTY_KEY_PART, text))
    return pc.binary_join_element_wise(*parts, "")


def escape_partition_value(value: str) -> str:
    """A partition value as a path segment: Hudi's ``PartitionPathEncodeUtils`` percent-escapes."""
    return value.translate(_ESCAPES)


@dataclass(frozen=True, slots=True)
class PartitionLayout:
    """How partition paths are spelled: field names, ``name=value`` style or bare values, escaped or not."""

    fields: tuple[str, ...] = ()
    hive_style: bool = True
    url_encode: bool = True

    def paths(self, table: pa.Table) -> pa.Array:
        """The partition path of every row, string array of n; all empty strings for a table without partitions."""
        if not self.fields:
            return pa.repeat(pa.scalar("", pa.string()), len(table))
        segments = [self._segments(name, key_text(table.column(name))) for name in self.fields]
        return segments[0] if len(segments) == 1 else pc.binary_join_element_wise(*segments, "/")

    def _segments(self, name: str, text: pa.Array) -> pa.Array:
        empty = pc.or_kleene(pc.is_null(text), pc.equal(text, ""))
        values = pc.if_else(pc.fill_null(empty, True), DEFAULT_PARTITION, text)
        if self.url_encode and pc.any(pc.match_substring_regex(values, _NEEDS_ESCAPE)).as_py():
            encoded = values.dictionary_encode()
            escaped = pa.array([escape_partition_value(v) for v in encoded.dictionary.to_pylist()], pa.string())
            values = escaped.take(encoded.indices)
        return pc.binary_join_element_wise(pa.scalar(f"{name}="), values, "") if self.hive_style else values


@dataclass(frozen=True, slots=True)
class KeyScope:
    """Within what a record key names one row. ``by_partition``: within a partition, else in the whole table."""

    by_partition: bool

    def owner(self, partition_path: str) -> str | None:
        """The partition in which a key names a row; None for the whole table."""
        return partition_path if self.by_partition else None

    def paths(self, partition_paths: pa.DictionaryArray) -> pa.DictionaryArray | None:
        """What names n rows beside their keys; None if the keys do it alone."""
        return partition_paths if self.by_partition and len(partition_paths.dictionary) > 1 else None

    def names(self, keys: pa.Array, partition_paths: pa.DictionaryArray) -> pa.Array:
        """What names n rows in the whole table, string array: the record key, and before it the partition path where
        the key alone does not."""
        if not self.by_partition:
            return keys
        return pc.binary_join_element_wise(partition_paths.dictionary.take(partition_paths.indices), keys, _BETWEEN)

    def elsewhere(self, stored: pa.Array, named: pa.DictionaryArray) -> npt.NDArray[np.bool_]:
        """Whether n rows are stored in other partitions than events of their keys name, bool of n.

        ``stored``: partition paths, string array, null for a row that is not stored: it is elsewhere, too.
        """
        if self.by_partition:
            return np.zeros(len(stored), dtype=np.bool_)
        equal = pc.fill_null(pc.equal(stored, named.dictionary.take(named.indices)), fill_value=False)
        return ~np.asarray(equal.to_numpy(zero_copy_only=False), dtype=np.bool_)
