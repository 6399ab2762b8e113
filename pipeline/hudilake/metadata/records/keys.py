"""Keys of the metadata table's records, and the file group of a key.

A key is made of base64 hashes: XXH64 of column and partition, MD5 of the bare file name. With a wrong hash every read
of the whole index works and every lookup is silently empty, so the vectors in ``tests/data/golden`` test it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from hudilake.format.definition.java_hash import java_string_hash

ALL_PARTITIONS = "__all_partitions__"
_NO_PARTITION = "."
#: Java's int 0xdabadaba becomes a long with its sign.
_SEED = 0xFFFFFFFFDABADABA


def partition_identifier(partition_path: str) -> str:
    """A partition's name in the metadata table: "." for a table without partitions."""
    return partition_path or _NO_PARTITION


@lru_cache(maxsize=65536)
def _xx64(text: str) -> str:
    return base64.b64encode(xxhash.xxh64_digest(text.encode(), seed=_SEED)).decode("ascii")


@lru_cache(maxsize=65536)
def _md5(text: str) -> str:
    return base64.b64encode(hashlib.md5(text.encode(), usedforsecurity=False).digest()).decode("ascii")


def file_id(file_name: str) -> str:
    """The file's part of a key, 24 characters. ``file_name``: bare, with the leading dot of a log file."""
    return _md5(file_name)


def column_stats_key(column: str, partition_path: str, file_name: str) -> str:
    """Key of a file's statistics of one column."""
    return _xx64(column) + _xx64(partition_path or _NO_PARTITION) + _md5(file_name)


def partition_stats_key(column: str, partition_path: str) -> str:
    """Key of a partition's statistics of one column."""
    return _xx64(column) + _xx64(partition_path or _NO_PARTITION)


def bloom_key(partition_path: str, file_name: str) -> str:
    """Key of a base file's bloom filter."""
    return _xx64(partition_path or _NO_PARTITION) + _md5(file_name)


def file_group_indices(keys: Sequence[str] | pa.Array, count: int) -> npt.NDArray[np.int64]:
    """The file group, 0 to ``count`` - 1, of every key: Java's string hash, absolute, modulo ``count``."""
    if count == 1:
        return np.zeros(len(keys), dtype=np.int64)
    hashes = java_string_hash(keys if isinstance(keys, pa.Array) else pa.array(keys, pa.string())).astype(np.int64)
    return np.asarray(np.abs(hashes) % count)
