"""Whether a table's buckets have the size that they are planned for: which number of buckets would have, or, of a table
with hash rings, which buckets are to be split and merged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudilake.format.definition.bucketing import bucket_or_none
from hudilake.format.definition.consistent import ConsistentBuckets, HashingMetadata
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.files.view import FileSlice
from hudilake.services.rebucket.units import BucketChange
from hudilake.table.table import HudiTable

#: The planned size of a bucket, in bytes of its files.
PLANNED_BYTES = 1 << 30
#: A mean bucket that is so many times too large, or too small, is worth a move.
_TOO_LARGE, _TOO_SMALL = 2, 32
#: Fewer buckets than this cost no reader and no commit much, and a small table may grow.
_FEW = 64
#: A bucket of a hash ring is split if it is larger than so many times the target size of files.
SPLIT_OVER = 2.0
#: Neighbouring buckets of a ring are merged if they are together not larger than this part of the target size.
MERGE_UNDER = 0.5


@dataclass(frozen=True, slots=True)
class BucketAdvice:
    """Another number of buckets for the partition with the largest buckets.

    Args:
        partition_path: of the partition.
        buckets: its present number.
        mean_bytes: of its buckets.
        proposed: the number by which its buckets have about the planned size: the present one times or divided by a
            power of two, so that file groups are split or joined one by one.
    """

    partition_path: str
    buckets: int
    mean_bytes: int
    proposed: int

    def command(self, conf: str, table: str) -> str:
        """What carries it out. ``conf``: the settings file; ``table``: ``database.table``."""
        words = f"binlake rebucket {conf} {table} --buckets {self.proposed}"
        return f'{words} --partition "{self.partition_path}"' if self.partition_path else words


def bucket_advice(
    table: HudiTable, slices: Iterable[FileSlice] | None = None, planned_bytes: int = PLANNED_BYTES
) -> BucketAdvice | None:
    """What the sizes of the buckets suggest; None if they are as planned, or the table has no fixed buckets.

    Args:
        table: open.
        slices: its newest file slices, if they are known.
        planned_bytes: of a bucket.

    Raises CorruptDataError, StorageError.
    """
    if not table.config.kind.has(TableOperation.REBUCKET):
        return None
    sizes: dict[str, int] = {}
    for piece in table.file_slices() if slices is None else slices:
        sizes[piece.partition_path] = sizes.get(piece.partition_path, 0) + piece.base_size + piece.log_size
    if not sizes:
        return None
    path = max(sizes, key=lambda one: sizes[one] / table.config.bucketing.count(one))
    buckets = proposed = table.config.bucketing.count(path)
    if sizes[path] > _TOO_LARGE * planned_bytes * buckets:
        while sizes[path] > planned_bytes * proposed:
            proposed *= 2
    elif sizes[path] * _TOO_SMALL < planned_bytes * buckets and buckets >= _FEW:
        while proposed % 2 == 0 and sizes[path] * 4 < planned_bytes * proposed:
            proposed //= 2
    return BucketAdvice(path, buckets, sizes[path] // buckets, proposed) if proposed != buckets else None


def proposed(table: HudiTable, target_bytes: int, slices: Iterable[FileSlice] | None = None) -> list[BucketChange]:
    """What the sizes of the buckets call for; a partition keeps its first number of buckets. Nothing for a table
    without hash rings. A file group of no bucket does not count: writers refuse it.

    Args:
        table: open.
        target_bytes: the target size of files (``files.target_bytes``).
        slices: its newest file slices, if they are known.

    Raises CorruptDataError, StorageError.
    """
    bucketing = table.config.bucketing
    if not isinstance(bucketing, ConsistentBuckets):
        return []
    sizes: dict[str, dict[int, int]] = {}
    for piece in table.file_slices() if slices is None else slices:
        bucket = bucket_or_none(bucketing, piece.partition_path, piece.file_id)
        if bucket is not None:
            sizes.setdefault(piece.partition_path, {})[bucket] = piece.base_size + piece.log_size
    return [one for path in sorted(sizes) for one in _proposed(bucketing.ring(path), sizes[path], target_bytes)]


def _proposed(ring: HashingMetadata, sizes: dict[int, int], target_bytes: int) -> list[BucketChange]:
    path, count = ring.partition_path, len(ring.nodes)
    splits = [BucketChange(path, (n,)) for n in range(count) if sizes.get(n, 0) > SPLIT_OVER * target_bytes]
    spare, merges, start = count - ring.num_buckets, list[BucketChange](), 0
    while start + 1 < count and spare > 0:
        end, total = start, sizes.get(start, 0)
        while end + 1 < count and spare > end - start and total + sizes.get(end + 1, 0) <= MERGE_UNDER * target_bytes:
            end += 1
            total += sizes.get(end, 0)
        if end > start:
            merges.append(BucketChange(path, tuple(range(start, end + 1))))
            spare -= end - start
        start = end + 1
    return [*splits, *merges]
