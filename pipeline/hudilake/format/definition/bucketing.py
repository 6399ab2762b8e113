"""Which file group a row of a table with a bucket index goes to: computed from its record key and partition path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.format.definition.bucket import bucket_ids, bucket_of_file_id, file_id
from hudilake.format.definition.java_hash import Int32s


class Bucketing(Protocol):
    """The buckets of a table, by partition. A value: picklable, equal to another that places every row alike."""

    def buckets(self, record_keys: pa.Array, key_fields: Sequence[str], partition_paths: pa.DictionaryArray) -> Int32s:
        """The bucket of each of n rows in its partition, int32, at least 0.

        Args:
            record_keys: string array of n record keys without nulls.
            key_fields: the index fields: all record key fields, or the first of them.
            partition_paths: the partition path of each row, dictionary array of n strings without nulls.
        """
        ...

    def of(self, partition_path: str) -> Bucketing:
        """The buckets of one partition: a hashable value, equal for partitions that place every key alike."""
        ...

    def count(self, partition_path: str) -> int:
        """The number of buckets of a partition, at least 1; its buckets are 0 to that number less one."""
        ...

    def file_id(self, table_name: str, partition_path: str, bucket: int) -> str:
        """The id that a new file group of a bucket gets."""
        ...

    def bucket_of(self, partition_path: str, file_id: str) -> int:
        """The bucket of a file group. Raises ValueError for the id of no bucket."""
        ...


@dataclass(frozen=True, slots=True)
class SimpleBuckets:
    """The same number of buckets in every partition (``hoodie.bucket.index.num.buckets``)."""

    number: int

    def buckets(self, record_keys: pa.Array, key_fields: Sequence[str], partition_paths: pa.DictionaryArray) -> Int32s:
        """Returns the bucket of each of n rows, int32; every partition has the same number of buckets."""
        return bucket_ids(record_keys, key_fields, self.number)

    def of(self, partition_path: str) -> SimpleBuckets:
        """Returns these buckets themselves: all partitions are alike."""
        return self

    def count(self, partition_path: str) -> int:
        """Returns the number of buckets, the same for every partition."""
        return self.number

    def file_id(self, table_name: str, partition_path: str, bucket: int) -> str:
        """Returns the id of a new file group of the bucket, made from all three arguments."""
        return file_id(table_name, partition_path, bucket)

    def bucket_of(self, partition_path: str, file_id: str) -> int:
        """Returns the bucket that the file id begins with. Errors as ``Bucketing.bucket_of``."""
        return bucket_of_file_id(file_id)


@dataclass(frozen=True, slots=True)
class PartitionBuckets:
    """Bucket counts by partition path (Hudi's partition-level bucket index with the rule ``regex``).

    Args:
        default: the number of buckets of a partition that no rule matches.
        rules: (regular expression, number of buckets); the first that is found in a partition path counts. As in Hudi
            1.2.0 (``RegexRuleEngine``) it need not match the whole path: ``^`` and ``$`` say where it begins and ends.
    """

    default: int
    rules: tuple[tuple[str, int], ...]

    def buckets(self, record_keys: pa.Array, key_fields: Sequence[str], partition_paths: pa.DictionaryArray) -> Int32s:
        """Returns the bucket of each of n rows, int32, by the number of buckets of its partition."""
        counts = np.array([self.count(path) for path in partition_paths.dictionary.to_pylist()], dtype=np.int64)
        of_row = counts[partition_paths.indices.to_numpy()] if len(counts) else np.empty(0, dtype=np.int64)
        row_buckets = np.zeros(len(record_keys), dtype=np.int32)
        for count in np.unique(of_row).tolist():
            rows = np.flatnonzero(of_row == count)
            row_buckets[rows] = bucket_ids(record_keys.take(pa.array(rows)), key_fields, count)
        return row_buckets

    def of(self, partition_path: str) -> SimpleBuckets:
        """Returns the buckets of the partition, as many as its rule says."""
        return SimpleBuckets(self.count(partition_path))

    def count(self, partition_path: str) -> int:
        """Returns the number of the first rule found in the partition path, otherwise the default."""
        counts = (count for rule, count in self.rules if re.search(rule, partition_path))
        return next(counts, self.default)

    def file_id(self, table_name: str, partition_path: str, bucket: int) -> str:
        """Returns the id of a new file group of the bucket, made from all three arguments."""
        return file_id(table_name, partition_path, bucket)

    def bucket_of(self, partition_path: str, file_id: str) -> int:
        """Returns the bucket that the file id begins with. Errors as ``Bucketing.bucket_of``."""
        return bucket_of_file_id(file_id)


def bucketing_of(number: int, rules: tuple[tuple[str, int], ...] = ()) -> SimpleBuckets | PartitionBuckets:
    """The same number of buckets in every partition, or counts by partition where there are rules."""
    return PartitionBuckets(number, rules) if rules else SimpleBuckets(number)


@dataclass(frozen=True, slots=True)
class GroupNames:
    """The ids of the file groups of one table.

    Args:
        table_name: of the table.
        bucketing: of the table.
        named: (partition path, bucket) -> the id of every file group whose id is not the computed one.
    """

    table_name: str
    bucketing: Bucketing
    named: Mapping[tuple[str, int], str] = field(default_factory=dict)

    def of(self, partition_path: str, bucket: int) -> str:
        """The id of the file group of a bucket."""
        known = self.named.get((partition_path, bucket))
        return known if known is not None else self.bucketing.file_id(self.table_name, partition_path, bucket)


@dataclass(frozen=True, slots=True)
class BucketRows:
    """n rows in the order of their file groups.

    Args:
        order: int64 array of n row numbers; the rows of a file group are together and keep their order.
        starts: int64 array: where each file group starts in ``order``; n is added at its end.
        groups: the (partition path, bucket) of each file group.
    """

    order: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    groups: tuple[tuple[str, int], ...]

    def __iter__(self) -> Iterator[tuple[str, int, slice]]:
        """(partition path, bucket, where its rows are in ``order``) of each file group."""
        for number, (path, bucket) in enumerate(self.groups):
            yield path, bucket, slice(int(self.starts[number]), int(self.starts[number + 1]))


def buckets_of(
    bucketing: Bucketing, record_keys: pa.Array | pa.ChunkedArray, key_fields: Sequence[str], partition_path: str
) -> Int32s:
    """The buckets of n record keys of one partition, int32. Arguments as ``Bucketing.buckets``."""
    if isinstance(record_keys, pa.ChunkedArray):
        record_keys = record_keys.combine_chunks()
    where = pa.array(np.zeros(len(record_keys), dtype=np.int32))
    paths = pa.DictionaryArray.from_arrays(where, pa.array([partition_path], pa.string()))
    return bucketing.buckets(record_keys, key_fields, paths)


def bucket_or_none(bucketing: Bucketing, partition_path: str, file_id: str) -> int | None:
    """The bucket of a file group; None for a file group of no bucket: of another index, or replaced."""
    try:
        return bucketing.bucket_of(partition_path, file_id)
    except ValueError:
        return None


def split_by_bucket(
    bucketing: Bucketing, record_keys: pa.Array | pa.ChunkedArray, key_fields: Sequence[str], partition_paths: pa.Array
) -> BucketRows:
    """The file groups of n rows.

    Args:
        bucketing: of the table.
        record_keys: string array of n record keys without nulls.
        key_fields: the index fields.
        partition_paths: string array of n partition paths without nulls.
    """
    if isinstance(record_keys, pa.ChunkedArray):
        record_keys = record_keys.combine_chunks()
    paths = partition_paths.dictionary_encode()
    buckets = bucketing.buckets(record_keys, key_fields, paths)
    stride = int(buckets.max(initial=0)) + 1
    codes = paths.indices.to_numpy().astype(np.int64) * stride + buckets
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    groups = tuple(
        (paths.dictionary[place].as_py(), bucket) for place, bucket in (divmod(int(c), stride) for c in codes[starts])
    )
    return BucketRows(order, np.append(starts, len(order)), groups)


def split_by_partition(partition_paths: pa.Array, bucket: int) -> BucketRows:
    """The partitions of n rows whose file groups are not computed.

    Args:
        partition_paths: string array of n partition paths without nulls.
        bucket: that stands for none.
    """
    paths = partition_paths.dictionary_encode()
    codes = np.asarray(paths.indices.to_numpy(), dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    groups = tuple((paths.dictionary[int(code)].as_py(), bucket) for code in codes[order][starts])
    return BucketRows(order, np.append(starts, len(order)), groups)


def expressions_of(rules: tuple[tuple[str, int], ...]) -> str:
    """Bucket counts by partition in Hudi's spelling: ``regex,count;regex,count``."""
    return ";".join(f"{rule},{count}" for rule, count in rules)


def rules_of(expressions: str | None) -> tuple[tuple[str, int], ...]:
    """Bucket counts by partition, (regex, count), from Hudi's spelling; None for none."""
    parts = [part.rpartition(",") for part in (expressions or "").split(";") if part]
    return tuple((rule, int(count)) for rule, _, count in parts)
