"""The bucket index: which bucket a record key belongs to, and the file group of a bucket.

The rule is Hudi's (``BucketIdentifier``, ``KeyGenUtils.extractRecordKeysByFields``, version 1.2.0), quirks included:
a table whose buckets Hudi computes differently would be corrupted by the first Hudi writer. Vectors in
``tests/data/golden/vectors.json``.
"""

from __future__ import annotations

from collections.abc import Sequence

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.java_hash import Int32s, java_string_hash

NULL_KEY_PART = "__null__"
EMPTY_KEY_PART = "__empty__"


def bucket_ids(record_keys: pa.Array | pa.ChunkedArray, key_fields: Sequence[str], buckets: int) -> Int32s:
    """The bucket of every record key, int32 in ``[0, buckets)``.

    Args:
        record_keys: string array of n record keys without nulls (``6`` or ``a:1,b:x``).
        key_fields: the index fields: all record key fields, or the first of them.
        buckets: the number of buckets of the table, at least 1.
    """
    return (bucket_hashes(record_keys, key_fields) % np.uint32(buckets)).astype(np.int32)


def bucket_hashes(
    record_keys: pa.Array | pa.ChunkedArray, key_fields: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """The hash of every record key, uint32 below 2**31; its bucket is the remainder by the number of buckets.

    Arguments as ``bucket_ids``.
    """
    if isinstance(record_keys, pa.ChunkedArray):
        record_keys = record_keys.combine_chunks()
    hashes = java_string_hash(record_keys).view(np.uint32) + np.uint32(31)
    parsed = pc.and_(pc.match_substring(record_keys, ","), pc.match_substring(record_keys, ":"))
    rows = np.flatnonzero(parsed.to_numpy(zero_copy_only=False))
    if len(rows):
        hashes[rows] = _parsed_hashes(record_keys.take(pa.array(rows)), list(key_fields))
    return hashes & np.uint32(0x7FFFFFFF)


def _parsed_hashes(record_keys: pa.Array, key_fields: list[str]) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """``List.hashCode`` of the key's values, for keys that hold both ``,`` and ``:``."""
    columns = _split_simple(record_keys, key_fields)
    if columns is None:
        values = [key_values(key, key_fields) for key in record_keys.to_pylist()]
        return np.array([_list_hash(v) for v in values], dtype=np.uint32)
    total = np.full(len(record_keys), 1, dtype=np.uint32)
    for column in columns:
        total = total * np.uint32(31) + java_string_hash(column).view(np.uint32)
    return total


def _split_simple(record_keys: pa.Array, key_fields: list[str]) -> list[pa.Array] | None:
    """The value columns if every key is ``f:v,f2:v2`` without ``,`` or ``:`` inside a value; else None."""
    width = len(key_fields)
    if width == 1:
        first = _first_values(record_keys, key_fields[0])
        return None if first is None else [first]
    commas, colons = pc.count_substring(record_keys, ","), pc.count_substring(record_keys, ":")
    if width < 2 or pc.min(commas).as_py() != width - 1 or pc.max(commas).as_py() != width - 1:
        return None
    if pc.min(colons).as_py() != width or pc.max(colons).as_py() != width:
        return None
    parts = pc.list_flatten(pc.split_pattern(record_keys, ","))
    halves = pc.list_flatten(pc.split_pattern(parts, ":"))
    if len(halves) != len(record_keys) * width * 2:
        return None
    index = np.arange(len(record_keys), dtype=np.int64) * (width * 2)
    columns = []
    for i, field in enumerate(key_fields):
        names = halves.take(pa.array(index + 2 * i))
        if not pc.all(pc.equal(names, field)).as_py():
            return None
        columns.append(_read(halves.take(pa.array(index + 2 * i + 1))))
    return columns


def _first_values(record_keys: pa.Array, name: str) -> pa.Array | None:
    """The values of the first field if every key begins with it and Hudi reads its value up to the first comma, and
    reads no second value of that name; else None."""
    parts = pc.list_flatten(pc.split_pattern(record_keys, ",", max_splits=1))
    firsts, rest = parts[0::2], parts[1::2]
    comma, colon = pc.find_substring(rest, ","), pc.find_substring(rest, ":")
    named = pc.and_(pc.starts_with(firsts, f"{name}:"), pc.greater_equal(colon, 0))
    ends_here = pc.or_(pc.less(comma, 0), pc.greater(comma, colon))
    again = pc.or_(pc.starts_with(rest, f"{name}:"), pc.match_substring(rest, f",{name}:"))
    if not pc.all(pc.and_(pc.and_(named, ends_here), pc.invert(again))).as_py():
        return None
    return _read(pc.utf8_slice_codeunits(firsts, len(name) + 1))


def _read(values: pa.Array) -> pa.Array:
    """Values of a key as Hudi reads them: null and empty have words of their own."""
    values = pc.if_else(pc.equal(values, NULL_KEY_PART), pa.scalar(None, values.type), values)
    return pc.if_else(pc.equal(values, EMPTY_KEY_PART), "", values)


def joined_key_values(record_keys: pa.Array, key_fields: Sequence[str]) -> pa.Array:
    """The values of every record key, joined without a separator, string array of n; null is the word ``null``.

    Arguments as ``bucket_ids``. The rule is that of ``ConsistentBucketIdentifier.getBucket`` (``String.join``).
    """
    parsed = pc.and_(pc.match_substring(record_keys, ","), pc.match_substring(record_keys, ":"))
    if not pc.any(parsed).as_py():
        return record_keys
    keys = record_keys.filter(parsed)
    columns = _split_simple(keys, list(key_fields))
    if columns is None:
        texts = ["".join("null" if v is None else v for v in key_values(key, key_fields)) for key in keys.to_pylist()]
        return pc.replace_with_mask(record_keys, parsed, pa.array(texts, record_keys.type))
    joined = pc.binary_join_element_wise(*columns, "", null_handling="replace", null_replacement="null")
    return pc.replace_with_mask(record_keys, parsed, joined)


def _list_hash(values: Sequence[str | None]) -> int:
    total = 1
    for value in values:
        units = value.encode("utf-16-le", "surrogatepass") if value else b""
        part = 0
        for offset in range(0, len(units), 2):
            part = part * 31 + int.from_bytes(units[offset : offset + 2], "little")
        total = (total * 31 + part) & 0xFFFFFFFF
    return total


def key_values(record_key: str, key_fields: Sequence[str]) -> list[str | None]:
    """The values that Hudi reads out of a record key, in the key's own order.

    Follows ``KeyGenUtils.extractRecordKeysByFields``: a key without ``,`` or without ``:`` is one value; a value may
    hold either character, and is then cut where Hudi cuts it. If Hudi fails on a key, the whole key is the value.
    """
    if "," not in record_key or ":" not in record_key:
        return [record_key]
    values: list[str | None] = []
    offset = 0
    while offset < len(record_key):
        first = record_key.find(":", offset)
        if first < 0:
            return [record_key]
        end = _value_end(record_key, first)
        if record_key[offset:first] in key_fields:
            text = record_key[first + 1 : end]
            values.append(None if text == NULL_KEY_PART else "" if text == EMPTY_KEY_PART else text)
        offset = end + 1
    return values or [record_key]


def _value_end(record_key: str, first: int) -> int:
    """Index of the comma that ends the value after the colon at ``first``, or the key's length."""
    second = record_key.find(":", first + 1)
    while second >= 0:
        comma = record_key.rfind(",", 0, second + 1)
        if comma >= first:
            return comma
        second = record_key.find(":", second + 1)
    return len(record_key)


def file_id(table_name: str, partition_path: str, bucket: int) -> str:
    """The id of the file group of a bucket: eight digits of bucket, then a stable digest, in the shape of a UUID.

    Hudi routes by the first eight characters only. The rest is a digest of table and partition path, so that every
    attempt of every task computes the same id by itself.
    """
    return _named(f"{table_name}\n{partition_path}\n{bucket}", bucket)


def next_file_id(table_name: str, partition_path: str, bucket: int, replaced: str) -> str:
    """The id of the file group of a bucket whose former one was replaced at an instant: readers do not see any file of
    the former id."""
    return _named(f"{table_name}\n{partition_path}\n{bucket}\n{replaced}", bucket)


def _named(text: str, bucket: int) -> str:
    digest = mmh3.mmh3_x64_128_digest(text.encode()).hex()
    return f"{bucket:08d}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}-0"


def bucket_of_file_id(name: str) -> int:
    """The bucket that Hudi reads out of a file id. Raises ValueError for a file id of another index."""
    return int(name[:8])
