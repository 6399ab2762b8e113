"""Record keys and partition paths as Hudi's key generators spell them.

One key field gives the value's text (``6``); several give ``a:1,b:x`` (Hudi 1.2.0, ``KeyGenUtils``). Values are the
texts that Hudi's Avro key generator makes: integers in decimal, dates as ``2024-02-29``, timestamps as microseconds
since the epoch, booleans as ``true``/``false``. Binary has no text in Hudi; here it is lower-case hex.

A key of several fields escapes nothing, so several values may have one record key: ``shared_keys`` finds them, and
writers refuse such rows.

Within what a key names one row, a partition or the whole table, is its ``KeyScope``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.definition.bucket import EMPTY_KEY_PART, NULL_KEY_PART
from hudilake.wording import counted

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
SHARED_KEY_ADVICE = (
    "write other texts in a key of several columns: neither the words __empty__ and __null__, nor a comma, the name of "
    "a key column and a colon"
)
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


def shared_keys(table: pa.Table, key_fields: Sequence[str], nullable: Collection[str] = ()) -> npt.NDArray[np.bool_]:
    """The rows whose record key other values of the key have, too, bool of n; a key of one field names one value.

    Two things make such keys: the text ``__empty__``, and ``__null__`` in a field that may be null; and texts with
    the separators of later fields, as in ``a:1,b:2,b:3``.

    Args:
        table: n rows with at least the key columns.
        key_fields: names of the key columns in key order.
        nullable: the key columns in which a stored row may have null.
    """
    shared = np.zeros(len(table), dtype=np.bool_)
    if len(key_fields) == 1:
        return shared
    texts = [number for number, name in enumerate(key_fields) if _is_text(table.schema.field(name).type)]
    separated = shared.copy()
    for number in texts:
        column = table.column(key_fields[number])
        words = [EMPTY_KEY_PART, NULL_KEY_PART] if key_fields[number] in nullable else [EMPTY_KEY_PART]
        shared |= _holds(pc.is_in(column, value_set=pa.array(words, column.type)))
        separated |= _holds(pc.and_(pc.match_substring(column, ","), pc.match_substring(column, ":")))
    rows = np.flatnonzero(separated & ~shared)
    if len(texts) > 1 and len(rows):
        keys = record_keys(table.select(key_fields).take(pa.array(rows)), key_fields)
        forms = [_spelling(table.schema.field(name).type) for name in key_fields]
        shared[rows] = _read_in_two_ways(keys, key_fields, forms)
    return shared


def check_own_keys(table: pa.Table, key_fields: Sequence[str], nullable: Collection[str], name: str) -> None:
    """Raise ConfigError for rows with ``shared_keys``. ``name``: of the lake table; others as there."""
    shared = np.flatnonzero(shared_keys(table, key_fields, nullable))
    if len(shared):
        first = record_keys(table.select(key_fields).take(pa.array(shared[:1])), key_fields)[0].as_py()
        raise ConfigError(
            f"other values have the same record key ({counted(len(shared), 'row')})",
            do_next=SHARED_KEY_ADVICE,
            table=name,
            key=first,
        )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _holds(mask: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.fill_null(mask, fill_value=False).to_numpy(), dtype=np.bool_)


def _spelling(kind: pa.DataType) -> str | None:
    """A pattern of a field's values in a key of several, null among them; None for texts, which may be anything."""
    if _is_text(kind):
        return None
    return f"-?[0-9]+|{NULL_KEY_PART}" if pa.types.is_integer(kind) else r"[^,:\s]*"


def _read_in_two_ways(keys: pa.Array, key_fields: Sequence[str], forms: Sequence[str | None]) -> npt.NDArray[np.bool_]:
    """Whether n record keys are those of several values, bool of n: the reading with the shortest texts is not the one
    with the longest. ``forms``: ``_spelling`` of each field; none has a separator."""
    readings = []
    for text in (".+?", ".+"):  # none is empty: that is spelled __empty__
        parts = [
            f"{re.escape(name)}:(?P<v{number}>{text if form is None else form})"
            for number, (name, form) in enumerate(zip(key_fields, forms, strict=True))
        ]
        readings.append(pc.extract_regex(keys, pattern=f"(?s)^{','.join(parts)}$"))
    differ = np.zeros(len(keys), dtype=np.bool_)
    for number, form in enumerate(forms):
        if form is None:
            shortest, longest = (pc.struct_field(reading, f"v{number}") for reading in readings)
            differ |= np.asarray(pc.not_equal(shortest, longest).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return differ


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
